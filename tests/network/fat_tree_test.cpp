// Fat trees are wired as described; d-mod-k is minimal, spreads destinations, and has no cycle.
#include "network/topology/fat_tree.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "network/routing/deadlock.hpp"
#include "network/routing/destination_mod.hpp"
#include "network/topology/crossbar.hpp"
#include "support.hpp"

namespace apenet::testing {
namespace {

const std::vector<FatTreeDescription>& trees() {
  static const std::vector<FatTreeDescription> all = {
      {{4, 3}, {2}, {1}},          {{18, 4}, {3}, {3}},         {{1, 1}, {1}, {1}},
      {{5, 7}, {2}, {3}},          {{4, 4, 4}, {4, 4}, {1, 1}}, {{6, 3, 2}, {2, 3}, {2, 1}},
      {{2, 5, 3}, {1, 2}, {1, 2}}, {{3, 2, 4}, {3, 1}, {1, 3}}};
  return all;
}

TEST(FatTree, HasTheCablesOfItsDescription) {
  for (const FatTreeDescription& description : trees()) {
    const FatTreeShape shape(description);
    const Topology topology = make_fat_tree(shape);
    EXPECT_EQ(topology.endpoint_count(), shape.node_count());
    std::vector<std::uint32_t> cables(shape.levels());
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const PortRef next = topology.neighbour({router, port});
        if (!next.is_connected() || next.router < router) continue;
        EXPECT_EQ(topology.neighbour(next), (PortRef{router, port}));
        ++cables[topology.link_class({router, port})];
      }
    }
    for (std::uint32_t level = 0; level + 1 < shape.levels(); ++level) {
      EXPECT_EQ(cables[level], shape.switches(level) * shape.up_ports(level));
      EXPECT_EQ(cables[level], shape.switches(level + 1) * shape.down_ports(level + 1));
    }
  }
}

TEST(FatTree, NamesItsSwitches) {
  const Topology two = make_fat_tree(FatTreeShape({{4, 3}, {2}, {2}}));
  EXPECT_EQ(two.link_name({2, 4}), "leaf2:4");
  EXPECT_EQ(two.router_name(4), "spine1");
  const Topology three = make_fat_tree(FatTreeShape({{2, 2, 2}, {1, 2}, {1, 1}}));
  EXPECT_EQ(three.router_name(4), "middle0");
  EXPECT_EQ(three.router_name(7), "spine1");
}

TEST(FatTree, RefusesWhatCannotBeBuilt) {
  const auto refused = [](const FatTreeDescription& description) {
    return refusal([&] { const FatTreeShape shape(description); });
  };
  EXPECT_EQ(refused({{4}, {}, {}}).find("network.children = [4]: expected two or three"), 0U);
  EXPECT_EQ(refused({{4, 0}, {1}, {1}}).find("network.children = [4, 0]"), 0U);
  EXPECT_EQ(refused({{4, 2}, {1, 1}, {1}}).find("network.parents = [1, 1]: expected 1 number(s)"), 0U);
  EXPECT_EQ(refused({{4, 2}, {0}, {1}}).find("network.parents = [0]"), 0U);
  EXPECT_EQ(refused({{4, 2, 2}, {1, 1}, {1}}).find("network.cables = [1]: expected 2"), 0U);
  EXPECT_EQ(refused({{4, 2}, {4000}, {1000}}).find("network.parents = [4000]: expected switches of at most"),
            0U);
  EXPECT_EQ(refused({{4000, 4000, 4000}, {1, 1}, {1, 1}}).find("network.children"), 0U);
  EXPECT_EQ(refused({{4, 2}, {4294967295U}, {1}}).find("network.parents"), 0U);
}

TEST(DestinationModRouting, GoesUpOnlyAsFarAsNecessaryAndThenDown) {
  for (const FatTreeDescription& description : trees()) {
    const FatTreeShape shape(description);
    const Topology topology = make_fat_tree(shape);
    const DestinationModRouting routing(shape);
    for (NodeId source = 0; source < shape.node_count(); ++source) {
      for (NodeId destination = 0; destination < shape.node_count(); ++destination) {
        const std::uint32_t leaf = shape.children[0];
        const std::uint32_t pod = leaf * shape.children[1];
        const std::size_t hops =
            source / leaf == destination / leaf ? 0 : (source / pod == destination / pod ? 2 : 4);
        ASSERT_EQ(path_of(topology, routing, source, destination).size(), hops);
      }
    }
    EXPECT_EQ(find_dependency_cycle(topology, routing), "");
  }
}

// Without oversubscription, a shift permutation uses no link twice (Zahavi 2012).
TEST(DestinationModRouting, ShiftsShareNoLinkInAFullTree) {
  for (const FatTreeDescription& description :
       {FatTreeDescription{{4, 4, 4}, {4, 4}, {1, 1}}, {{6, 4}, {3}, {2}}}) {
    const FatTreeShape shape(description);
    const Topology topology = make_fat_tree(shape);
    const DestinationModRouting routing(shape);
    for (NodeId shift = 1; shift < shape.node_count(); ++shift) {
      std::map<std::pair<RouterId, std::uint32_t>, int> uses;
      for (NodeId source = 0; source < shape.node_count(); ++source) {
        for (const PortRef& link : path_of(topology, routing, source, (source + shift) % shape.node_count()))
          ASSERT_EQ(++uses[std::pair(link.router, link.port)], 1) << "shift " << shift;
      }
    }
  }
}

// Every waypoint is another path of minimal length, and together they use every spine and every cable.
TEST(RandomUpRouting, TakesEveryWayUpAndIsMinimal) {
  for (const FatTreeDescription& description : trees()) {
    const FatTreeShape shape(description);
    const Topology topology = make_fat_tree(shape);
    const RandomUpRouting routing(shape);
    EXPECT_EQ(find_dependency_cycle(topology, routing), "");
    const NodeId source = 0;
    const NodeId destination = shape.node_count() - 1;
    if (shape.children[shape.levels() - 1] == 1) continue;  // a single leaf or a single pod
    std::set<std::vector<std::pair<RouterId, std::uint32_t>>> paths;
    for (std::uint32_t waypoint = 0; waypoint < routing.waypoint_count(); ++waypoint) {
      std::vector<std::pair<RouterId, std::uint32_t>> path;
      PortRef at = topology.attachment(source);
      while (at.router != topology.attachment(destination).router) {
        RouteSteps steps;
        routing.route({at.router, destination, at.port, 0, path.empty(), waypoint}, steps);
        path.emplace_back(at.router, steps[0].port);
        at = topology.neighbour({at.router, steps[0].port});
        ASSERT_TRUE(at.is_connected() && path.size() <= 4);
      }
      EXPECT_EQ(path.size(), 2 * (shape.levels() - 1));
      paths.insert(path);
    }
    EXPECT_EQ(paths.size(), shape.up_ports(0) * (shape.levels() == 2 ? 1 : shape.up_ports(1)));
  }
}

TEST(Crossbar, IsOneSwitch) {
  const Topology topology = make_topology(CrossbarDescription{5});
  EXPECT_EQ(topology.router_count(), 1U);
  EXPECT_EQ(topology.attachment(3), (PortRef{0, 3}));
  EXPECT_EQ(refusal([] { (void)make_topology(CrossbarDescription{0}); }),
            "network.nodes = 0: expected 1 to 16384");
}

}  // namespace
}  // namespace apenet::testing
