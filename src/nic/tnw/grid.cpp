#include "nic/tnw/grid.hpp"

#include <algorithm>
#include <string>

#include "kernel/check.hpp"
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

Grid::Grid(const TopologyDescription& topology, std::uint32_t links)
    : shape_(checked(topology, links)), is_torus_(topology.as<TorusDescription>() != nullptr) {}

std::vector<NodeId> Grid::neighbours(NodeId node) const {
  std::vector<NodeId> found;
  const std::vector<std::uint32_t> here = shape_.coordinates(node);
  for (std::size_t d = 0; d < here.size(); ++d) {
    const std::uint32_t extent = shape_.dims()[d];
    for (const std::uint32_t step : {1U, extent - 1}) {
      const bool wraps = step == 1 ? here[d] + 1 == extent : here[d] == 0;
      if (extent == 1 || (wraps && !is_torus_)) continue;
      std::vector<std::uint32_t> there = here;
      there[d] = (here[d] + step) % extent;
      const NodeId neighbour = shape_.node(there);
      if (std::find(found.begin(), found.end(), neighbour) == found.end()) found.push_back(neighbour);
    }
  }
  return found;
}

NodeId Grid::next_hop(NodeId from, NodeId to) const {
  std::vector<std::uint32_t> here = shape_.coordinates(from);
  const std::vector<std::uint32_t> there = shape_.coordinates(to);
  const auto differs = std::mismatch(here.begin(), here.end(), there.begin());
  APENET_CHECK(differs.first != here.end(), "node %u forwards to itself", from);
  const std::uint32_t extent = shape_.dims()[static_cast<std::size_t>(differs.first - here.begin())];
  const std::uint32_t upwards = (*differs.second + extent - *differs.first) % extent;
  const bool goes_up = is_torus_ ? 2 * upwards <= extent : *differs.second > *differs.first;
  *differs.first = (*differs.first + (goes_up ? 1 : extent - 1)) % extent;
  return shape_.node(here);
}

}  // namespace apenet::tnw
