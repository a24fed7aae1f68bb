#include "machine/peer_queues.hpp"

#include "network/topology/cube.hpp"

namespace apenet {

PeerQueues::PeerQueues(const TopologyDescription& topology, std::uint32_t queues)
    : queues_(queues), is_torus_(topology.as<TorusDescription>() != nullptr) {
  if (!is_torus_ && topology.as<MeshDescription>() == nullptr) return;
  std::uint32_t directions = 0;
  for (const std::uint32_t size : topology.dims()) {
    dimensions_.push_back({size, directions});
    directions += size > 2 ? 2 : size - 1;
  }
}

// Dimension order, in the shorter direction: the way that the messages take with the usual routing.
std::uint16_t PeerQueues::queue(NodeId from, NodeId to) const {
  if (queues_ == 1 || from == to) return 0;
  for (const Dimension& dimension : dimensions_) {
    const std::uint32_t here = from % dimension.size;
    const std::uint32_t there = to % dimension.size;
    from /= dimension.size;
    to /= dimension.size;
    if (here == there) continue;
    const std::uint32_t ahead = there > here ? there - here : there + dimension.size - here;
    const bool is_minus = is_torus_ ? 2 * ahead > dimension.size : there < here;
    const bool has_two = dimension.size > 2;
    const std::uint32_t direction = dimension.first_direction + (has_two && is_minus ? 1 : 0);
    return static_cast<std::uint16_t>(direction % queues_);
  }
  return static_cast<std::uint16_t>(to % queues_);
}

}  // namespace apenet
