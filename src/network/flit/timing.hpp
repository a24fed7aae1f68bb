// FlitTiming: a network's description in cycles and flits of the flit engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/rate.hpp"
#include "network/description.hpp"

namespace apenet {

// One direction of a cable, or of the port between router and card.
struct FlitLinkTiming {
  std::uint32_t latency_cycles = 0;
  std::uint32_t flit_cycles = 1;  // one flit per this many cycles
};

// All values are whole cycles of the router's clock. A time that is not a multiple of a cycle is rounded up,
// and `rounded` reports it. If the description is in whole cycles, unloaded headers have the same times as in
// the packet engine. Tails have them too if all links and ports are equally fast (docs/models/flit-engine.md,
// "Cycles").
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
  // For example "network.link.latency = 70000 ps becomes 9 cycles, 78261 ps".
  std::vector<std::string> rounded;

  [[nodiscard]] std::uint32_t flits(std::uint32_t bytes) const {
    return (bytes + flit_bytes - 1) / flit_bytes;
  }
  [[nodiscard]] Time time(std::int64_t cycle) const { return clock.cycles(cycle); }
  // The first cycle that begins at or after `time`.
  [[nodiscard]] std::int64_t cycle_from(Time time) const;
};

// The flit size: as described, otherwise the bytes that the first link moves at a time (DataRate::bytes), or
// that the port moves if there are no links.
[[nodiscard]] std::int64_t flit_bytes_of(const NetworkDescription& description);
// The largest ratio of a flit's duration on a link (on a port without links) to the described duration. It
// differs from 1 because durations are rounded to whole cycles. It is 1 without a clock.
[[nodiscard]] double flit_slowdown(const NetworkDescription& description);
// The same ratio for the ports between routers and cards. A port carries at most one flit per cycle.
[[nodiscard]] double flit_port_slowdown(const NetworkDescription& description);

// Both functions throw std::invalid_argument, which names the key, the value and what was expected.

// Sets only clock, flit size and links. This suffices to convert cycles and flits to times, on any engine.
[[nodiscard]] FlitTiming make_flit_clock(const NetworkDescription& description);
[[nodiscard]] FlitTiming make_flit_timing(const NetworkParameters& parameters);

}  // namespace apenet
