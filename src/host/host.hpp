// Host: what a node has beside its card: the I/O bus, and a memory that its CPUs copy in.
#pragma once

#include <algorithm>
#include <cstdint>

#include "host/bus.hpp"
#include "host/description.hpp"

namespace apenet {

// The CPUs of a node copy through one memory: one copy at a time has its full bandwidth, and those that come
// meanwhile queue behind it. Messages inside a node and copied (not zero-copy) transfers are such copies.
class MemoryCopy {
 public:
  explicit MemoryCopy(const HostDescription& description)
      : rate_(DataRate::bytes_per_second(description.copy_bytes_per_second)) {}

  [[nodiscard]] Time duration(std::int64_t bytes) const { return rate_.duration(bytes); }
  // Takes the memory for a copy that may begin at `earliest`; returns when it is done. Reservations are
  // served in the order of the calls, which is that of the events.
  Time reserve(Time earliest, std::int64_t bytes) {
    free_at_ = std::max(earliest, free_at_) + duration(bytes);
    return free_at_;
  }

 private:
  DataRate rate_;
  Time free_at_;
};

struct Host {
  Host(Simulation& simulation, const HostDescription& description, std::uint32_t id)
      : bus(simulation, description.bus, id), copy(description) {}
  Bus bus;
  MemoryCopy copy;
};

}  // namespace apenet
