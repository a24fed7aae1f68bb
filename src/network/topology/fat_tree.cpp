#include "network/topology/fat_tree.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace apenet {

namespace {

bool are_counts(const std::vector<std::uint32_t>& list) {
  return std::all_of(list.begin(), list.end(),
                     [](std::uint32_t count) { return count >= 1 && count <= FatTreeShape::max_nodes; });
}

}  // namespace

FatTreeShape::FatTreeShape(const FatTreeDescription& description)
    : levels_(static_cast<std::uint32_t>(description.children.size())) {
  if (levels_ < 2 || levels_ > 3 || !are_counts(description.children)) {
    refuse_list(
        "children", description.children,
        "two or three numbers of at least 1: nodes of a leaf, leaves below a switch of the next level, and "
        "with three levels pods below a spine");
  }
  const std::string above = std::to_string(levels_ - 1) +
                            " number(s) of at least 1, one for each level of network.children but the last";
  if (description.parents.size() != levels_ - 1 || !are_counts(description.parents))
    refuse_list("parents", description.parents, above + ": switches above one of that level");
  if (description.cables.size() != levels_ - 1 || !are_counts(description.cables))
    refuse_list("cables", description.cables, above + ": cables to each switch above");
  std::copy(description.children.begin(), description.children.end(), children.begin());
  std::copy(description.parents.begin(), description.parents.end(), parents.begin());
  std::copy(description.cables.begin(), description.cables.end(), cables.begin());
  const auto product = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return a * b > max_nodes ? a * b : a * b * c;  // a product of three factors below 2^22 may overflow
  };
  if (product(children[0], children[1], children[2]) > max_nodes)
    refuse_list("children", description.children, "at most " + std::to_string(max_nodes) + " nodes in all");
  if (product(parents[0], std::max(parents[1], 1U), children[2]) > max_nodes)
    refuse_list("parents", description.parents, "at most " + std::to_string(max_nodes) + " switches in all");
  for (std::uint32_t level = 0; level < levels_; ++level) {
    const std::uint64_t down = level == 0 ? children[0] : std::uint64_t{children[level]} * cables[level - 1];
    const std::uint64_t up = std::uint64_t{parents[level]} * cables[level];
    if (down + up > max_ports) {
      refuse_list(
          level + 1 < levels_ ? "parents" : "children",
          level + 1 < levels_ ? description.parents : description.children,
          "switches of at most " + std::to_string(max_ports) + " ports, not " + std::to_string(down + up));
    }
  }
}

std::uint32_t FatTreeShape::node_count() const {
  return children[0] * children[1] * children[2];
}

std::uint32_t FatTreeShape::switches(std::uint32_t level) const {
  if (level == 0) return children[1] * children[2];
  if (level == 1) return parents[0] * children[2];
  return parents[0] * parents[1];
}

std::uint32_t FatTreeShape::switch_count() const {
  return switches(0) + switches(1) + switches(2);
}

std::uint32_t FatTreeShape::down_ports(std::uint32_t level) const {
  return level == 0 ? children[0] : children[level] * cables[level - 1];
}

std::uint32_t FatTreeShape::up_ports(std::uint32_t level) const {
  return parents[level] * cables[level];
}

std::uint32_t FatTreeShape::ports_per_switch() const {
  std::uint32_t most = 0;
  for (std::uint32_t level = 0; level < levels_; ++level)
    most = std::max(most, down_ports(level) + up_ports(level));
  return most;
}

namespace {

// Connects one switch with one of its parents.
void connect_all(Topology& topology, const FatTreeShape& shape, std::uint32_t level, PortRef child,
                 PortRef parent) {
  for (std::uint32_t cable = 0; cable < shape.cables[level]; ++cable) {
    topology.connect({child.router, shape.down_ports(level) + child.port + shape.parents[level] * cable},
                     {parent.router, parent.port + shape.children[level + 1] * cable}, level);
  }
}

}  // namespace

Topology make_fat_tree(const FatTreeShape& shape) {
  Topology topology(shape.switch_count(), shape.node_count(), numbered_ports(shape.ports_per_switch()));
  constexpr std::array<const char*, 3> two_levels = {"leaf", "spine", ""};
  constexpr std::array<const char*, 3> three_levels = {"leaf", "middle", "spine"};
  RouterId first = 0;
  for (std::uint32_t level = 0; level < shape.levels(); ++level) {
    const std::string kind = (shape.levels() == 2 ? two_levels : three_levels)[level];
    for (std::uint32_t i = 0; i < shape.switches(level); ++i)
      topology.name_router(first + i, kind + std::to_string(i));
    first += shape.switches(level);
  }
  for (NodeId node = 0; node < shape.node_count(); ++node)
    topology.attach(node, {node / shape.children[0], node % shape.children[0]});
  const RouterId first_middle = shape.switches(0);
  const RouterId first_spine = first_middle + shape.switches(1);
  for (std::uint32_t pod = 0; pod < shape.children[2]; ++pod) {
    for (std::uint32_t middle = 0; middle < shape.parents[0]; ++middle) {
      const RouterId router = first_middle + pod * shape.parents[0] + middle;
      for (std::uint32_t leaf = 0; leaf < shape.children[1]; ++leaf)
        connect_all(topology, shape, 0, {pod * shape.children[1] + leaf, middle}, {router, leaf});
      for (std::uint32_t spine = 0; spine < shape.parents[1]; ++spine) {
        connect_all(topology, shape, 1, {router, spine},
                    {first_spine + middle * shape.parents[1] + spine, pod});
      }
    }
  }
  return topology;
}

template <>
TopologyDescription registered<FatTreeDescription>() {
  return FatTreeDescription{};
}

TopologyKind FatTreeDescription::kind() {
  return {
      .name = "fat-tree", .routings = {"destination-mod", "random-up"}, .link_tables = {"leaf", "middle"}};
}

Topology make_topology(const FatTreeDescription& tree) {
  return make_fat_tree(FatTreeShape(tree));
}

std::uint32_t count_nodes(const FatTreeDescription& tree) {
  return FatTreeShape(tree).node_count();
}

std::vector<std::string> link_sections(const FatTreeDescription& tree) {
  return FatTreeDescription::kind().link_sections(tree.parents.size());
}

}  // namespace apenet
