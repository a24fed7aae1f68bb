// InjectionFifos: which of its node's injection FIFOs a packet takes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "network/description.hpp"
#include "network/packet.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// The rule of the machine file (NetworkDescription::injection_rule). All packets that a node sends to another
// one from one queue of its card take one FIFO, so that they keep their order.
//
//   direction    a FIFO for each direction in which links leave the node: that of the packet's first link in
//                dimension order
//   destination  destination mod FIFOs
//   queue        mod FIFOs, the number of the card's queue; each card says what its queues are
class InjectionFifos {
 public:
  // card_channels: NetworkParameters. Requires that require_injection() accepts the network.
  InjectionFifos(const NetworkDescription& network, std::uint32_t card_channels);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  // Packet::channel of a packet on this channel of its card.
  [[nodiscard]] std::uint16_t channel(NodeId source, NodeId destination, std::uint32_t queue,
                                      std::uint16_t card_channel) const {
    if (count_ == 1) return card_channel;
    return static_cast<std::uint16_t>(fifo(source, destination, queue) * card_channels_ + card_channel);
  }

 private:
  [[nodiscard]] std::uint32_t fifo(NodeId source, NodeId destination, std::uint32_t queue) const;

  std::uint32_t count_;
  InjectionRule rule_;
  std::uint32_t card_channels_;
  std::unique_ptr<const DimensionOrderRouting> dimension_order_;  // only for rule direction and several FIFOs
  std::vector<std::uint32_t> direction_of_port_;
};

// Throws std::invalid_argument where the topology cannot have so many FIFOs or ejection ports, or the rule
// needs more.
void require_injection(const NetworkDescription& network);

// The same graph with routers of `count` ports to each node instead of one. The further ones are behind the
// last port of the router. Requires that this is a node's, as on a torus or mesh.
[[nodiscard]] Topology with_local_ports(const Topology& topology, std::uint32_t count);

// The ejection port of a packet by the router's input port through which it came, for a topology made by
// with_local_ports: each direction has a port of its own, in turns if there are fewer.
[[nodiscard]] std::vector<std::uint32_t> ejection_ports_of_inputs(const NetworkDescription& network);

}  // namespace apenet
