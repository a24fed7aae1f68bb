#include "nic/tnw/next_hops.hpp"

#include <algorithm>
#include <string>

#include "kernel/check.hpp"
#include "kernel/grid.hpp"
#include "kernel/refuse.hpp"

namespace apenet::tnw {

namespace {

CubeShape checked(const TopologyDescription& topology, std::uint32_t links) {
  if (topology.as<TorusDescription>() == nullptr && topology.as<MeshDescription>() == nullptr) {
    refuse_value("network.topology", "neither torus nor mesh",
                 "one of them: the links of a tnw card lead to nearest neighbours");
  }
  const std::size_t dimensions = topology.dims().size();
  if (2 * dimensions > links) {
    refuse_value(
        "network.dims", std::to_string(dimensions) + " dimensions",
        "at most " + std::to_string(links / 2) + ": a tnw card has " + std::to_string(links) + " links");
  }
  return CubeShape(topology.dims());
}

}  // namespace

NextHops::NextHops(const TopologyDescription& topology, std::uint32_t links)
    : shape_(checked(topology, links)), is_torus_(topology.as<TorusDescription>() != nullptr) {}

std::vector<NodeId> NextHops::neighbours(NodeId node) const {
  std::vector<NodeId> found;
  for (std::size_t d = 0; d < shape_.dims().size(); ++d) {
    const GridLine line(shape_.dims(), node, d);
    for (const std::uint32_t step : {1U, line.extent - 1}) {
      const bool wraps = step == 1 ? line.is_last() : line.is_first();
      if (line.extent == 1 || (wraps && !is_torus_)) continue;
      const NodeId neighbour = line.further(node, step);
      if (std::find(found.begin(), found.end(), neighbour) == found.end()) found.push_back(neighbour);
    }
  }
  return found;
}

NodeId NextHops::next_hop(NodeId from, NodeId to) const {
  APENET_CHECK(from != to, "node %u forwards to itself", from);
  std::size_t differing = 0;
  while (GridLine(shape_.dims(), from, differing).coordinate ==
         GridLine(shape_.dims(), to, differing).coordinate)
    ++differing;
  const GridLine line(shape_.dims(), from, differing);
  const std::uint32_t wanted = GridLine(shape_.dims(), to, differing).coordinate;
  const std::uint32_t upwards = (wanted + line.extent - line.coordinate) % line.extent;
  const bool goes_up = is_torus_ ? 2 * upwards <= line.extent : wanted > line.coordinate;
  return line.further(from, goes_up ? 1 : line.extent - 1);
}

}  // namespace apenet::tnw
