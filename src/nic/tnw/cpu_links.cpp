#include "nic/tnw/cpu_links.hpp"

namespace apenet::tnw {

void CpuLinks::serve() {
  if (is_busy_) return;
  const std::uint8_t other = last_ ^ 1U;
  for (const std::uint8_t side : {other, last_}) {
    const Time span = users_[side]->take_turn();
    if (span == Time::never()) continue;
    last_ = side;
    is_busy_ = true;
    simulation_.schedule(source_, simulation_.now() + span, *this);
    return;
  }
}

// The links stay busy until turn_over() returns, so that what it starts does not begin before the next turn.
void CpuLinks::handle_event(const Event& /*event*/) {
  users_[last_]->turn_over();
  is_busy_ = false;
  serve();
}

}  // namespace apenet::tnw
