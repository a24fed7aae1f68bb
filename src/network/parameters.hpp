// NetworkParameters: everything that an engine needs to build a network.
#pragma once

#include <cstdint>

#include "network/description.hpp"

namespace apenet {

// The machine's description, and the parameters that depend on the card.
struct NetworkParameters {
  NetworkDescription description;
  std::uint32_t card_channels = 1;  // injection FIFOs per node; Packet::channel is smaller
  // The largest Packet::wire_bytes; every buffer must hold one such packet.
  std::uint32_t max_packet_wire_bytes = 0;
  // Cards rely on the packet order of network.hpp. A generator of independent packets does not, and then the
  // network is measured without the Resequencer.
  bool needs_order = true;
};

}  // namespace apenet
