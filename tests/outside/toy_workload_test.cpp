// A toy workload, added from outside the tree by workload.hpp.
#include <gtest/gtest.h>

#include "runtime/scripted/workload_run.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

TEST(ToyWorkload, IsListedRunAndWrittenAsATrace) {
  EXPECT_EQ(workloads().back(), &workload("ring"));
  WorkloadOptions options;
  options.bytes = 500;
  options.rounds = 2;
  options.grid = {3};
  MachineDescription machine = test::round_ideal();  // 1 us of latency, one byte a nanosecond
  machine.card_software = {};
  const WorkloadResult result = run_workload(machine, workload("ring"), options);
  EXPECT_EQ(result.time, Time::from_ns(1000 + 500));
  EXPECT_EQ(result.messages, 6U);
  EXPECT_EQ(result.payload_bytes, 6U * 500);
  options.rounds = 1;
  EXPECT_EQ(WorkloadStreams(workload("ring"), options, machine).goal_of(1),
            "rank 1 {\n"
            "l1: send 500b to 2 tag 0\n"
            "l2: recv 500b from 0 tag 0\n"
            "}\n");
}

}  // namespace
}  // namespace apenet
