#include "network/topology/star_of_rings.hpp"

#include <algorithm>

#include "kernel/refuse.hpp"

namespace apenet {

template <>
TopologyDescription registered<StarOfRingsDescription>() {
  return StarOfRingsDescription{};
}

TopologyKind StarOfRingsDescription::kind() {
  return {.name = "star-of-rings", .link_tables = {"ring", "spoke"}};
}

void list_fields(schema::Fields& fields, StarOfRingsDescription& star) {
  using namespace schema::ranges;
  fields("rings", star.rings, count.up_to(64), "rings around the hub");
  fields("nodes_per_ring", star.nodes_per_ring, count.optional(), "routers of a ring, each with a node");
}

Topology make_topology(const StarOfRingsDescription& star) {
  if (star.rings < 2) refuse_value("network.rings", std::to_string(star.rings), "two rings or more");
  enum Port : std::uint8_t { node_port, next_port, previous_port, hub_port, ports };
  enum LinkClass : std::uint8_t { ring, spoke };
  const std::uint32_t nodes = star.rings * star.nodes_per_ring;
  const RouterId hub = nodes;
  Topology topology(nodes + 1, nodes, numbered_ports(std::max<std::uint32_t>(ports, star.rings)));
  topology.name_router(hub, "hub");
  for (NodeId node = 0; node < nodes; ++node) {
    const std::uint32_t index = node % star.nodes_per_ring;
    const RouterId first = node - index;
    topology.name_router(node, "ring" + std::to_string(node));
    topology.attach(node, {node, node_port});
    if (index == 0) topology.connect({node, hub_port}, {hub, node / star.nodes_per_ring}, spoke);
    if (star.nodes_per_ring == 1) continue;
    topology.connect({node, next_port}, {first + (index + 1) % star.nodes_per_ring, previous_port}, ring);
  }
  return topology;
}

}  // namespace apenet
