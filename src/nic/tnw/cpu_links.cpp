#include "nic/tnw/cpu_links.hpp"

namespace apenet::tnw {

void CpuLinks::serve() {
  if (state_.is_busy) return;
  const std::uint8_t other = state_.last ^ 1U;
  for (const std::uint8_t side : {other, state_.last}) {
    const Time span = users_[side]->take_turn();
    if (span == Time::never()) continue;
    state_.last = side;
    state_.is_busy = true;
    simulation_.schedule(source_, simulation_.now() + span, *this);
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
