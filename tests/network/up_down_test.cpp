// up*/down* arrives wherever a path exists, never goes up after down, has no cycle, and spreads destinations.
#include "network/routing/up_down.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "network/routing/deadlock.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"
#include "support.hpp"

namespace apenet::testing {
namespace {

bool always(PortRef) {
  return true;
}

// A random connected graph: a random tree with some additional cables, and one or two nodes per router.
Topology random_graph(RandomStream& random) {
  const auto routers = static_cast<std::uint32_t>(2 + random.below(30));
  constexpr std::uint32_t max_ports = 12;
  const auto nodes = static_cast<std::uint32_t>(routers + random.below(routers));
  Topology topology(routers, nodes, numbered_ports(max_ports + 2));
  std::vector<std::uint32_t> used(routers);
  const auto connect = [&](RouterId one, RouterId other) {
    if (one == other || used[one] == max_ports || used[other] == max_ports) return;
    topology.connect({one, used[one]++}, {other, used[other]++}, 0);
  };
  for (RouterId router = 0; router < routers; ++router)
    topology.name_router(router, "r" + std::to_string(router));
  for (RouterId router = 1; router < routers; ++router) {
    auto above = static_cast<RouterId>(random.below(router));
    while (used[above] == max_ports) above = (above + 1) % router;
    connect(router, above);
  }
  for (std::uint64_t extra = random.below(2UL * routers); extra > 0; --extra)
    connect(static_cast<RouterId>(random.below(routers)), static_cast<RouterId>(random.below(routers)));
  for (NodeId node = 0; node < nodes; ++node)
    topology.attach(node, {node % routers, max_ports + node / routers});
  return topology;
}

TEST(UpDownRouting, ArrivesWithoutCycleOnRandomGraphs) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 0);
    const Topology topology = random_graph(random);
    const auto routing =
        make_up_down(topology, {static_cast<RouterId>(random.below(topology.router_count()))}, always);
    EXPECT_EQ(find_dependency_cycle(topology, *routing), "");
    for (NodeId source = 0; source < topology.endpoint_count(); ++source) {
      for (NodeId destination = 0; destination < topology.endpoint_count(); ++destination)
        path_of(topology, *routing, source, destination);
    }
    if (HasFailure()) return;
  }
}

TEST(UpDownRouting, AvoidsDeadCablesAndRouters) {
  for (const bool is_torus : {true, false}) {
    const CubeShape shape({4, 3, 3});
    const Topology topology = is_torus ? make_torus(shape) : make_mesh(shape);
    const NodeId dead_node = shape.node({1, 1, 1});
    const PortRef dead_cable{0, CubeShape::plus_port(0)};
    const auto is_alive = [&](PortRef port) {
      return port.router != dead_node && port != dead_cable;  // one dead direction is enough
    };
    const auto routing = make_up_down(topology, {0}, is_alive);
    EXPECT_EQ(find_dependency_cycle(topology, *routing), "");
    for (NodeId source = 0; source < shape.node_count(); ++source) {
      for (NodeId destination = 0; destination < shape.node_count(); ++destination) {
        const bool is_lost = source == dead_node || destination == dead_node;
        EXPECT_EQ(routing->reaches(source, destination), !is_lost);
        if (is_lost) continue;
        for (const PortRef& port : path_of(topology, *routing, source, destination)) {
          EXPECT_NE(topology.neighbour(port).router, dead_node);
          EXPECT_NE(port, dead_cable);
          EXPECT_NE(topology.neighbour(port), dead_cable);
        }
      }
    }
  }
}

TEST(UpDownRouting, ReportsIslands) {
  const Topology topology = make_mesh(CubeShape({5}));
  const auto routing = make_up_down(topology, {4}, [](PortRef port) { return port != PortRef{2, 0}; });
  EXPECT_TRUE(routing->reaches(3, 4));
  EXPECT_TRUE(routing->reaches(2, 0));
  EXPECT_FALSE(routing->reaches(2, 3));
  RouteSteps steps;
  routing->route({2, 3, 2, 0, true}, steps);
  EXPECT_EQ(steps.count(), 0U);
  EXPECT_FALSE(make_up_down(topology, {0}, [](PortRef) { return false; })->reaches(0, 0));
}

TEST(UpDownRouting, OnAFatTreeIsMinimalAndSpreadsDestinations) {
  const FatTreeShape shape({{4, 4}, {4}, {1}});
  const Topology topology = make_fat_tree(shape);
  EXPECT_EQ(suggested_roots(topology), (std::vector<RouterId>{4, 5, 6, 7}));  // the spines
  const auto routing = make_up_down(topology, suggested_roots(topology), always);
  for (RouterId leaf = 0; leaf < 4; ++leaf) {
    std::vector<int> uses(topology.ports_per_router());
    for (NodeId node = 0; node < 16; ++node) {
      if (node / 4 == leaf) continue;
      const std::vector<PortRef> path = path_of(topology, *routing, leaf * 4, node);
      EXPECT_EQ(path.size(), 2U);
      ++uses[path.front().port];
    }
    EXPECT_EQ(uses, (std::vector<int>{0, 0, 0, 0, 3, 3, 3, 3}));
  }
}

// Leaf 0 keeps only its cable to spine 4, leaf 1 only that to spine 5, so no root is above both.
TEST(UpDownRouting, UsesOneRootIfSeveralDoNotConnectAllNodes) {
  const FatTreeShape shape({{2, 3}, {3}, {1}});
  const Topology topology = make_fat_tree(shape);
  const auto is_alive = [](PortRef port) {
    return !(port.router == 0 && port.port >= 3) && !(port.router == 1 && port.port >= 2 && port.port != 3);
  };
  const auto routing = make_up_down(topology, suggested_roots(topology), is_alive);
  EXPECT_EQ(path_of(topology, *routing, 0, 2).size(), 4U);
  EXPECT_EQ(find_dependency_cycle(topology, *routing), "");
}

TEST(SuggestedRoots, OfDirectNetworksAreInTheMiddle) {
  EXPECT_EQ(suggested_roots(make_mesh(CubeShape({9}))), (std::vector<RouterId>{4}));
  EXPECT_EQ(suggested_roots(make_topology(CrossbarDescription{3})), (std::vector<RouterId>{0}));
}

}  // namespace
}  // namespace apenet::testing
