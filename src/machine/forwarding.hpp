// Forwarding: the work of the software that forwards messages between nodes that are not neighbours.
#pragma once

#include <cstdint>

#include "machine/description.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_set.hpp"

namespace apenet {

// Only for cards whose links lead to neighbours in a torus or mesh (CardTraits::forwards_by_software). On all
// other machines the network reaches every node, and nothing is forwarded.
class Forwarding {
 public:
  explicit Forwarding(const MachineDescription& machine);

  [[nodiscard]] bool is_by_software() const { return is_by_software_; }
  // The packets of a message times the links on its way: what the simulator works for it. Zero between
  // neighbours. Requires is_by_software().
  [[nodiscard]] std::uint64_t packet_hops(NodeId from, NodeId to, std::int64_t bytes) const;

 private:
  CardTraits traits_;
  bool is_by_software_;
  CubeShape shape_;
  bool wraps_;
};

}  // namespace apenet
