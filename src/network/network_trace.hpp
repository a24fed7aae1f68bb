// NetworkTrace: what engines record of packets, with EventKind::link.
#pragma once

#include <cstdint>

#include "kernel/trace.hpp"
#include "network/packet.hpp"

namespace apenet {

// Of every record: a is Packet::message, b is Packet::sequence above Packet::wire_bytes (32 bits each). A
// packet is told from all others by its message, sequence and source.
enum class NetworkTrace : std::uint16_t {
  injected,    // place: source node; other: destination
  crossed,     // place: the link, numbered as in link_statistics(); other: source node; from the header's
               // departure until the tail's
  ejected,     // place: destination node; other: source node; the header leaves the last router's buffer
  delivered,   // place: destination node; other: source node; the tail is in the ejection buffer
  taken_back,  // place and other: source node; it starts there again, see docs/models/faults.md
};

[[nodiscard]] inline TraceRecord network_record(NetworkTrace what, Time time, Time until, std::uint32_t place,
                                                std::uint32_t other, std::uint64_t message,
                                                std::uint32_t sequence, std::uint32_t wire_bytes) {
  return {.time = time,
          .until = until,
          .kind = EventKind::link,
          .what = static_cast<std::uint16_t>(what),
          .place = place,
          .other = other,
          .a = message,
          .b = std::uint64_t{sequence} << 32 | wire_bytes};
}

}  // namespace apenet
