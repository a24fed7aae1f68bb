// NetworkTrace: the records of engines about packets, with EventKind::link.
#pragma once

#include <cstdint>

#include "kernel/trace.hpp"
#include "network/packet.hpp"

namespace apenet {

// In every record, a is Packet::message; b is Packet::sequence in the upper and Packet::wire_bytes in the
// lower 32 bits. A packet is identified by message, sequence and source.
enum class NetworkTrace : std::uint16_t {
  injected,  // place: source node; other: destination
  // Place: the link, numbered as in link_statistics(); other: source node; from the departure of the header
  // to that of the tail.
  crossed,
  ejected,     // place: destination node; other: source node; the header leaves the last router's buffer
  delivered,   // place: destination node; other: source node; the tail is in the ejection buffer
  taken_back,  // place and other: source node; the packet starts there again, see docs/models/faults.md
  // Only the packet engine records these, before a header leaves a buffer. Place: the router; other: source
  // node.
  waited,   // it could have left, but the output was busy
  blocked,  // the output was free, but no buffer behind it, or a packet before it was held up
  resent,   // bit errors hold it on a link
};

[[nodiscard]] inline TraceRecord network_record(NetworkTrace what, Time time, Time until, std::uint8_t rail,
                                                std::uint32_t place, std::uint32_t other,
                                                std::uint64_t message, std::uint32_t sequence,
                                                std::uint32_t wire_bytes) {
  return {.time = time,
          .until = until,
          .kind = EventKind::link,
          .rail = rail,
          .what = static_cast<std::uint16_t>(what),
          .place = place,
          .other = other,
          .a = message,
          .b = std::uint64_t{sequence} << 32 | wire_bytes};
}

}  // namespace apenet
