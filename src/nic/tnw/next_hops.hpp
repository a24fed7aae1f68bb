// NextHops: the neighbours of each node, and the next neighbour on the way to any other node.
#pragma once

#include <vector>

#include "network/topology/cube.hpp"

namespace apenet::tnw {

// The next hop follows dimension order, lowest dimension first, in the shorter direction; in the positive one
// if both are equal.
class NextHops {
 public:
  // Throws std::invalid_argument, which names network.topology or network.dims, unless the network is a torus
  // or mesh of at most `links` / 2 dimensions.
  NextHops(const TopologyDescription& topology, std::uint32_t links);

  // Each neighbour once, in the order of the ports.
  [[nodiscard]] std::vector<NodeId> neighbours(NodeId node) const;
  // Requires from != to.
  [[nodiscard]] NodeId next_hop(NodeId from, NodeId to) const;

 private:
  CubeShape shape_;
  const bool is_torus_;
};

}  // namespace apenet::tnw
