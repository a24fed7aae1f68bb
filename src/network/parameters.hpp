// NetworkParameters: all that an engine needs to build a network.
#pragma once

#include <cstdint>

#include "network/description.hpp"

namespace apenet {

// The machine's description, and what the card must tell the network beside it.
struct NetworkParameters {
  NetworkDescription description;
  std::uint32_t card_channels = 1;          // injection FIFOs per node; Packet::channel is below it
  std::uint32_t max_packet_wire_bytes = 0;  // the largest Packet::wire_bytes; every buffer must hold one
  // Cards count on the order of network.hpp; a generator whose packets have nothing to do with each other
  // does not, and measures the network without what restores it.
  bool needs_order = true;
};

}  // namespace apenet
