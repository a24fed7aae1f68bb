// The factory of networks: description in, engine out.
#pragma once

#include <cstdint>
#include <memory>

#include "kernel/simulation.hpp"
#include "network/description.hpp"
#include "network/network.hpp"

namespace apenet {

// What the card must tell the network beside the machine's description.
struct NetworkParameters {
  NetworkDescription description;
  std::uint32_t card_channels = 1;          // injection FIFOs per node; Packet::channel is below it
  std::uint32_t max_packet_wire_bytes = 0;  // the largest Packet::wire_bytes; every buffer must hold one
  // Cards count on the order of network.hpp; a generator whose packets have nothing to do with each other
  // does not, and measures the network without what restores it.
  bool needs_order = true;
};

// Throws std::invalid_argument naming the key, its value and what was expected.
[[nodiscard]] std::unique_ptr<Network> make_network(Simulation& simulation,
                                                    const NetworkParameters& parameters);

}  // namespace apenet
