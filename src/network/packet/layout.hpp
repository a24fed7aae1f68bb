// PacketLayout: where the queues and outputs of routers and nodes stand in the packet engine's arrays.
#pragma once

#include <cstdint>

#include "network/packet.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Queues: one for each (router, port, virtual channel), then one for each (node, card channel), then the
// ejection buffer of each node, of which only the room counts. Outputs: one for each (router, port), then the
// injection port of each node.
struct PacketLayout {
  PacketLayout(const Topology& topology, std::uint32_t virtual_channels_per_link,
               std::uint32_t channels_per_card)
      : routers(topology.router_count()),
        ports(topology.ports_per_router()),
        virtual_channels(virtual_channels_per_link),
        card_channels(channels_per_card),
        first_injection_queue(routers * ports * virtual_channels),
        first_ejection_buffer(first_injection_queue + topology.endpoint_count() * card_channels) {}

  std::uint32_t routers;
  std::uint32_t ports;  // per router
  std::uint32_t virtual_channels;
  std::uint32_t card_channels;
  std::uint32_t first_injection_queue;
  std::uint32_t first_ejection_buffer;

  [[nodiscard]] bool is_injection(std::uint32_t queue) const { return queue >= first_injection_queue; }
  // First queue of a router, or of a node's card: the owner is the router, or `routers` and the node.
  [[nodiscard]] std::uint32_t first_queue(std::uint32_t owner) const {
    return owner < routers ? owner * ports * virtual_channels
                           : first_injection_queue + (owner - routers) * card_channels;
  }
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t queue) const {
    return is_injection(queue) ? routers + (queue - first_injection_queue) / card_channels
                               : queue / (ports * virtual_channels);
  }
  [[nodiscard]] std::uint32_t injection_queue(NodeId node, std::uint16_t channel) const {
    return first_injection_queue + node * card_channels + channel;
  }
  [[nodiscard]] std::uint32_t injection_output(NodeId node) const { return routers * ports + node; }
};

}  // namespace apenet
