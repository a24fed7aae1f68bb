// Routing: minimal, in dimension order, balanced, and without a cycle of channels.
#include "network/routing/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "network/routing/deadlock.hpp"

namespace apenet {
namespace {

const std::vector<std::vector<std::uint32_t>>& shapes() {
  static const std::vector<std::vector<std::uint32_t>> all = {
      {1},    {2},       {3},   {4}, {7}, {16}, {4, 2, 2}, {8, 4, 4}, {5, 1, 3}, {2, 2, 2, 2, 2, 2},
      {4, 4}, {3, 4, 5}, {6, 6}};
  return all;
}

std::uint32_t minimal_hops(const CubeShape& shape, NodeId source, NodeId destination, bool is_torus) {
  const std::vector<std::uint32_t> from = shape.coordinates(source);
  const std::vector<std::uint32_t> to = shape.coordinates(destination);
  std::uint32_t hops = 0;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const std::uint32_t distance = from[d] > to[d] ? from[d] - to[d] : to[d] - from[d];
    hops += is_torus ? std::min(distance, shape.dims()[d] - distance) : distance;
  }
  return hops;
}

TEST(DimensionOrderRouting, IsMinimalAndNeverReturnsToALowerDimension) {
  for (const bool is_torus : {true, false}) {
    for (const std::vector<std::uint32_t>& dims : shapes()) {
      const CubeShape shape(dims);
      const Topology topology = is_torus ? make_torus(shape) : make_mesh(shape);
      const DimensionOrderRouting routing(shape, is_torus);
      for (NodeId source = 0; source < shape.node_count(); ++source) {
        for (NodeId destination = 0; destination < shape.node_count(); ++destination) {
          RouterId router = source;
          std::uint32_t hops = 0;
          std::uint32_t dimension = 0;
          for (;;) {
            const RouteStep step = routing.step(router, destination);
            ASSERT_LT(step.channel_class, routing.class_count());
            if (step.port == shape.local_port()) break;
            ASSERT_GE(step.port / 2, dimension);
            dimension = step.port / 2;
            const PortRef next = topology.neighbour({router, step.port});
            ASSERT_TRUE(next.is_connected());
            router = next.router;
            ++hops;
          }
          ASSERT_EQ(router, destination);
          ASSERT_EQ(hops, minimal_hops(shape, source, destination, is_torus));
        }
      }
    }
  }
}

TEST(DimensionOrderRouting, TiesUseBothDirectionsEqually) {
  const CubeShape shape({4, 2, 2});
  const DimensionOrderRouting routing(shape, true);
  std::vector<int> uses(shape.local_port());
  for (NodeId source = 0; source < shape.node_count(); ++source) {
    for (std::uint32_t d = 0; d < 3; ++d) {
      std::vector<std::uint32_t> there = shape.coordinates(source);
      there[d] = (there[d] + shape.dims()[d] / 2) % shape.dims()[d];
      ++uses[routing.step(source, shape.node(there)).port];
    }
  }
  EXPECT_EQ(uses, std::vector<int>(6, 8));
}

TEST(DimensionOrderRouting, HasNoCycleOfChannels) {
  for (const bool is_torus : {true, false}) {
    for (const std::vector<std::uint32_t>& dims : shapes()) {
      const CubeShape shape(dims);
      const Topology topology = is_torus ? make_torus(shape) : make_mesh(shape);
      EXPECT_EQ(find_dependency_cycle(topology, DimensionOrderRouting(shape, is_torus)), "");
    }
  }
}

}  // namespace
}  // namespace apenet
