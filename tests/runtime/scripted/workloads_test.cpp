// The workloads as algorithms: their times in closed form on the ideal machine (1 us of latency, one byte a
// nanosecond, no software), and what they move on a torus.
#include "runtime/scripted/workload_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "network/topology/cube.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

constexpr std::int64_t latency_ns = 1000;

struct Case {
  std::string workload = "halo";
  std::vector<std::uint32_t> grid;
  std::int64_t bytes = 0;
  std::string algorithm = {};
  std::uint32_t iterations = 3;
  bool periodic = true;
};

WorkloadResult run_on(const MachineDescription& machine, const Case& what) {
  WorkloadOptions options;
  options.bytes = what.bytes;
  options.rounds = what.iterations;
  options.algorithm = what.algorithm;
  options.grid = what.grid;
  options.periodic = what.periodic;
  return run_workload(machine, workload(what.workload), options);
}

WorkloadResult run_ideal(const Case& what) {
  return run_on(test::round_ideal(), what);
}

Case allreduce(const std::string& algorithm, std::vector<std::uint32_t> grid, std::int64_t bytes) {
  return {"allreduce", std::move(grid), bytes, algorithm};
}

std::int64_t product(const std::vector<std::uint32_t>& grid) {
  return std::accumulate(grid.begin(), grid.end(), std::int64_t{1}, std::multiplies<>());
}

// A lattice: every dimension has a surface of its own, all of them on one wire.
TEST(Workloads, AHaloOfALatticeHasItsOwnBytesInEachDimension) {
  WorkloadOptions options;
  options.grid = {4, 3, 2};
  options.face_bytes = {100, 20, 3};
  options.rounds = 2;
  const WorkloadResult result = run_workload(test::round_ideal(), workload("halo"), options);
  EXPECT_EQ(result.time, Time::from_ns(latency_ns + 2 * (100 + 20 + 3)));
  EXPECT_EQ(result.payload_bytes, 2U * 24U * 2U * 123U);
  options.face_bytes = {100, 20};
  EXPECT_THROW(std::ignore = run_workload(test::round_ideal(), workload("halo"), options),
               std::invalid_argument);
}

TEST(Workloads, AHaloIsOneLatencyAndTwoMessagesADimensionOnTheWire) {
  const std::vector<std::vector<std::uint32_t>> grids{{8}, {4, 3}, {4, 3, 2}, {2, 2, 2, 2}, {3, 1, 5}};
  for (const std::vector<std::uint32_t>& grid : grids) {
    const auto busy =
        std::count_if(grid.begin(), grid.end(), [](std::uint32_t extent) { return extent > 1; });
    const WorkloadResult result = run_ideal({"halo", grid, 100});
    EXPECT_EQ(result.time, Time::from_ns(latency_ns + 2 * busy * 100));
    EXPECT_EQ(result.messages, 3U * 2U * static_cast<std::uint64_t>(busy * product(grid)));
    EXPECT_EQ(result.payload_bytes, result.messages * 100);
  }
}

TEST(Workloads, AMeshHasNoNeighboursBeyondItsEdge) {
  Case mesh{"halo", {3, 2}, 8};
  mesh.periodic = false;
  EXPECT_EQ(run_ideal(mesh).messages, 3U * (2 * 2 * 2 + 2 * 3));
}

TEST(Workloads, AllToAllIsAStepForEveryOtherProcess) {
  const WorkloadResult result = run_ideal({"alltoall", {5}, 300});
  EXPECT_EQ(result.time, Time::from_ns(4 * (latency_ns + 300)));
  EXPECT_EQ(result.payload_bytes, 3U * 5 * 4 * 300);
}

Case alltoall(const std::string& algorithm, std::vector<std::uint32_t> grid) {
  Case exchange{"alltoall", std::move(grid), 300};
  exchange.algorithm = algorithm;
  return exchange;
}

// Partners are the bitwise differences if there is a power of two of processes; otherwise sums, and a process
// pauses where it is its own partner.
TEST(Workloads, PairwiseProcessesExchangeInSteps) {
  const WorkloadResult result = run_ideal(alltoall("pairwise", {8}));
  EXPECT_EQ(result.time, Time::from_ns(7 * (latency_ns + 300)));
  EXPECT_EQ(result.payload_bytes, 3U * 8 * 7 * 300);
  EXPECT_EQ(run_ideal(alltoall("pairwise", {5})).payload_bytes, 3U * 5 * 4 * 300);
}

