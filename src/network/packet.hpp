// Packet: the unit that travels through the network. A plain value.
#pragma once

#include <cstdint>

namespace apenet {

using NodeId = std::uint32_t;

struct Packet {
  NodeId source = 0;
  NodeId destination = 0;
  std::uint32_t payload_bytes = 0;  // counted by the card
  std::uint32_t wire_bytes = 0;     // including padding, header and footer: what occupies links and buffers
  std::uint64_t message = 0;        // the card's number of the message to which the packet belongs
  std::uint32_t sequence = 0;       // index of the packet within its message
  // The injection FIFO: that of the card's virtual channel, or one of several
  // (network/routing/injection_fifos.hpp). Packets of one channel stay in order, see network.hpp.
  std::uint16_t channel = 0;
  std::uint16_t hops = 0;          // links crossed so far, counted by the network
  bool last = false;               // last packet of its message
  std::uint8_t ejection_port = 0;  // port of the destination, set by the network
  std::uint32_t order = 0;         // number within its (source, destination, channel); see resequencer.hpp
};

}  // namespace apenet
