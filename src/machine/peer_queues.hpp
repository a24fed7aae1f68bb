// PeerQueues: the hardware queue of the card for the messages between two nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet.hpp"
#include "network/topology/description.hpp"

namespace apenet {

// A descriptor that waits in a queue of a card, for example for a busy link, blocks all behind it. So the
// library of a torus or mesh gives each direction in which messages leave the node a queue of its own, in
// rotation if there are fewer queues than directions: then the directions of the first dimensions share none.
// Elsewhere it spreads the targets. The queue is a function of the two nodes alone: all messages from one to
// the other use one queue, and so keep their order.
class PeerQueues {
 public:
  // queues: NicCapabilities::peer_queues.
  PeerQueues(const TopologyDescription& topology, std::uint32_t queues);
  [[nodiscard]] std::uint16_t queue(NodeId from, NodeId to) const;

 private:
  // A dimension of a torus or mesh, and the number of its + direction. A dimension of two nodes has one
  // direction, a larger one two.
  struct Dimension {
    std::uint32_t size = 1;
    std::uint32_t first_direction = 0;
  };

  std::uint32_t queues_;
  bool is_torus_;
  std::vector<Dimension> dimensions_;  // empty: neither torus nor mesh
};

}  // namespace apenet
