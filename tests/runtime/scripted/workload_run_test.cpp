// Runs of workloads: what is counted before them, what is refused, and streams that take and compute. The
// ideal machine has 1 us of latency, one byte a nanosecond, and no software.
#include "runtime/scripted/workload_run.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "support/machines.hpp"

namespace apenet {
namespace {

constexpr std::int64_t ideal_latency_ns = 1000;

std::uint64_t carried_packets(const std::vector<LinkUse>& links) {
  return std::accumulate(links.begin(), links.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const LinkUse& link) { return sum + link.packets; });
}

// No two processes are neighbours, so that software forwards every message. Each packet is acknowledged on
// the same link, so that a link carries two packets a hop.
TEST(WorkloadRun, ForwardedPacketsAreCountedBeforeTheRun) {
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

TEST(WorkloadRun, NothingIsForwardedBetweenNeighboursOrByANetwork) {
  WorkloadOptions options;
  options.grid = {8, 8, 4};
  options.bytes = 1 << 20;
  EXPECT_EQ(count_packet_hops(test::machine("qpace"), workload("halo"), options).forwarded, 0);
  options.grid = {4, 2, 2};
  EXPECT_EQ(count_packet_hops(test::machine("ape16"), workload("alltoall"), options).forwarded, 0);
}

// What is counted before the run is what its links carry: packets of all pieces, over the shortest ways.
TEST(WorkloadRun, PacketHopsAreCountedBeforeTheRun) {
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
TEST(WorkloadRun, PacketHopsOfAbsurdRunsAreCountedAtOnce) {
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

TEST(WorkloadRun, RandomPairsOfTooManyRoundsAreRefused) {
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
TEST(WorkloadRun, AreOneObjectEach) {
  const Workload shift{.name = "shift", .definition = "", .algorithms = {{"", make_pattern<Shift>}}};
  WorkloadOptions options;
  options.grid = {5};
  options.bytes = 100;
  options.rounds = 2;
  const WorkloadResult result = run_workload(test::round_ideal(), shift, options);
  EXPECT_EQ(result.time, Time::from_ns(ideal_latency_ns + 150));
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

TEST(WorkloadRun, AStreamIsNotAtItsEndWhileThePatternYieldsNothing) {
  WorkloadStream stream = uneven_stream();
  const WorkloadStream::Operations two = stream.next();
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].peer, 2U);
  EXPECT_THROW(std::ignore = stream.next(), std::runtime_error);
}

TEST(WorkloadRun, AreKnownByName) {
  for (const Workload* one : workloads()) EXPECT_EQ(&workload(one->name), one);
  EXPECT_THROW(std::ignore = workload("shift"), std::invalid_argument);
  WorkloadOptions options;
  options.grid = {2};
  options.algorithm = "tree";
  EXPECT_THROW(std::ignore = run_workload(test::round_ideal(), workload("allreduce"), options),
               std::invalid_argument);
}

TEST(WorkloadRun, RefuseWhatCannotRun) {
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
TEST(WorkloadRun, TakeWhatHasArrivedAndDrainTheRest) {
  const Workload late{.name = "late", .definition = "", .algorithms = {{"", make_pattern<Late>}}};
  MachineDescription machine = test::round_ideal();
  machine.card_software = {};
  machine.card_software.receive = Time::from_ns(10);
  WorkloadOptions options;
  options.grid = {2};
  options.bytes = 100;
  options.rounds = 1;
  EXPECT_EQ(run_workload(machine, late, options).finish.at(1), Time::from_ns(ideal_latency_ns + 300 + 10));
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
TEST(WorkloadRun, DslashComputesWhileItsSurfacesTravel) {
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
            Time::from_ps(before + after) + Time::from_ns(ideal_latency_ns + 2 * bytes));
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
TEST(WorkloadRun, RandomAccessSendsTheUpdatesOfOtherProcesses) {
  const WorkloadResult alone = random_access(1024, 8, 1);
  EXPECT_EQ(alone.payload_bytes, 8 * alone.messages);
  constexpr double updates = 8 * 512 * 7.0 / 8;  // updates of other processes, on average
  EXPECT_NEAR(static_cast<double>(alone.messages), updates, 3 * std::sqrt(updates / 8));
  const WorkloadResult together = random_access(1024, 8, 1024);
  EXPECT_EQ(together.payload_bytes, alone.payload_bytes);
  EXPECT_EQ(together.messages, 8U * 7U);  // 512 are never held back enough
  EXPECT_LT(together.time, alone.time);
  EXPECT_LE(random_access(8, 2, 1, 3).messages, 2U * 3U);
}

TEST(WorkloadRun, RandomAccessKeepsToTheRules) {
  for (const auto& [bytes, processes, look_ahead, updates] :
       std::vector<std::tuple<std::int64_t, std::uint32_t, std::uint32_t, std::uint64_t>>{
           {24, 2, 1, 1}, {4, 2, 1, 1}, {8, 3, 1, 1}, {8, 2, 0, 1}, {8, 2, 1025, 1}, {8, 2, 1, 1U << 25U}}) {
    EXPECT_THROW(std::ignore = random_access(bytes, processes, look_ahead, updates), std::invalid_argument);
  }
}

}  // namespace
}  // namespace apenet