// 39 messages are a window of 32 and one of 7.
TEST(Workloads, DirectMessagesGoInWindows) {
  const WorkloadResult result = run_ideal(alltoall("direct", {8, 5}));
  EXPECT_EQ(result.time, Time::from_ns(2 * latency_ns + 39 * 300));
  EXPECT_EQ(result.payload_bytes, 3U * 40 * 39 * 300);
  EXPECT_EQ(run_ideal(alltoall("direct-at-once", {8, 5})).time, Time::from_ns(latency_ns + 39 * 300));
}

// Two of the distances 1 to 4 have bit 0, two bit 1 and one bit 2.
TEST(Workloads, BrucksBlocksTravelTogether) {
  const WorkloadResult five = run_ideal(alltoall("bruck", {5}));
  EXPECT_EQ(five.time, Time::from_ns(3 * latency_ns + (2 + 2 + 1) * 300));
  EXPECT_EQ(five.messages, 3U * 5 * 3);
  EXPECT_EQ(run_ideal(alltoall("bruck", {8})).time, Time::from_ns(3 * (latency_ns + 4 * 300)));
}

// The line of 4 carries three messages for planes of 4 processes, the plane three with the blocks of lines.
TEST(Workloads, TwoPhasesAreALineAndItsPlane) {
  const WorkloadResult result = run_ideal(alltoall("two-phase", {2, 4, 2}));
  EXPECT_EQ(result.time, Time::from_ns(2 * (latency_ns + 3 * 4 * 300)));
  EXPECT_EQ(result.messages, 3U * 16 * (3 + 3));
}

TEST(Workloads, AFourierTransformIsAnAllToAllAlongEachDimension) {
  const WorkloadResult result = run_ideal({"fft", {4, 3, 1, 2}, 300});
  EXPECT_EQ(result.time, Time::from_ns((3 + 2 + 1) * (latency_ns + 300)));
  EXPECT_EQ(result.messages, 3U * 24 * (3 + 2 + 1));
}

TEST(Workloads, TheRingReducesInTwoRoundsOfItsParts) {
  for (const std::uint32_t n : {2U, 3U, 7U, 16U}) {
    const std::int64_t part = 50;
    const WorkloadResult result = run_ideal(allreduce("ring", {n}, part * n));
    EXPECT_EQ(result.time, Time::from_ns(2 * (n - 1) * (latency_ns + part))) << n;
    EXPECT_EQ(result.payload_bytes, 3U * n * 2 * (n - 1) * part) << n;
  }
}

TEST(Workloads, PartsOfOddSizesAddUp) {
  // 2 (n - 1) sends of each part, whatever its size; parts of no bytes are sent too.
  for (const std::int64_t bytes : {0, 1, 5, 101}) {
    const WorkloadResult result = run_ideal(allreduce("ring", {7}, bytes));
    EXPECT_EQ(result.payload_bytes, 3U * 2 * 6 * static_cast<std::uint64_t>(bytes));
    EXPECT_EQ(result.messages, 3U * 7 * 2 * 6);
  }
}

TEST(Workloads, RecursiveDoublingHasLogarithmicallyManySteps) {
  for (const std::uint32_t log2 : {1U, 3U, 6U}) {
    const std::uint32_t n = 1U << log2;
    const WorkloadResult result = run_ideal(allreduce("recursive-doubling", {n}, 200));
    EXPECT_EQ(result.time, Time::from_ns(log2 * (latency_ns + 200)));
    EXPECT_EQ(result.messages, 3U * n * log2);
  }
}

// The recurrence of the algorithm with uneven starts: who takes a neighbour's part begins a step late, and a
// step ends when both have sent.
Time recursive_doubling_time(std::uint32_t log2, std::uint32_t beyond, Time step) {
  std::vector<Time> at(1U << log2);
  for (std::uint32_t number = 0; number < beyond; ++number) at[number] = step;
  for (std::uint32_t k = 0; k < log2; ++k) {
    std::vector<Time> next = at;
    for (std::uint32_t number = 0; number < at.size(); ++number)
      next[number] = std::max(at[number], at[number ^ 1U << k] + step);
    at = next;
  }
  Time last = *std::max_element(at.begin(), at.end());
  for (std::uint32_t number = 0; number < beyond; ++number) last = std::max(last, at[number] + step);
  return last;
}

