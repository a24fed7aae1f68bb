// Twisted tori: wiring, shortest ways, routing, and the load of the links.
#include "network/topology/twisted_torus.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/routing/deadlock.hpp"
#include "network/routing/twisted_order.hpp"

namespace apenet {
namespace {

const std::vector<std::vector<std::uint32_t>>& twisted_shapes() {
  static const std::vector<std::vector<std::uint32_t>> all = {
      {2, 4},    {4, 2},    {3, 6},    {8, 4},    {2, 2, 4},    {2, 4, 4},      {4, 4, 2},
      {3, 3, 6}, {6, 3, 6}, {4, 4, 8}, {4, 8, 8}, {2, 4, 2, 4}, {4, 2, 2, 2, 4}};
  return all;
}

// Links from node 0 to each node, found by breadth first search of the wiring.
std::vector<std::uint32_t> distances_from(const Topology& topology, NodeId source) {
  constexpr std::uint32_t unseen = ~0U;
  std::vector<std::uint32_t> distances(topology.router_count(), unseen);
  distances[source] = 0;
  std::vector<RouterId> front = {source};
  for (std::size_t i = 0; i < front.size(); ++i) {
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
      const PortRef next = topology.neighbour({front[i], port});
      if (!next.is_connected() || distances[next.router] != unseen) continue;
      distances[next.router] = distances[front[i]] + 1;
      front.push_back(next.router);
    }
  }
  return distances;
}

TEST(TwistedTorus, ClosesShortDimensionsFurtherAlongTheLongOnes) {
  const Topology topology = make_topology(TwistedTorusDescription({2, 4, 4}));
  const auto behind = [&](const std::string& from, std::uint32_t port) {
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      if (topology.router_name(router) == from)
        return topology.router_name(topology.neighbour({router, port}).router);
    }
    return std::string();
  };
  EXPECT_EQ(behind("(1,0,0)", 0), "(0,2,2)");
  EXPECT_EQ(behind("(1,3,1)", 0), "(0,1,3)");
  EXPECT_EQ(behind("(0,2,2)", 1), "(1,0,0)");
  EXPECT_EQ(behind("(0,1,3)", 4), "(0,1,0)");
  EXPECT_EQ(behind("(0,0,0)", 0), "(1,0,0)");
}

TEST(TwistedTorus, RefusesOtherSizes) {
  for (const std::vector<std::uint32_t>& dims :
       std::vector<std::vector<std::uint32_t>>{{4}, {4, 4}, {1, 2}, {4, 12}, {4, 6, 8}, {2, 4, 8}, {4, 0}}) {
    EXPECT_THROW((void)make_topology(TwistedTorusDescription(dims)), std::invalid_argument);
    EXPECT_THROW((void)count_nodes(TwistedTorusDescription(dims)), std::invalid_argument);
  }
}

TEST(TwistedTorus, ShortestWaysAreThoseOfTheWiring) {
  for (const std::vector<std::uint32_t>& dims : twisted_shapes()) {
    const TwistedShape shape(dims);
    const Topology topology = make_topology(TwistedTorusDescription(dims));
    const std::vector<std::uint32_t> distances = distances_from(topology, 0);
    for (NodeId node = 0; node < shape.cube().node_count(); ++node) {
      std::vector<std::vector<std::int32_t>> ways = shape.shortest(node);
      ASSERT_FALSE(ways.empty());
      for (const std::vector<std::int32_t>& way : ways) {
        RouterId router = 0;
        std::uint32_t links = 0;
        for (std::uint32_t d = 0; d < dims.size(); ++d) {
          const std::uint32_t port = way[d] > 0 ? CubeShape::plus_port(d) : CubeShape::minus_port(d);
          for (std::int32_t left = std::abs(way[d]); left > 0; --left, ++links)
            router = topology.neighbour({router, port}).router;
        }
        ASSERT_EQ(router, node);
        ASSERT_EQ(links, distances[node]);
      }
      std::sort(ways.begin(), ways.end());
      ASSERT_EQ(std::adjacent_find(ways.begin(), ways.end()), ways.end());
    }
  }
}

TEST(TwistedOrderRouting, IsMinimalNeverReturnsToALowerDimensionAndHasNoCycle) {
  for (const std::vector<std::uint32_t>& dims : twisted_shapes()) {
    const TwistedTorusDescription description(dims);
    const Topology topology = make_topology(description);
    const TwistedOrderRouting routing{TopologyDescription(description)};
    const std::uint32_t local_port = 2 * static_cast<std::uint32_t>(dims.size());
    for (NodeId source = 0; source < topology.endpoint_count(); ++source) {
      const std::vector<std::uint32_t> distances = distances_from(topology, source);
      for (NodeId destination = 0; destination < topology.endpoint_count(); ++destination) {
        RouterId router = source;
        std::uint32_t dimension = 0;
        std::uint32_t links = 0;
        for (;; ++links) {
          const RouteStep step = routing.step(router, destination);
          if (step.port == local_port) break;
          ASSERT_GE(step.port / 2, dimension);
          dimension = step.port / 2;
          router = topology.neighbour({router, step.port}).router;
        }
        ASSERT_EQ(router, destination);
        ASSERT_EQ(links, distances[destination]);
      }
    }
    EXPECT_EQ(find_dependency_cycle(topology, routing), "");
  }
}

// Messages over the busiest link if every node sends one to every other.
std::uint32_t busiest_link(const Topology& topology, const Routing& routing) {
  std::vector<std::uint32_t> loads(std::size_t{topology.router_count()} * topology.ports_per_router());
  for (NodeId source = 0; source < topology.endpoint_count(); ++source) {
    for (NodeId destination = 0; destination < topology.endpoint_count(); ++destination) {
      for (RouterId router = source; router != destination;) {
        RouteSteps steps;
        routing.route({.router = router, .destination = destination}, steps);
        ++loads[std::size_t{router} * topology.ports_per_router() + steps[0].port];
        router = topology.neighbour({router, steps[0].port}).router;
      }
    }
  }
  return *std::max_element(loads.begin(), loads.end());
}

// The least possible: all links of all shortest ways, shared by the links equally. 4x4x8: 127 destinations at
// 3.4646 links in the mean over 6 links are 73.3; 4x8x8: 184.
TEST(TwistedOrderRouting, SharesAllToAllAmongTheLinks) {
  const auto loads = [](const std::vector<std::uint32_t>& dims) {
    const TwistedTorusDescription twisted(dims);
    const CubeShape shape(dims);
    return std::vector<std::uint32_t>{
        busiest_link(make_torus(shape), DimensionOrderRouting(shape, true)),
        busiest_link(make_topology(twisted), TwistedOrderRouting{TopologyDescription(twisted)})};
  };
  EXPECT_EQ(loads({4, 4, 8}), (std::vector<std::uint32_t>{128, 82}));
  EXPECT_EQ(loads({4, 8, 8}), (std::vector<std::uint32_t>{256, 198}));
}

}  // namespace
}  // namespace apenet
