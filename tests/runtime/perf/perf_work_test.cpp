#include <gtest/gtest.h>

#include "network/topology/cube.hpp"
#include "runtime/perf/halo_work.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

MachineDescription small_torus() {
  MachineDescription machine = test::machine("ape128");
  machine.network.topology = TorusDescription({3, 2, 1});
  return machine;
}

TEST(HaloWork, SendsToEveryNeighbourInEveryExchange) {
  const WorkDone done = HaloWork(small_torus(), {.exchanges = 3, .bytes = 4096}).run();
  EXPECT_EQ(done.messages, 3U * 6U * 4U);  // two dimensions of more than one node
  EXPECT_EQ(done.packets, 16 * done.messages);
  EXPECT_EQ(done.hops, done.packets);
}

}  // namespace
}  // namespace apenet
