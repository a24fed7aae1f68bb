#include "nic/tnw/cpu_links.hpp"

namespace apenet::tnw {

void CpuLinks::serve() {
  if (state_.is_busy) return;
  const std::uint8_t other = state_.last ^ 1U;
  for (const std::uint8_t side : {other, state_.last}) {
    const NextItem next = users_[side]->take_turn();
    if (next.span == Time::never()) continue;
    state_.last = side;
    state_.is_busy = true;
    use_.take(next.there, simulation_.now(), next.span);
    simulation_.schedule(source_, simulation_.now() + next.span, *this);
    return;
  }
}

// The links stay busy until turn_over() returns, so that what it starts does not begin before the next turn.
void CpuLinks::handle_event(const Event& /*event*/) {
  users_[state_.last]->turn_over();
  state_.is_busy = false;
  serve();
}

}  // namespace apenet::tnw
