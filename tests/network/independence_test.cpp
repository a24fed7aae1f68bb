// Flows that share no link do not slow each other; flows that share a link share it fairly.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "contract/traffic.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

constexpr int packets_per_flow = 400;
constexpr std::uint32_t packet_bytes = 256;

struct Flow {
  std::vector<std::uint32_t> from;
  std::vector<std::uint32_t> to;
};

class Independence : public ::testing::Test {
 protected:
  Independence() : shape_({4, 4, 4}), parameters_(small_network(TorusDescription({4, 4, 4}), 256)) {
    parameters_.description.buffer_bytes = 1024;
    parameters_.description.injection_buffer_bytes = 4096;
    parameters_.description.ejection_buffer_bytes = 4096;
  }

  // Runs the flows together from time zero. Returns, for each flow, when its packet number `count` arrived.
  std::vector<Time> run(const std::vector<Flow>& flows, std::size_t count) {
    Traffic traffic(parameters_);
    for (int i = 0; i < packets_per_flow; ++i) {
      for (const Flow& flow : flows)
        traffic.offer(shape_.node(flow.from), shape_.node(flow.to), 0, packet_bytes);
    }
    traffic.run();
    traffic.expect_all_delivered();
    std::vector<Time> times;
    for (const Flow& flow : flows) {
      std::vector<Time> arrivals;
      for (const Arrival& arrival : traffic.node(shape_.node(flow.to)).arrivals()) {
        if (arrival.packet.source == shape_.node(flow.from)) arrivals.push_back(arrival.tail_time);
      }
      times.push_back(arrivals.at(count - 1));
    }
    return times;
  }

  CubeShape shape_;
  NetworkParameters parameters_;
};

// The flow from (1,0,1) to (1,2,1) passes node (1,1,1) along Y. Other flows pass it along X and along Z, turn
// there from X into Z, and run in the opposite direction.
TEST_F(Independence, FlowAlongYIsNotSlowedByFlowsAlongXAndZThroughTheSameNode) {
  const Flow along_y{{1, 0, 1}, {1, 2, 1}};
  const Time alone = run({along_y}, packets_per_flow).front();
  const Time crossed =
      run({along_y, {{0, 1, 1}, {2, 1, 1}}, {{1, 1, 0}, {1, 1, 2}}, {{3, 1, 1}, {1, 1, 3}}}, packets_per_flow)
          .front();
  EXPECT_EQ(alone.ps(), crossed.ps());
}

TEST_F(Independence, NeighboursAlongYAreNotSlowedWhileTheirNodeForwardsAlongXAndZ) {
  const Flow neighbours{{1, 1, 1}, {1, 2, 1}};
  const Flow back{{1, 2, 1}, {1, 1, 1}};
  const std::vector<Time> alone = run({neighbours}, packets_per_flow);
  const std::vector<Time> crossed =
      run({neighbours, {{0, 1, 1}, {2, 1, 1}}, {{1, 1, 0}, {1, 1, 2}}, back}, packets_per_flow);
  EXPECT_EQ(alone.front().ps(), crossed.front().ps());
}

// Two flows share a link of (1,1,1): one passes, one starts there. Each gets half.
TEST_F(Independence, TwoFlowsShareALinkEqually) {
  const Flow passing{{1, 0, 1}, {1, 2, 1}};
  const Flow starting{{1, 1, 1}, {1, 2, 1}};
  const double alone = run({passing}, packets_per_flow / 2).front().to_us();
  const std::vector<Time> shared = run({passing, starting}, packets_per_flow / 2);
  EXPECT_NEAR(shared[0].to_us() / alone, 2.0, 0.05);
  EXPECT_NEAR(shared[1].to_us() / alone, 2.0, 0.05);
}

// Using both directions of a cable at once slows neither.
TEST_F(Independence, DirectionsOfACableAreIndependent) {
  const Flow there{{0, 0, 0}, {1, 0, 0}};
  const Flow back{{1, 0, 0}, {0, 0, 0}};
  const Time alone = run({there}, packets_per_flow).front();
  for (const Time time : run({there, back}, packets_per_flow)) EXPECT_EQ(time.ps(), alone.ps());
}

}  // namespace
}  // namespace apenet::testing
