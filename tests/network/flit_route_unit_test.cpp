#include "network/flit/route_unit.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "network/routing/routing.hpp"

namespace apenet {
namespace {

// Checks every channel of a router, at every router, for every destination and draw.
void expect_what_the_routing_says(const std::vector<std::uint32_t>& dims) {
  const CubeShape shape(dims);
  const DimensionOrderEntryRouting routing(shape);
  std::vector<FlitInput> inputs;
  for (std::uint32_t port = 0; port <= shape.local_port(); ++port) {
    for (std::uint32_t c = 0; c < routing.class_count(); ++c) {
      inputs.push_back({static_cast<std::uint16_t>(port), static_cast<std::uint16_t>(c)});
    }
  }
  const FlitCubeRequests requests(routing, inputs,
                                  [](RouteStep step) { return FlitRequest(step.port, step.channel_class); });
  ASSERT_FALSE(requests.empty());
  for (RouterId router = 0; router < shape.node_count(); ++router) {
    for (NodeId destination = 0; destination < shape.node_count(); ++destination) {
      for (std::uint32_t input = 0; input < inputs.size(); ++input) {
        RouteSteps steps;
        routing.route({router, destination, inputs[input].port, inputs[input].channel_class,
                       inputs[input].port == shape.local_port()},
                      steps);
        for (std::uint32_t draws = 0; draws < 1U << dims.size(); ++draws) {
          const std::uint32_t chosen =
              steps.count() == 1 ? 0 : draw_step(steps.count(), draws, steps[0].port);
          const FlitRequest request = requests.request(router, input, requests.target(destination, draws));
          ASSERT_EQ(request.port(), steps[chosen].port) << router << " to " << destination;
          ASSERT_EQ(request.set(), steps[chosen].channel_class) << router << " to " << destination;
        }
      }
    }
  }
}

TEST(FlitCubeRequests, EqualTheRoutingsSteps) {
  expect_what_the_routing_says({4, 6, 2});
  expect_what_the_routing_says({1, 3, 8});
  expect_what_the_routing_says({7});
  expect_what_the_routing_says({2, 2, 1, 2, 2, 2});
}

// A node's word, including the bits that are drawn, would need 32 bits.
TEST(FlitCubeRequests, AreNotUsedIfAWordIsTooShort) {
  const CubeShape shape({9, 9, 9, 9, 17, 17});
  const DimensionOrderEntryRouting routing(shape);
  const FlitCubeRequests requests(routing, {{0, 0}},
                                  [](RouteStep step) { return FlitRequest(step.port, step.channel_class); });
  EXPECT_TRUE(requests.empty());
}

}  // namespace
}  // namespace apenet
