// "If Node 1 and Node 3 are communicating along the Y axis, the flow of packages between Node 7 and Node 4,
// through Node 3, along the X and Z axis is not affected and can be performed at full speed."
// PoS(LAT2005)100, figure 1. The links of a node are independent; flows that share a link share its rate.
#include <gtest/gtest.h>

#include <vector>

#include "network/topology/cube.hpp"
#include "runtime/scripted/card_run.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

struct Flow {
  NodeId from;
  NodeId to;
};

constexpr std::int64_t bytes = 512 * 1024;

Script source_of(CardProcess& process, ProcessId target) {
  process.send(target, bytes);
  co_return;
}

Script sink_of(CardProcess& process, Time* end) {
  co_await process.arrival();
  *end = process.clock();
}

// The bandwidth of each flow in MiB/s, all flows together. The host has a bus of twice the width, so that
// only links limit.
std::vector<double> bandwidths(const std::vector<Flow>& flows) {
  MachineDescription machine = test::machine("ape128");
  machine.network.topology = TorusDescription({4, 4, 4});
  machine.host.bus.width_bytes = 32;
  std::vector<NodeId> nodes;
  for (const Flow& flow : flows) {
    nodes.push_back(flow.from);
    nodes.push_back(flow.to);
  }
  CardRun run(machine, {}, nodes);
  std::vector<Time> ends(flows.size());
  for (ProcessId i = 0; i < flows.size(); ++i) {
    run.spawn(2 * i, source_of(run.process(2 * i), 2 * i + 1));
    run.spawn(2 * i + 1, sink_of(run.process(2 * i + 1), &ends[i]));
  }
  run.run();
  std::vector<double> result;
  for (const Time end : ends) result.push_back(static_cast<double>(bytes) / (1 << 20) / (end.to_us() * 1e-6));
  return result;
}

constexpr NodeId at(NodeId x, NodeId y, NodeId z) {
  return x + 4 * (y + 4 * z);
}

constexpr Flow along_y{at(1, 0, 1), at(1, 2, 1)};        // through (1,1,1)
constexpr Flow along_x_and_z{at(0, 1, 1), at(1, 1, 2)};  // turns at (1,1,1)
constexpr Flow to_the_middle{at(1, 0, 1), at(1, 1, 1)};  // ends at (1,1,1)
constexpr Flow same_y_link{at(0, 0, 1), at(1, 1, 1)};    // joins along_y's first link

TEST(TorusIndependence, FlowsThroughANodeAlongOtherAxesDoNotDisturbOneAnother) {
  const double alone = bandwidths({along_y})[0];
  const double crossing_alone = bandwidths({along_x_and_z})[0];
  const std::vector<double> both = bandwidths({along_y, along_x_and_z});
  EXPECT_NEAR(both[0], alone, alone * 0.01);
  EXPECT_NEAR(both[1], crossing_alone, crossing_alone * 0.01);
}

TEST(TorusIndependence, NeighboursAreNotSlowedByAFlowThatTurnsAtOneOfThem) {
  const double alone = bandwidths({to_the_middle})[0];
  const std::vector<double> both = bandwidths({to_the_middle, along_x_and_z});
  EXPECT_NEAR(both[0], alone, alone * 0.01);
}

TEST(TorusIndependence, FlowsThatShareALinkShareItsRate) {
  const double alone = bandwidths({along_y})[0];
  const std::vector<double> both = bandwidths({along_y, same_y_link});
  EXPECT_NEAR(both[0], alone / 2, alone * 0.05);
  EXPECT_NEAR(both[1], alone / 2, alone * 0.05);
}

}  // namespace
}  // namespace apenet
