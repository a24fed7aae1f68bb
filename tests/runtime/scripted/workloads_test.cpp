// The workloads as algorithms: their times in closed form on the ideal machine (1 us of latency, one byte a
// nanosecond, no software), and what they move on a torus.
#include "runtime/scripted/workload_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

std::uint64_t carried_packets(const std::vector<LinkUse>& links) {
  return std::accumulate(links.begin(), links.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const LinkUse& link) { return sum + link.packets; });
}

// No two processes are neighbours, so that software forwards every message. Each packet is acknowledged on
// the same link, so that a link carries two packets a hop.
TEST(Workloads, ForwardedPacketsAreCountedBeforeTheRun) {
  MachineDescription qpace = test::machine("qpace");
  qpace.network.topology = TorusDescription({8, 4, 6});
  WorkloadOptions options;
  options.grid = {4, 2, 3};
  options.bytes = 5000;
  for (NodeId z = 0; z < 6; z += 2)
    for (NodeId y = 0; y < 4; y += 2)
      for (NodeId x = 0; x < 8; x += 2) options.nodes.push_back(x + 8 * (y + 4 * z));
  const auto count = [&](const std::string& name) {
    const PacketHops hops = count_packet_hops(qpace, workload(name), options);
    EXPECT_EQ(hops.all, hops.forwarded);  // two nodes apart, at least
    return hops.forwarded;
  };
  for (const char* name : {"halo", "alltoall", "allreduce", "randompairs", "bisection", "fft"}) {
    std::vector<std::string> algorithms = {""};
    if (name == std::string("allreduce")) {
      algorithms.insert(algorithms.end(), {"recursive-doubling", "torus"});
    }
    for (const std::string& algorithm : algorithms) {
      options.algorithm = algorithm;
      options.rounds = 1;
      const WorkloadResult result = run_workload(qpace, workload(name), options);
      const std::uint64_t carried = carried_packets(result.links);
      EXPECT_EQ(2 * count(name), carried);
      options.rounds = 3;
      EXPECT_EQ(2 * count(name), 3 * carried);
    }
  }
}

TEST(Workloads, NothingIsForwardedBetweenNeighboursOrByANetwork) {
  WorkloadOptions options;
  options.grid = {8, 8, 4};
  options.bytes = 1 << 20;
  EXPECT_EQ(count_packet_hops(test::machine("qpace"), workload("halo"), options).forwarded, 0);
  options.grid = {4, 2, 2};
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), workload("alltoall"), options).forwarded, 0);
}

// What is counted before the run is what its links carry: packets of all pieces, over the shortest ways.
TEST(Workloads, PacketHopsAreCountedBeforeTheRun) {
  const MachineDescription ape16 = test::machine("ape16");
  WorkloadOptions options;
  options.grid = {4, 2, 2};
  options.rounds = 2;
  for (const std::int64_t bytes : {0, 1, 256, 257, 70'000}) {
    options.bytes = bytes;
    for (const char* name : {"halo", "alltoall", "allreduce", "randompairs", "bisection", "fft"}) {
      const WorkloadResult result = run_workload(ape16, workload(name), options);
      const double counted = count_packet_hops(ape16, workload(name), options).all;
      if (name == std::string("randompairs")) {  // the second round has other pairs
        EXPECT_GT(counted, 0);
      } else {
        EXPECT_EQ(counted, carried_packets(result.links)) << name << " of " << bytes;
      }
    }
  }
}

// By hand: 6 messages of 16384 packets, 16 processes, 5 rounds. A network without coordinates and one without
// links count each packet once.
TEST(Workloads, PacketHopsOfAbsurdRunsAreCountedAtOnce) {
  WorkloadOptions options;
  options.grid = {4, 2, 2};
  options.bytes = std::int64_t{1} << 22;
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), workload("halo"), options).all, 6.0 * 16384 * 16 * 5);
  options.rounds = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), workload("halo"), options).all,
            6.0 * 16384 * 16 * 4294967295.0);
  const double on_pax = count_packet_hops(test::machine("pax"), workload("halo"), options).all;
  EXPECT_NEAR(on_pax, 6.0 * 2048 * 16 * 4294967295.0, on_pax / 50)
      << "its largest packet has some more bytes";
  // Asks the first three of 2^22 processes.
  options.grid = {1 << 22};
  options.rounds = 1;
  options.bytes = 1;
  EXPECT_NEAR(count_packet_hops(test::machine("ideal"), workload("alltoall"), options).all, 17592181850112.0,
              1.0);
}

TEST(Workloads, RandomPairsOfTooManyRoundsAreRefused) {
  WorkloadOptions options;
  options.grid = {16};
  options.bytes = 1;
  options.rounds = (1U << 24U) + 1;
  EXPECT_THROW(std::ignore = run_workload(test::machine("ideal"), workload("randompairs"), options),
               std::invalid_argument);
}

