// FlitTiming: a network's description in the cycles and flits of the flit engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/rate.hpp"
#include "network/parameters.hpp"

namespace apenet {

// One direction of a cable, or the port between router and card.
struct FlitLinkTiming {
  std::uint32_t latency_cycles = 0;
  std::uint32_t flit_cycles = 1;  // a flit every so many cycles
};

// Every number is whole cycles of the router's clock. A time of the description that is not is rounded up,
// and `rounded` says so. Of a description in whole cycles headers have the packet engine's unloaded times,
// and tails do where all links and ports are equally fast (docs/models/flit-engine.md, "Cycles").
struct FlitTiming {
  ClockDomain clock;
  std::uint32_t flit_bytes = 0;
  std::uint32_t buffer_write_cycles = 0;
  std::uint32_t routing_cycles = 0;
  std::uint32_t vc_allocation_cycles = 1;
  std::uint32_t switch_allocation_cycles = 1;
  std::uint32_t switch_traversal_cycles = 1;
  std::uint32_t credit_cycles = 0;  // from a credit's arrival at a router to its use
  std::uint32_t buffer_flits = 0;   // per virtual channel
  FlitLinkTiming local;
  std::vector<FlitLinkTiming> links;  // per link class
  std::vector<std::string> rounded;   // "network.link.latency = 70000 ps becomes 9 cycles, 78261 ps"

  [[nodiscard]] std::uint32_t flits(std::uint32_t bytes) const {
    return (bytes + flit_bytes - 1) / flit_bytes;
  }
  [[nodiscard]] Time time(std::int64_t cycle) const { return clock.cycles(cycle); }
  // The first cycle that begins at `time` or later.
  [[nodiscard]] std::int64_t cycle_from(Time time) const;
};

// What a flit is where the machine does not say: what the first link, or else a port, moves at a time.
[[nodiscard]] std::int64_t flit_bytes_of(const NetworkDescription& description);
// How many times longer than described a flit takes on a link (on a port, where there is no link), at most.
// It is the rounding to whole cycles; 1 without a clock.
[[nodiscard]] double flit_slowdown(const NetworkDescription& description);

// Both throw std::invalid_argument naming the key, its value and what was expected.

// The clock, the flit, and the links alone: what latencies in cycles and loads in flits mean, on any engine.
[[nodiscard]] FlitTiming make_flit_clock(const NetworkDescription& description);
[[nodiscard]] FlitTiming make_flit_timing(const NetworkParameters& parameters);

}  // namespace apenet
