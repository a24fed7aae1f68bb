// TnwGrid: who is whose neighbour, and which neighbour is the next on the way to a stranger.
#pragma once

#include <vector>

#include "network/description.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// The next neighbour is that of dimension order, lowest dimension first, the shorter way around, + of equals.
class TnwGrid {
 public:
  // Throws std::invalid_argument naming network.topology or network.dims unless it is a torus or a mesh of at
  // most `links` / 2 dimensions.
  TnwGrid(const NetworkDescription& network, std::uint32_t links);

  // Each once, in the order of the ports.
  [[nodiscard]] std::vector<NodeId> neighbours(NodeId node) const;
  // Requires from != to.
  [[nodiscard]] NodeId next_hop(NodeId from, NodeId to) const;

 private:
  CubeShape shape_;
  bool is_torus_;
};

}  // namespace apenet
