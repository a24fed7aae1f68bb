// up*/down* arrives wherever a path exists, by the shortest one that never goes up after down, has no cycle,
// and spreads destinations.
#include "network/routing/up_down.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel/random.hpp"
#include "network/routing/deadlock.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"
#include "support.hpp"
#include "support/cases.hpp"

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

// The definition of the routing, applied to all routers at once: which ports are equally good at each router.
class PlainUpDown {
 public:
  PlainUpDown(const Topology& topology, const std::vector<RouterId>& roots,
              const std::function<bool(PortRef)>& is_alive)
      : topology_(topology),
        is_alive_(is_alive),
        links_(topology.router_count()),
        level_(topology.router_count(), far) {
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const PortRef next = topology.neighbour({router, port});
        if (next.is_connected() && is_alive({router, port}) && is_alive(next))
          links_[router].emplace_back(port, next.router);
      }
    }
    for (const RouterId root : roots) level_[root] = 0;
    spread_levels();
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      if (level_[router] != far) continue;
      level_[router] = 0;
      spread_levels();
    }
  }

  // The equally good ports of each router on the way to this node. None: no path.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> ports_to(NodeId destination) {
    const PortRef end = topology_.attachment(destination);
    std::vector<std::vector<std::uint32_t>> ports(topology_.router_count());
    if (!is_alive_(end)) return ports;
    measure(end.router);
    for (RouterId router = 0; router < topology_.router_count(); ++router) {
      const bool goes_down = down_[router] != far;
      const std::vector<std::uint32_t>& length = goes_down ? down_ : total_;
      for (const auto& [port, next] : links_[router]) {
        if (length[router] != far && is_up(router, next) != goes_down && length[next] + 1 == length[router])
          ports[router].push_back(port);
      }
    }
    ports[end.router] = {end.port};
    return ports;
  }

  // Whether nodes reach each other wherever links connect their routers.
  [[nodiscard]] bool is_complete() {
    for (NodeId to = 0; to < topology_.endpoint_count(); ++to) {
      if (!is_alive_(topology_.attachment(to))) continue;
      measure(topology_.attachment(to).router);
      std::vector<bool> connected(topology_.router_count());
      connected[topology_.attachment(to).router] = true;
      repeat([&](RouterId router, std::uint32_t /*port*/, RouterId next) {
        if (!connected[next] || connected[router]) return false;
        connected[router] = true;
        return true;
      });
      for (NodeId from = 0; from < topology_.endpoint_count(); ++from) {
        const PortRef begin = topology_.attachment(from);
        if (is_alive_(begin) && connected[begin.router] && total_[begin.router] == far) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t far = 1'000'000;

  [[nodiscard]] bool is_up(RouterId from, RouterId to) const {
    return std::pair(level_[to], to) < std::pair(level_[from], from);
  }
  // Calls change(router, port, next) for all links until it changes nothing any more.
  template <typename Change>
  void repeat(Change change) const {
    for (bool changes = true; changes;) {
      changes = false;
      for (RouterId router = 0; router < topology_.router_count(); ++router) {
        for (const auto& [port, next] : links_[router]) changes = change(router, port, next) || changes;
      }
    }
  }
  static bool shorten(std::uint32_t& length, std::uint32_t other) {
    if (other + 1 >= length) return false;
    length = other + 1;
    return true;
  }
  void spread_levels() {
    repeat([this](RouterId router, std::uint32_t /*port*/, RouterId next) {
      return shorten(level_[router], level_[next]);
    });
  }
  void measure(RouterId target) {
    down_.assign(topology_.router_count(), far);
    down_[target] = 0;
    repeat([this](RouterId router, std::uint32_t /*port*/, RouterId next) {
      return !is_up(router, next) && shorten(down_[router], down_[next]);
    });
    total_ = down_;
    repeat([this](RouterId router, std::uint32_t /*port*/, RouterId next) {
      return down_[router] == far && is_up(router, next) && shorten(total_[router], total_[next]);
    });
  }

  const Topology& topology_;
  const std::function<bool(PortRef)>& is_alive_;
  std::vector<std::vector<std::pair<std::uint32_t, RouterId>>> links_;  // per router: port and other end
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> down_;   // links of the shortest path down to the target
  std::vector<std::uint32_t> total_;  // links of the path
};

// Some cables and routers of a topology, drawn to be dead.
class DrawnDeath {
 public:
  DrawnDeath(const Topology& topology, RandomStream& random) : topology_(topology) {
    for (std::uint64_t count = random.below(topology.router_count()); count > 0; --count) {
      cables_.insert(number({static_cast<RouterId>(random.below(topology.router_count())),
                             static_cast<std::uint32_t>(random.below(topology.ports_per_router()))}));
    }
    if (random.below(2) == 0) router_ = static_cast<RouterId>(random.below(topology.router_count()));
  }
  [[nodiscard]] bool is_alive(PortRef port) const {
    return port.router != router_ && cables_.count(number(port)) == 0;
  }

 private:
  [[nodiscard]] std::uint64_t number(PortRef port) const {
    return std::uint64_t{port.router} * topology_.ports_per_router() + port.port;
  }
  const Topology& topology_;
  std::set<std::uint64_t> cables_;
  RouterId router_ = PortRef{}.router;
};

Topology drawn_topology(RandomStream& random) {
  const auto size = [&](std::uint32_t most) { return static_cast<std::uint32_t>(1 + random.below(most)); };
  switch (random.below(4)) {
    case 0:
      return make_torus(CubeShape({size(5), size(4), size(3)}));
    case 1:
      return make_mesh(CubeShape({size(5), size(4), size(3)}));
    case 2:
      return make_fat_tree(FatTreeShape({{size(3), size(3), size(3)}, {size(3), size(3)}, {size(2), 1}}));
    default:
      return random_graph(random);
  }
}

std::vector<RouterId> drawn_roots(const Topology& topology, RandomStream& random) {
  if (random.below(2) == 0) return suggested_roots(topology);
  std::set<RouterId> roots;
  for (std::uint64_t count = 1 + random.below(4); count > 0; --count)
    roots.insert(static_cast<RouterId>(random.below(topology.router_count())));
  return {roots.begin(), roots.end()};
}

// Asks all pairs of router and destination in a drawn order, twice each on average.
template <typename Check>
void ask_in_drawn_order(const Topology& topology, RandomStream& random, Check check) {
  const std::uint64_t routers = topology.router_count();
  const std::uint64_t pairs = routers * topology.endpoint_count();
  for (std::uint64_t i = 0; i < 2 * pairs; ++i) {
    const std::uint64_t pair = random.below(pairs);
    check(static_cast<RouterId>(pair % routers), static_cast<NodeId>(pair / routers));
  }
}

std::uint32_t port_of(const UpDownRouting& routing, RouterId router, NodeId destination) {
  RouteSteps steps;
  routing.route({.router = router, .destination = destination}, steps);
  return steps.count() == 0 ? RouteCache::none : steps[0].port;
}

TEST(UpDownRouting, FollowsItsDefinitionWhateverTheCacheHolds) {
  int incomplete = 0;
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(120); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 1);
    const Topology topology = drawn_topology(random);
    const DrawnDeath death(topology, random);
    const std::function<bool(PortRef)> is_alive = [&](PortRef port) { return death.is_alive(port); };
    const std::vector<RouterId> roots = drawn_roots(topology, random);
    auto plain = std::make_unique<PlainUpDown>(topology, roots, is_alive);
    if (!plain->is_complete()) {
      ++incomplete;
      plain = std::make_unique<PlainUpDown>(topology, std::vector{roots.front()}, is_alive);
      EXPECT_TRUE(plain->is_complete());
    }
    std::vector<std::vector<std::vector<std::uint32_t>>> expected;
    for (NodeId node = 0; node < topology.endpoint_count(); ++node) expected.push_back(plain->ports_to(node));
    const auto routing = make_up_down(topology, roots, is_alive);
    const auto forgetful = make_up_down(topology, roots, is_alive, 1 + random.below(64));
    ask_in_drawn_order(topology, random, [&](RouterId router, NodeId destination) {
      const std::vector<std::uint32_t>& ports = expected[destination][router];
      const std::uint32_t port = port_of(*routing, router, destination);
      EXPECT_EQ(std::count(ports.begin(), ports.end(), port), ports.empty() ? 0 : 1);
      EXPECT_EQ(port == RouteCache::none, ports.empty());
      EXPECT_EQ(port_of(*forgetful, router, destination), port);
    });
    EXPECT_EQ(find_dependency_cycle(topology, *routing), "");
    if (HasFailure()) return;
  }
  EXPECT_GT(incomplete, 0);
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
