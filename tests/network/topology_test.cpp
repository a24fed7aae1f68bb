// Topology: cubes of every shape are wired correctly.
#include "network/topology/cube.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>

namespace apenet {
namespace {

TEST(CubeShape, NumbersNodesWithXFastest) {
  const CubeShape shape({4, 2, 3});
  EXPECT_EQ(shape.node_count(), 24U);
  EXPECT_EQ(shape.coordinates(0), (std::vector<std::uint32_t>{0, 0, 0}));
  EXPECT_EQ(shape.coordinates(1), (std::vector<std::uint32_t>{1, 0, 0}));
  EXPECT_EQ(shape.coordinates(4), (std::vector<std::uint32_t>{0, 1, 0}));
  EXPECT_EQ(shape.coordinates(8), (std::vector<std::uint32_t>{0, 0, 1}));
  for (NodeId node = 0; node < 24; ++node) EXPECT_EQ(shape.node(shape.coordinates(node)), node);
}

TEST(CubeShape, CountsTheFewestLinksBetweenNodes) {
  const CubeShape shape({5, 4, 1});
  const auto far = [&](std::vector<std::uint32_t> from, std::vector<std::uint32_t> to, bool wraps) {
    return shape.distance(shape.node(from), shape.node(to), wraps);
  };
  EXPECT_EQ(far({1, 1, 0}, {1, 1, 0}, true), 0U);
  EXPECT_EQ(far({0, 0, 0}, {4, 3, 0}, true), 2U);
  EXPECT_EQ(far({0, 0, 0}, {4, 3, 0}, false), 7U);
  EXPECT_EQ(far({4, 3, 0}, {0, 1, 0}, true), 3U);
  EXPECT_EQ(far({4, 3, 0}, {0, 1, 0}, false), 6U);
}

TEST(CubeShape, RefusesWhatCannotBeWired) {
  for (const std::vector<std::uint32_t>& dims : {std::vector<std::uint32_t>{},
                                                 {0},
                                                 {4, 0, 2},
                                                 {2, 2, 2, 2, 2, 2, 2},
                                                 {65536},
                                                 {65535, 65535, 65535}}) {
    try {
      const CubeShape shape(dims);
      ADD_FAILURE() << "accepted " << ::testing::PrintToString(dims);
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("network.dims"), std::string::npos) << error.what();
    }
  }
}

std::uint32_t connected_links(const Topology& topology) {
  std::uint32_t links = 0;
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
      const PortRef next = topology.neighbour({router, port});
      if (!next.is_connected()) continue;
      ++links;
      // A cable is the same seen from both ends.
      EXPECT_EQ(topology.neighbour(next), (PortRef{router, port}));
      EXPECT_EQ(topology.link_class(next), topology.link_class({router, port}));
      EXPECT_EQ(topology.link_class(next), port / 2);
      EXPECT_EQ(next.port, port ^ 1U);  // + ends at -
    }
  }
  return links;
}

TEST(Torus, HasTwoLinksPerDimensionAndNode) {
  EXPECT_EQ(connected_links(make_torus(CubeShape({8, 4, 4}))), 6U * 128U);
  EXPECT_EQ(connected_links(make_torus(CubeShape({2, 2, 2, 2, 2, 2}))), 12U * 64U);
  EXPECT_EQ(connected_links(make_torus(CubeShape({5}))), 10U);
}

TEST(Torus, DimensionOfTwoHasTwoCables) {
  const Topology topology = make_torus(CubeShape({2}));
  EXPECT_EQ(connected_links(topology), 4U);
  EXPECT_EQ(topology.neighbour({0, 0}), (PortRef{1, 1}));
  EXPECT_EQ(topology.neighbour({0, 1}), (PortRef{1, 0}));
}

TEST(Torus, DimensionOfOneHasNoLinks) {
  EXPECT_EQ(connected_links(make_torus(CubeShape({1}))), 0U);
  EXPECT_EQ(connected_links(make_torus(CubeShape({3, 1, 3}))), 4U * 9U);
}

TEST(Mesh, EndsAtItsBorders) {
  const Topology topology = make_mesh(CubeShape({4, 3}));
  EXPECT_EQ(connected_links(topology), 2U * (3 * 3 + 4 * 2));
  EXPECT_FALSE(topology.neighbour({0, 1}).is_connected());
  EXPECT_FALSE(topology.neighbour({3, 0}).is_connected());
}

TEST(Topology, NamesLinksByCoordinatesAndDirection) {
  const Topology topology = make_torus(CubeShape({4, 2, 2}));
  EXPECT_EQ(topology.link_name({0, 0}), "(0,0,0)+x");
  EXPECT_EQ(topology.link_name({7, 5}), "(3,1,0)-z");
  std::set<std::string> names;
  for (RouterId router = 0; router < 16; ++router) {
    for (std::uint32_t port = 0; port < 6; ++port) names.insert(topology.link_name({router, port}));
  }
  EXPECT_EQ(names.size(), 96U);
}

TEST(TopologyDeathTest, PortTakesOneCable) {
  EXPECT_DEATH(
      {
        Topology topology(2, 2, {"a", "b"});
        topology.connect({0, 0}, {1, 0}, 0);
        topology.connect({0, 0}, {1, 1}, 0);
      },
      "port in use");
}

}  // namespace
}  // namespace apenet
