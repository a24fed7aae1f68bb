// Packet: what travels through the network. A plain value.
#pragma once

#include <cstdint>

namespace apenet {

using NodeId = std::uint32_t;

struct Packet {
  NodeId source = 0;
  NodeId destination = 0;
  std::uint32_t payload_bytes = 0;  // as the card counts it
  std::uint32_t wire_bytes = 0;     // with padding, header and footer: what occupies links and buffers
  std::uint64_t message = 0;        // the card's own number for the message this belongs to
  std::uint32_t sequence = 0;       // number of this packet within its message
  std::uint16_t channel = 0;        // the card's virtual channel (queue); orders packets, see network.hpp
  std::uint16_t hops = 0;           // links crossed so far; the network counts
  bool last = false;                // last packet of its message
  std::uint32_t order = 0;          // number within its (source, destination, channel); see resequencer.hpp
};

}  // namespace apenet
