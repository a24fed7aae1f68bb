#include "network/routing/arrangement.hpp"

#include <utility>

#include "kernel/refuse.hpp"
#include "network/routing/adaptive_routing.hpp"
#include "network/routing/deadlock.hpp"
#include "network/routing/destination_mod.hpp"
#include "network/routing/table_routing.hpp"
#include "network/routing/up_down.hpp"
#include "network/topology/fat_tree.hpp"
#include "network/topology/graph.hpp"

namespace apenet {

namespace {

using TopologyKind = NetworkDescription::Topology;
using RoutingKind = NetworkDescription::Routing;

bool is_cube(TopologyKind topology) {
  return topology == TopologyKind::torus || topology == TopologyKind::mesh;
}

void require_links(const NetworkDescription& description, std::size_t expected, const std::string& reason) {
  if (description.links.size() == expected) return;
  refuse_value("network.links", std::to_string(description.links.size()) + " entries",
               std::to_string(expected) + ": " + reason);
}

void require_kind(const NetworkDescription& description, bool fits, const std::string& topologies) {
  if (fits) return;
  refuse_value("network.routing", name_of(description.routing),
               "a routing for network.topology = " + name_of(description.topology) + "; " +
                   name_of(description.routing) + " is for " + topologies);
}

}  // namespace

std::string name_of(TopologyKind topology) {
  switch (topology) {
    case TopologyKind::none:
      return "none";
    case TopologyKind::torus:
      return "torus";
    case TopologyKind::mesh:
      return "mesh";
    case TopologyKind::fat_tree:
      return "fat-tree";
    case TopologyKind::crossbar:
      return "crossbar";
    case TopologyKind::graph:
      return "graph";
  }
  return "unknown";
}

std::string name_of(RoutingKind routing) {
  switch (routing) {
    case RoutingKind::dimension_order:
      return "dimension-order";
    case RoutingKind::dimension_order_entry_class:
      return "dimension-order-entry-class";
    case RoutingKind::minimal_adaptive:
      return "minimal-adaptive";
    case RoutingKind::destination_mod:
      return "destination-mod";
    case RoutingKind::up_down:
      return "up-down";
    case RoutingKind::table:
      return "table";
  }
  return "unknown";
}

Topology make_topology(const NetworkDescription& description) {
  switch (description.topology) {
    case TopologyKind::none:
      break;
    case TopologyKind::torus:
    case TopologyKind::mesh: {
      const CubeShape shape(description.dims);
      require_links(description, description.dims.size(), "one for each dimension of network.dims");
      return description.topology == TopologyKind::torus ? make_torus(shape) : make_mesh(shape);
    }
    case TopologyKind::fat_tree: {
      const FatTreeShape shape(description.fat_tree);
      require_links(description, shape.levels() - 1, "one for each level of cables between switches");
      return make_fat_tree(shape);
    }
    case TopologyKind::crossbar:
      require_links(description, 0, "a crossbar has no links between routers");
      return make_crossbar(description.nodes);
    case TopologyKind::graph:
      require_links(description, 1 + description.link_names.size(), "the default, and one for each name");
      return read_graph(description.graph, description.link_names);
  }
  refuse_value("network.topology", "none",
               "torus, mesh, fat-tree, crossbar or graph for a card that sends packets");
}

std::uint32_t count_network_nodes(const NetworkDescription& description) {
  switch (description.topology) {
    case TopologyKind::none:
    case TopologyKind::graph:
      return make_topology(description).endpoint_count();
    case TopologyKind::torus:
    case TopologyKind::mesh:
      return CubeShape(description.dims).node_count();
    case TopologyKind::fat_tree:
      return FatTreeShape(description.fat_tree).node_count();
    case TopologyKind::crossbar:
      return make_crossbar(description.nodes).endpoint_count();
  }
  return 0;
}

std::unique_ptr<const Routing> make_routing(const NetworkDescription& description, const Topology& topology) {
  const bool is_torus = description.topology == TopologyKind::torus;
  switch (description.routing) {
    case RoutingKind::dimension_order:
      require_kind(description, is_cube(description.topology), "torus and mesh");
      return std::make_unique<DimensionOrderRouting>(CubeShape(description.dims), is_torus);
    case RoutingKind::dimension_order_entry_class:
      require_kind(description, is_torus, "torus");
      return std::make_unique<DimensionOrderEntryRouting>(CubeShape(description.dims));
    case RoutingKind::minimal_adaptive:
      require_kind(description, is_cube(description.topology), "torus and mesh");
      return std::make_unique<MinimalAdaptiveRouting>(CubeShape(description.dims), is_torus);
    case RoutingKind::destination_mod:
      require_kind(description, description.topology == TopologyKind::fat_tree, "fat-tree");
      return std::make_unique<DestinationModRouting>(FatTreeShape(description.fat_tree));
    case RoutingKind::up_down:
      return make_up_down(topology, suggested_roots(topology), [](PortRef) { return true; });
    case RoutingKind::table:
      return read_table(description.table, topology,
                        is_cube(description.topology) ? description.dims : std::vector<std::uint32_t>{});
  }
  refuse_value("network.routing", "unknown", "one of the known routings");
}

void require_no_deadlock(const NetworkDescription& description, const Topology& topology,
                         const Routing& routing) {
  const std::string cycle = find_dependency_cycle(topology, routing);
  if (cycle.empty()) return;
  const bool is_table = description.routing == RoutingKind::table;
  refuse_value(is_table ? "network.table_file" : "network.routing",
               is_table ? "routes that can deadlock" : name_of(description.routing),
               "a routing without a cycle of channels that wait for each other, not " + cycle);
}

ArrangementFacts inspect_arrangement(const NetworkDescription& description) {
  const Topology topology = make_topology(description);
  const auto routing = make_routing(description, topology);
  const DeadlockReport report = check_deadlock(topology, *routing);
  ArrangementFacts facts;
  facts.nodes = topology.endpoint_count();
  facts.routers = topology.router_count();
  facts.ports_per_router = topology.ports_per_router();
  std::uint32_t links = 0;
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port)
      links += topology.neighbour({router, port}).is_connected() ? 1U : 0U;
  }
  facts.cables = links / 2;
  facts.channel_classes = routing->class_count();
  facts.is_free_of_deadlock = report.cycle.empty();
  facts.proof = report.proof();
  return facts;
}

}  // namespace apenet