TEST(Workloads, BeyondAPowerOfTwoNeighboursGiveAndGetBack) {
  for (const std::uint32_t n : {3U, 6U, 13U, 16U}) {
    const std::uint32_t log2 = n == 3 ? 1 : n == 6 ? 2 : n == 13 ? 3 : 4;
    const std::uint32_t beyond = n - (1U << log2);
    // Messages without bytes: a process that need not wait would find its card busy with its last one.
    Case once = allreduce("recursive-doubling", {n}, 0);
    once.iterations = 1;  // the next one would begin before those that give have their result
    const WorkloadResult result = run_ideal(once);
    EXPECT_EQ(result.time, recursive_doubling_time(log2, beyond, Time::from_ns(latency_ns))) << n;
    EXPECT_EQ(result.messages, (1U << log2) * log2 + 2 * beyond) << n;
  }
}

TEST(Workloads, TheTorusReducesDimensionAfterDimension) {
  const std::int64_t bytes = 2400;
  const WorkloadResult result = run_ideal(allreduce("torus", {4, 2, 3}, bytes));
  const std::int64_t there =
      3 * (latency_ns + bytes / 4) + 1 * (latency_ns + bytes / 8) + 2 * (latency_ns + bytes / 24);
  EXPECT_EQ(result.time, Time::from_ns(2 * there));
  EXPECT_EQ(result.payload_bytes, 3U * 2 * 23 * bytes) << "as many bytes as the ring";
}

TEST(Workloads, OnOneDimensionTorusAndRingAreTheSame) {
  const WorkloadResult torus = run_ideal(allreduce("torus", {6}, 1000));
  const WorkloadResult ring = run_ideal(allreduce("ring", {6}, 1000));
  EXPECT_EQ(torus.time, ring.time);
  EXPECT_EQ(torus.finish, ring.finish);
}

TEST(Workloads, PairsExchangeAtOnce) {
  for (const char* name : {"randompairs", "bisection"}) {
    const WorkloadResult result = run_ideal({name, {2, 6}, 500});
    EXPECT_EQ(result.time, Time::from_ns(latency_ns + 500));
    EXPECT_EQ(result.messages, 3U * 12);
  }
}

TEST(Workloads, OneIsLeftOverWhenTheirNumberIsOdd) {
  EXPECT_EQ(run_ideal({"randompairs", {5}, 10}).messages, 3U * 4);
  EXPECT_EQ(run_ideal({"bisection", {5, 2}, 10}).messages, 3U * 8);
}

std::vector<Time> busy_of(const WorkloadResult& result) {
  std::vector<Time> busy;
  for (const LinkUse& link : result.links) busy.push_back(link.busy);
  return busy;
}

TEST(Workloads, RandomPairsDependOnTheSeedAlone) {
  MachineDescription ape16 = test::machine("ape16");
  const Case pairs{"randompairs", {4, 2, 2}, 4096};
  const WorkloadResult first = run_on(ape16, pairs);
  const WorkloadResult again = run_on(ape16, pairs);
  ape16.seed = 2;
  const WorkloadResult other = run_on(ape16, pairs);
  EXPECT_EQ(busy_of(first), busy_of(again));
  EXPECT_EQ(first.finish, again.finish);
  EXPECT_NE(busy_of(first), busy_of(other));
}

// On a torus whose neighbours are one hop apart, what the links carry is what the cards were given.
TEST(Workloads, AHaloUsesEveryLinkOnceAMessage) {
  const WorkloadResult result = run_on(test::machine("ape16"), {"halo", {4, 2, 2}, 256});
  std::uint64_t packets = 0;
  for (const LinkUse& link : result.links) packets += link.packets;
  EXPECT_EQ(result.messages, 3U * 16 * 6);
  EXPECT_EQ(packets, result.messages) << "one packet each, one hop each";
}

TEST(Workloads, MessagesLargerThanADescriptorAreCut) {
  MachineDescription ape16 = test::machine("ape16");
  std::get<apelink::Description>(ape16.nic).max_message_bytes = 1024;
  for (const char* name : {"halo", "alltoall", "allreduce", "randompairs", "bisection", "fft"}) {
    const Case large{name, {4, 2, 2}, 16384};
    const WorkloadResult cut = run_on(ape16, large);
    const WorkloadResult whole = run_on(test::machine("ape16"), large);
    EXPECT_EQ(cut.payload_bytes, whole.payload_bytes);
    EXPECT_EQ(cut.messages, cut.payload_bytes / 1024);
  }
}

TEST(Workloads, NodesMayBeChosen) {
  MachineDescription ape16 = test::machine("ape16");
  WorkloadOptions options;
  options.bytes = 64;
  options.grid = {2};
  options.nodes = {0, 2};  // two hops apart along X
  const WorkloadResult far = run_workload(ape16, workload("bisection"), options);
  options.nodes = {0, 1};
  EXPECT_GT(far.time, run_workload(ape16, workload("bisection"), options).time);
}

}  // namespace
}  // namespace apenet
