// PacketEngine: arbitration by age.
#include <algorithm>

#include "network/packet/engine.hpp"

namespace apenet {

// Returns the queues that wait for the output, by the time at which their head packet was injected.
const std::vector<std::uint32_t>& PacketEngine::oldest_first(std::uint32_t output_index) {
  by_age_.clear();
  waiting_.visit(outputs_[output_index], output_index, [this](std::uint32_t queue_index) {
    by_age_.push_back(queue_index);
    return false;
  });
  std::sort(by_age_.begin(), by_age_.end(), [this](std::uint32_t one, std::uint32_t other) {
    return state_.numbers[state_.queues[one].head] < state_.numbers[state_.queues[other].head];
  });
  return by_age_;
}

}  // namespace apenet
