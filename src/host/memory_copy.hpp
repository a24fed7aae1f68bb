// MemoryCopy: memory copies by the CPUs of a node.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/description.hpp"
#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

// The CPUs of a node share one memory: one copy at a time gets its full bandwidth, and further copies queue
// behind it. Messages within a node are such copies.
class MemoryCopy {
 public:
  explicit MemoryCopy(const HostDescription& description)
      : rate_(DataRate::bytes_per_second(description.copy_bytes_per_second)) {}

  // Reserves the memory for a copy that may begin at `earliest`. Returns when the copy is done. Reservations
  // are served in the order of the calls, which is the order of events.
  Time reserve(Time earliest, std::int64_t bytes) {
    state_.free_at = std::max(earliest, state_.free_at) + rate_.duration(bytes);
    return state_.free_at;
  }

  struct State {
    Time free_at;
  };

 private:
  DataRate rate_;
  State state_;
};

}  // namespace apenet