// Every process sends one message to the next one in the ring, which is not in the list of workloads.
class Shift final : public WorkloadPattern {
 public:
  explicit Shift(const WorkloadShape& shape) : shape_(shape) {}
  WorkloadStream rounds(ProcessId process, std::uint32_t count) const override {
    const ProcessId before = (process + shape_.count - 1) % shape_.count;
    for (std::uint32_t number = 0; number < count; ++number) {
      const std::int64_t bytes = shape_.bytes * (number + 1);
      co_yield Operation::send((process + 1) % shape_.count, bytes);
      const std::vector<Operation> receive{Operation::expect(before, bytes), Operation::wait(before, bytes)};
      co_yield receive;
    }
  }

 private:
  const WorkloadShape& shape_;
};

// One object is all that a workload needs to be run, counted and written.
TEST(Workloads, AreOneObjectEach) {
  const Workload shift{.name = "shift", .definition = "", .algorithms = {{"", make_pattern<Shift>}}};
  WorkloadOptions options;
  options.grid = {5};
  options.bytes = 100;
  options.rounds = 2;
  const WorkloadResult result = run_workload(test::round_ideal(), shift, options);
  EXPECT_EQ(result.time, Time::from_ns(latency_ns + 150));
  EXPECT_EQ(result.messages, 10U);
  EXPECT_EQ(result.payload_bytes, 5U * (100 + 200));
  EXPECT_EQ(WorkloadStreams(shift, options, test::round_ideal()).goal_of(4),
            "rank 4 {\nl1: send 100b to 0 tag 0\nl2: recv 100b from 3 tag 0\n"
            "l3: calc 0\nl3 requires l2\nl4: send 200b to 0 tag 0\nl4 requires l3\n"
            "l5: recv 200b from 3 tag 0\nl5 requires l3\n}\n");
  // On a ring of two, 0 and 2 are two hops apart; the other way is as long.
  MachineDescription qpace = test::machine("qpace");
  qpace.network.topology = TorusDescription({4, 1, 1});
  options.grid = {2};
  options.nodes = {0, 2};
  EXPECT_EQ(count_packet_hops(qpace, shift, options).forwarded, 2 * 2 * 2);
}

// A stream whose pattern yields no operations at first, then two, and then throws.
WorkloadStream uneven_stream() {
  const std::vector<WorkloadOperation> none;
  co_yield none;
  const std::vector<WorkloadOperation> two{WorkloadOperation::send(1, 10), WorkloadOperation::wait(2, 20)};
  co_yield two;
  throw std::runtime_error("after two");
}

TEST(Workloads, AStreamIsNotAtItsEndWhileThePatternYieldsNothing) {
  WorkloadStream stream = uneven_stream();
  const WorkloadStream::Operations two = stream.next();
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].peer, 2U);
  EXPECT_THROW(std::ignore = stream.next(), std::runtime_error);
}

TEST(Workloads, AreKnownByName) {
  for (const Workload* one : workloads()) EXPECT_EQ(&workload(one->name), one);
  EXPECT_THROW(std::ignore = workload("shift"), std::invalid_argument);
  WorkloadOptions options;
  options.grid = {2};
  options.algorithm = "tree";
  EXPECT_THROW(std::ignore = run_workload(test::round_ideal(), workload("allreduce"), options),
               std::invalid_argument);
}

TEST(Workloads, RefuseWhatCannotRun) {
  const auto run = [](WorkloadOptions options) {
    std::ignore = run_workload(test::round_ideal(), workload("halo"), options);
  };
  WorkloadOptions options;
  EXPECT_THROW(run(options), std::invalid_argument);
  options.grid = {1, 1};
  EXPECT_THROW(run(options), std::invalid_argument);
  options.grid = {1U << 31, 1U << 31, 4};
  EXPECT_THROW(run(options), std::invalid_argument);
  options.grid = {2, 2};
  options.rounds = 0;
  EXPECT_THROW(run(options), std::invalid_argument);
  options.rounds = 1;
  options.bytes = -1;
  EXPECT_THROW(run(options), std::invalid_argument);
  options.bytes = 1;
  options.nodes = {0, 1};
  EXPECT_THROW(run(options), std::invalid_argument);
}

// One process computes while 3 messages come: the first two at 1100 and 1200 ns.
class Late final : public WorkloadPattern {
 public:
  explicit Late(const WorkloadShape& shape) : shape_(shape) {}

  WorkloadStream rounds(ProcessId process, std::uint32_t /*count*/) const override {
    if (process == 0) {
      for (int i = 0; i < 3; ++i) co_yield Operation::send(1, shape_.bytes);
      co_return;
    }
    for (int i = 0; i < 3; ++i) co_yield Operation::expect(0, shape_.bytes);
    co_yield Operation::compute(Time::from_ns(1250));
    co_yield Operation::take();
    co_yield Operation::compute(Time::from_ns(20));
    co_yield Operation::drain();
    co_yield Operation::send(0, 1);
  }

 private:
  const WorkloadShape& shape_;
};

