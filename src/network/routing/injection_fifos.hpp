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
// one from one queue of its card take one FIFO, so that they keep their order. With rule least_loaded the
// caller sees to that: it asks again only when the earlier packets of that queue have arrived.
//
//   direction    a FIFO for each direction in which links leave the node: that of the packet's first link in
//                dimension order
//   destination  destination mod FIFOs
//   queue        mod FIFOs, the number of the card's queue; each card says what its queues are
//   least_loaded the FIFO with the fewest bytes, of equal ones the first. Only packets of descriptors choose;
//                those that the card makes by itself, such as acknowledgements, follow rule queue
class InjectionFifos {
 public:
  // card_channels: NetworkParameters. Requires that require_injection() accepts the network.
  InjectionFifos(const NetworkDescription& network, std::uint32_t card_channels);

  [[nodiscard]] std::uint32_t count() const { return count_; }
  // Whether descriptors choose by least_loaded() instead of channel().
  [[nodiscard]] bool is_least_loaded() const { return count_ > 1 && rule_ == InjectionRule::least_loaded; }
  // load_of(channel): the bytes in a FIFO and in front of it, or what differs from them by a constant.
  template <typename LoadOf>
  [[nodiscard]] std::uint16_t least_loaded(std::uint16_t card_channel, const LoadOf& load_of) const {
    std::uint16_t least = card_channel;
    std::int64_t least_load = load_of(least);
    for (std::uint32_t fifo = 1; fifo < count_; ++fifo) {
      const auto channel = static_cast<std::uint16_t>(fifo * card_channels_ + card_channel);
      const std::int64_t load = load_of(channel);
      if (load < least_load) {
        least = channel;
        least_load = load;
      }
    }
    return least;
  }
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
  std::unique_ptr<const Routing> dimension_order_;  // only for rule direction and several FIFOs
  std::vector<std::uint32_t> direction_of_port_;
};

// Throws std::invalid_argument where the topology cannot have so many FIFOs or ejection ports, or the rule
// needs more.
void require_injection(const NetworkDescription& network);

// The same graph with routers of `count` ports to each node instead of one. The further ones are behind the
// last port of the router. Requires that this is a node's, as on a torus or mesh.
[[nodiscard]] Topology with_local_ports(const Topology& topology, std::uint32_t count);

// The ejection port that a packet takes. With rule `queue` its FIFO decides: the unit of the destination's
// card that corresponds to the one that sent it. With the other rules it is the router's input port by which
// the packet came: each direction has an ejection port of its own. In turns if there are fewer ports.
class EjectionPorts {
 public:
  EjectionPorts(const NetworkDescription& network, std::uint32_t card_channels);

  // input_port: of a router of a topology made by with_local_ports. channel: Packet::channel.
  [[nodiscard]] std::uint32_t port(std::uint32_t input_port, std::uint16_t channel) const {
    return follows_fifo_ ? channel / card_channels_ % count_ : port_of_input_[input_port];
  }

 private:
  std::uint32_t count_;
  std::uint32_t card_channels_;
  bool follows_fifo_;
  std::vector<std::uint32_t> port_of_input_;
};

}  // namespace apenet
