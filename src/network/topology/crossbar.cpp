#include "network/topology/crossbar.hpp"

#include "kernel/refuse.hpp"

namespace apenet {

template <>
TopologyDescription registered<CrossbarDescription>() {
  return CrossbarDescription{};
}

TopologyKind CrossbarDescription::kind() {
  return {.name = "crossbar", .has_links = false};
}

Topology make_topology(const CrossbarDescription& crossbar) {
  constexpr std::uint32_t max_nodes = 16384;  // each output of an engine has one bit per input
  const std::uint32_t nodes = crossbar.nodes;
  if (nodes < 1 || nodes > max_nodes) {
    refuse_value("network.nodes", std::to_string(nodes), "1 to " + std::to_string(max_nodes));
  }
  Topology topology(1, nodes, numbered_ports(nodes));
  topology.name_router(0, "switch");
  for (NodeId node = 0; node < nodes; ++node) topology.attach(node, {0, node});
  return topology;
}

}  // namespace apenet