// A message costs its receiver 10 ns: the first two are taken at 1250, the third when it has come.
TEST(Workloads, TakeWhatHasArrivedAndDrainTheRest) {
  const Workload late{.name = "late", .definition = "", .algorithms = {{"", make_pattern<Late>}}};
  MachineDescription machine = test::round_ideal();
  machine.card_software = {};
  machine.card_software.receive = Time::from_ns(10);
  WorkloadOptions options;
  options.grid = {2};
  options.bytes = 100;
  options.rounds = 1;
  EXPECT_EQ(run_workload(machine, late, options).finish.at(1), Time::from_ns(latency_ns + 300 + 10));
  options.bytes = 10;  // all have come
  EXPECT_EQ(run_workload(machine, late, options).finish.at(1), Time::from_ns(1250 + 3 * 10 + 20));
  EXPECT_EQ(WorkloadStreams(late, options, machine).goal_of(1),
            "rank 1 {\nl1: recv 10b from 0 tag 0\nl2: recv 10b from 0 tag 0\nl3: recv 10b from 0 tag 0\n"
            "l4: calc 1250\nl5: calc 20\nl5 requires l4\n"
            "l6: calc 0\nl6 requires l5\nl6 requires l1\nl6 requires l2\nl6 requires l3\n"
            "l7: send 1b to 0 tag 0\nl7 requires l6\n}\n");
}

// 4x4x4x8 sites in two parts of 4x4x4x4: 32 sites of a parity on each of two surfaces, 48 bytes each. Of the
// 1320 operations of 128 sites, 156 of each surface site come before and 180 after the exchange.
TEST(Workloads, DslashComputesWhileItsSurfacesTravel) {
  constexpr std::int64_t before = 32 * 156;
  constexpr std::int64_t after = 32 * 180;
  constexpr std::int64_t whole = 128 * 1320;
  constexpr std::int64_t bytes = 32 * 48;
  WorkloadOptions options;
  options.grid = {1, 1, 1, 2};
  options.face_bytes = {0, 0, 0, 2 * bytes};
  options.sites = 256;
  options.site_bytes = 48;
  options.rounds = 2;
  MachineDescription machine = test::round_ideal();
  machine.card_software = {};
  machine.host.flops_per_second = 1'000'000'000;  // one a nanosecond
  const WorkloadResult hidden = run_workload(machine, workload("dslash"), options);
  EXPECT_EQ(hidden.time, Time::from_ns(whole));
  EXPECT_EQ(hidden.payload_bytes, 2U * 2U * 2U * bytes);
  machine.host.flops_per_second *= 1000;
  EXPECT_EQ(run_workload(machine, workload("dslash"), options).time,
            Time::from_ps(before + after) + Time::from_ns(latency_ns + 2 * bytes));
  options.sites = 0;
  EXPECT_THROW(std::ignore = run_workload(machine, workload("dslash"), options), std::invalid_argument);
  options.sites = 27;
  options.face_bytes = {0, 0, 0, 9 * 48};
  EXPECT_THROW(std::ignore = run_workload(machine, workload("dslash"), options), std::invalid_argument);
}

WorkloadResult random_access(std::int64_t bytes, std::uint32_t processes, std::uint32_t look_ahead,
                             std::uint64_t updates = 0) {
  WorkloadOptions options;
  options.grid = {processes};
  options.bytes = bytes;
  options.rounds = 1;
  options.look_ahead = look_ahead;
  options.updates = updates;
  MachineDescription machine = test::round_ideal();
  machine.card_software.receive = Time::from_ns(10);
  return run_workload(machine, workload("randomaccess"), options);
}

// A message has up to look_ahead updates. What travels does not depend on how many travel together.
TEST(Workloads, RandomAccessSendsTheUpdatesOfOtherProcesses) {
  const WorkloadResult alone = random_access(1024, 8, 1);
  EXPECT_EQ(alone.payload_bytes, 8 * alone.messages);
  constexpr double updates = 8 * 512 * 7.0 / 8;  // of other processes, on average
  EXPECT_NEAR(static_cast<double>(alone.messages), updates, 3 * std::sqrt(updates / 8));
  const WorkloadResult together = random_access(1024, 8, 1024);
  EXPECT_EQ(together.payload_bytes, alone.payload_bytes);
  EXPECT_EQ(together.messages, 8U * 7U);  // 512 are never held back enough
  EXPECT_LT(together.time, alone.time);
  EXPECT_LE(random_access(8, 2, 1, 3).messages, 2U * 3U);
}

TEST(Workloads, RandomAccessKeepsToTheRules) {
  for (const auto& [bytes, processes, look_ahead, updates] :
       std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint64_t>>{
           {24, 2, 1, 1}, {4, 2, 1, 1}, {8, 3, 1, 1}, {8, 2, 0, 1}, {8, 2, 1025, 1}, {8, 2, 1, 1U << 25U}}) {
    EXPECT_THROW(std::ignore = random_access(bytes, processes, look_ahead, updates), std::invalid_argument);
  }
}

}  // namespace
}  // namespace apenet
