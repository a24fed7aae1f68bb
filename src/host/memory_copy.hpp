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
    const Time begin = std::max(earliest, state_.free_at);
    const Time span = rate_.duration(bytes);
    counters_.busy += span;
    counters_.waited += begin - earliest;
    ++counters_.copies;
    state_.free_at = begin + span;
    return state_.free_at;
  }

  [[nodiscard]] Time free_at() const { return state_.free_at; }

  struct State {
    Time free_at;
  };
  struct Counters {
    Time busy;
    Time waited;  // behind other copies
    std::uint64_t copies = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  DataRate rate_;
  State state_;
  Counters counters_;
};

}  // namespace apenet
