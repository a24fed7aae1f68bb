#include "machine/peer_queues.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "machine/machine.hpp"
#include "network/topology/cube.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

std::set<std::uint16_t> queues_to_neighbours(const PeerQueues& queues, const CubeShape& shape) {
  std::set<std::uint16_t> used;
  for (std::size_t dimension = 0; dimension < shape.dims().size(); ++dimension) {
    for (const std::uint32_t step : {1U, shape.dims()[dimension] - 1}) {
      std::vector<std::uint32_t> at(shape.dims().size(), 0);
      at[dimension] = step % shape.dims()[dimension];
      const NodeId node = shape.node(at);
      if (node != 0) used.insert(queues.queue(0, node));
    }
  }
  return used;
}

TEST(PeerQueues, GivesEachNeighbourOfATorusItsOwnQueueIfThereAreEnough) {
  const PeerQueues queues(TorusDescription({8, 4, 4}), 6);
  EXPECT_EQ(queues_to_neighbours(queues, CubeShape({8, 4, 4})), (std::set<std::uint16_t>{0, 1, 2, 3, 4, 5}));
}

TEST(PeerQueues, GivesTheFirstDirectionsTheirOwnQueuesIfThereAreFewer) {
  const CubeShape shape({8, 4, 4});
  const PeerQueues queues(TorusDescription({8, 4, 4}), 4);
  const std::vector<std::vector<std::uint32_t>> neighbours = {{1, 0, 0}, {7, 0, 0}, {0, 1, 0},
                                                              {0, 3, 0}, {0, 0, 1}, {0, 0, 3}};
  for (std::uint16_t direction = 0; direction < 6; ++direction)
    EXPECT_EQ(queues.queue(0, shape.node(neighbours[direction])), direction % 4) << direction;
}

TEST(PeerQueues, SpendsOneQueueOnADimensionOfTwoNodesAndNoneOnOneOfOne) {
  const PeerQueues queues(TorusDescription({4, 1, 2}), 16);
  EXPECT_EQ(queues_to_neighbours(queues, CubeShape({4, 1, 2})), (std::set<std::uint16_t>{0, 1, 2}));
}

TEST(PeerQueues, FollowsTheDirectionInWhichAMessageLeaves) {
  const CubeShape shape({8, 4, 4});
  const PeerQueues torus(TorusDescription({8, 4, 4}), 6);
  const PeerQueues mesh(MeshDescription({8, 4, 4}), 6);
  EXPECT_EQ(torus.queue(0, shape.node({3, 1, 2})), torus.queue(0, shape.node({1, 0, 0})));
  EXPECT_EQ(torus.queue(0, shape.node({6, 0, 0})), torus.queue(0, shape.node({7, 0, 0})));
  EXPECT_EQ(mesh.queue(0, shape.node({7, 0, 0})), mesh.queue(0, shape.node({1, 0, 0})));
  EXPECT_EQ(mesh.queue(shape.node({7, 0, 0}), 0), torus.queue(0, shape.node({7, 0, 0})));
}

TEST(PeerQueues, IsOneQueueForOneQueueAndForANodeItself) {
  const PeerQueues one(TorusDescription({8, 4, 4}), 1);
  const PeerQueues four(TorusDescription({8, 4, 4}), 4);
  for (NodeId node = 0; node < 128; ++node) {
    EXPECT_EQ(one.queue(5, node), 0);
    EXPECT_EQ(four.queue(node, node), 0);
  }
}

TEST(PeerQueues, SpreadsTheTargetsOfOtherTopologies) {
  const PeerQueues queues(NoTopologyDescription({8}), 4);
  for (NodeId node = 1; node < 8; ++node) EXPECT_EQ(queues.queue(0, node), node % 4);
}

TEST(PeerQueues, StaysBelowTheChannelsOfEveryMachine) {
  for (const char* name : {"ape128", "apenetplus-v5", "qpace", "pax", "extoll-64", "ideal"}) {
    Simulation simulation;
    const Machine machine(simulation, test::machine(name), {0, 1, 2, 3});
    const NicCapabilities& card = machine.capabilities();
    for (ProcessId target = 1; target < 4; ++target) {
      const std::uint16_t channel = machine.channel_between(0, target);
      EXPECT_TRUE(card.needs_credit ? channel == card.ring_channel : channel < card.channels) << name;
    }
    EXPECT_EQ(machine.channel_between(0, 4), 0) << name;
  }
}

}  // namespace
}  // namespace apenet
