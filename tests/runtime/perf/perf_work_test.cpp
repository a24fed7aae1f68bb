#include <gtest/gtest.h>

#include <stdexcept>

#include "network/topology/cube.hpp"
#include "runtime/perf/halo_work.hpp"
#include "runtime/perf/packet_work.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

MachineDescription small_torus() {
  MachineDescription machine = test::machine("ape128");
  machine.network.topology = TorusDescription({3, 2, 1});
  return machine;
}

TEST(PacketWork, PacketsToNeighboursTakeOneHop) {
  PacketWorkOptions options;
  options.packets_per_node = 20;
  options.far_percent = 0;
  const WorkDone done = PacketWork(small_torus(), options).run();
  EXPECT_EQ(done.nodes, 6U);
  EXPECT_EQ(done.packets, 120U);
  EXPECT_EQ(done.hops, 120U);
}

TEST(PacketWork, AnIntervalSpacesThePackets) {
  const Time interval = Time::from_ns(5000);
  PacketWorkOptions options;
  options.packets_per_node = 20;
  options.interval = interval;
  const WorkDone done = PacketWork(small_torus(), options).run();
  EXPECT_EQ(done.packets, 120U);
  EXPECT_GE(done.virtual_time, interval * 19);
  EXPECT_LT(done.virtual_time, interval * 21);
}

TEST(PacketWork, RepeatsExactly) {
  PacketWorkOptions options;
  options.packets_per_node = 30;
  options.far_percent = 50;
  const WorkDone one = PacketWork(small_torus(), options).run();
  const WorkDone other = PacketWork(small_torus(), options).run();
  EXPECT_EQ(one.hops, other.hops);
  EXPECT_EQ(one.events, other.events);
  EXPECT_EQ(one.virtual_time, other.virtual_time);
}

TEST(PacketWork, RefusesAMachineWithoutNetwork) {
  EXPECT_THROW(PacketWork(test::round_ideal(), {}), std::invalid_argument);
  MachineDescription alone = small_torus();
  alone.network.topology = TorusDescription({1, 1, 1});
  EXPECT_THROW(PacketWork(alone, {}), std::invalid_argument);
}

TEST(HaloWork, SendsToEveryNeighbourInEveryExchange) {
  const WorkDone done = HaloWork(small_torus(), {.exchanges = 3, .bytes = 4096}).run();
  EXPECT_EQ(done.messages, 3U * 6U * 4U);  // two dimensions of more than one node
  EXPECT_EQ(done.packets, 16 * done.messages);
  EXPECT_EQ(done.hops, done.packets);
}

}  // namespace
}  // namespace apenet
