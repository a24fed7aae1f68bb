// PacketLayout: where the queues and outputs of routers and nodes stand in the packet engine's arrays.
#pragma once

#include <cstdint>

#include "network/description.hpp"
#include "network/packet.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Queues: one for each (router, port, virtual channel), then one for each (node, Packet::channel), then the
// ejection buffers of each node, one for each ejection port, of which only the room counts. Outputs: one for
// each (router, port), then the injection ports of each node, one for each injection FIFO of a card channel.
struct PacketLayout {
  PacketLayout(const Topology& topology, const NetworkParameters& parameters)
      : routers(topology.router_count()),
        ports(topology.ports_per_router()),
        virtual_channels(parameters.description.virtual_channels),
        card_channels(parameters.card_channels),
        injection_ports(parameters.description.injection_fifos),
        ejection_ports(parameters.description.ejection_ports),
        has_several_ports(parameters.description.local_ports() > 1),
        attachment_port(ports - parameters.description.local_ports()),
        fifos(parameters.fifos_of_node()),
        first_injection_queue(routers * ports * virtual_channels),
        first_ejection_buffer(first_injection_queue + topology.endpoint_count() * fifos) {}

  std::uint32_t routers;
  std::uint32_t ports;  // per router
  std::uint32_t virtual_channels;
  std::uint32_t card_channels;
  std::uint32_t injection_ports;  // per node
  std::uint32_t ejection_ports;
  bool has_several_ports;         // several ports of either kind
  std::uint32_t attachment_port;  // the last port of a router but those further ones
  std::uint32_t fifos;            // per node
  std::uint32_t first_injection_queue;
  std::uint32_t first_ejection_buffer;

  [[nodiscard]] bool is_injection(std::uint32_t queue) const { return queue >= first_injection_queue; }
  // First queue of a router, or of a node's card: the owner is the router, or `routers` and the node.
  [[nodiscard]] std::uint32_t first_queue(std::uint32_t owner) const {
    return owner < routers ? owner * ports * virtual_channels
                           : first_injection_queue + (owner - routers) * fifos;
  }
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t queue) const {
    return is_injection(queue) ? routers + (queue - first_injection_queue) / fifos
                               : queue / (ports * virtual_channels);
  }
  [[nodiscard]] std::uint32_t injection_queue(NodeId node, std::uint16_t channel) const {
    return first_injection_queue + node * fifos + channel;
  }
  [[nodiscard]] std::uint32_t ejection_buffer(NodeId node, std::uint32_t port) const {
    return first_ejection_buffer + node * ejection_ports + port;
  }
  [[nodiscard]] std::uint32_t injection_output(NodeId node, std::uint16_t channel) const {
    if (injection_ports == 1) [[likely]]
      return routers * ports + node;
    return routers * ports + node * injection_ports + channel / card_channels;
  }
  [[nodiscard]] std::uint32_t injection_outputs() const {
    return (first_ejection_buffer - first_injection_queue) / card_channels;
  }
  // The channel of the card whose packets are in this FIFO.
  [[nodiscard]] std::uint32_t card_channel(std::uint16_t channel) const {
    return injection_ports == 1 ? channel : channel % card_channels;
  }
};

}  // namespace apenet
