// MemoryCopy: copies by the CPUs of a node, from memory to memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/description.hpp"
#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

// The CPUs of a node copy through one memory: one copy at a time has its full bandwidth, and those that come
// meanwhile queue behind it. Messages inside a node are such copies.
class MemoryCopy {
 public:
  explicit MemoryCopy(const HostDescription& description)
      : rate_(DataRate::bytes_per_second(description.copy_bytes_per_second)) {}

  // Takes the memory for a copy that may begin at `earliest`; returns when it is done. Reservations are
  // served in the order of the calls, which is that of the events.
  Time reserve(Time earliest, std::int64_t bytes) {
    free_at_ = std::max(earliest, free_at_) + rate_.duration(bytes);
    return free_at_;
  }

 private:
  DataRate rate_;
  Time free_at_;
};

}  // namespace apenet
