// Published card-level numbers of EXTOLL on the Virtex-4.
//
// Litz et al., "VELO: A novel communication engine for ultra-low latency message transfers", ICPP 2008: 0.97
// us; the abstract does not state the size. Nuessle, Scherer, Bruening, "A resource optimized
// remote-memory-access architecture for low-latency communication", ICPP 2009: at least 4.9 million
// transactions per second. Nuessle, Geib, Froening, Bruening, "An FPGA-based custom high performance
// interconnection network", ReConFig 2009: close to 1 us between nodes. Kujat, Silla, Duato, Froening, "The
// New EXTOLL Conduit for the GASNet Networking Layer": 625 MB/s per link.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "machine/message_costs.hpp"
#include "runtime/scripted/card_run.hpp"
#include "runtime/scripted/card_tests.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

TestPoint measure(const MachineDescription& machine, CardTest test, std::int64_t size,
                  Path path = Path::automatic) {
  CardTestOptions options;
  options.path = path;
  options.sizes = {size};
  return run_card_test(machine, test, options)[0];
}

// The two software steps are fitted to this value.
TEST(Extoll, VeloTakes970ns) {
  EXPECT_NEAR(measure(test::machine("extoll-64"), CardTest::pingpong, 8, Path::send).time.to_us(), 0.97,
              0.97 * 0.02);
}

TEST(Extoll, AFullPacketBetweenNeighboursTakesCloseToAMicrosecond) {
  EXPECT_NEAR(measure(test::machine("extoll-64"), CardTest::pingpong, 56, Path::send).time.to_us(), 1.0,
              1.0 * 0.2);
}

Script put_many(CardProcess& process, ProcessId target, std::uint32_t count, std::uint32_t window,
                Time* end) {
  std::vector<std::uint64_t> posted;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i >= window) co_await process.completion(CompletionKind::sent, posted[i - window]);
    posted.push_back(process.post(
        {.verb = Verb::put, .target = target, .want_local = true, .notify_target = false, .bytes = 8}));
  }
  for (std::uint32_t i = count - window; i < count; ++i) {
    co_await process.completion(CompletionKind::sent, posted[i]);
  }
  *end = process.clock();
}

double transactions_per_second(std::uint32_t processes) {
  constexpr std::uint32_t count = 2000;
  std::vector<NodeId> nodes(processes, 0);
  nodes.resize(2 * std::size_t{processes}, 1);
  CardRun run(test::machine("extoll-64"), test::machine("extoll-64").card_software, nodes);
  std::vector<Time> ends(processes);
  for (ProcessId p = 0; p < processes; ++p) {
    run.spawn(p, put_many(run.process(p), processes + p, count, 16, &ends[p]));
  }
  run.run();
  return count * processes / (std::max_element(ends.begin(), ends.end())->to_us() * 1e-6);
}

// Predicted: the requester's 24 clocks of 156 MHz per command allow 6.5 million per second. One process that
// posts and takes notifications keeps it busy, and so do four.
TEST(Extoll, RmaReachesItsTransactionRate) {
  for (const std::uint32_t processes : {1U, 4U}) {
    const double rate = transactions_per_second(processes);
    EXPECT_GE(rate, 4.9e6) << processes;
    EXPECT_LE(rate, 6.5e6) << processes;
  }
}

// Predicted: 256 of every 288 bytes are payload.
TEST(Extoll, RmaFillsALink) {
  const TestPoint point = measure(test::machine("extoll-64"), CardTest::unidirectional, test::mib);
  const double mb_s = point.bandwidth_mib_s * test::mib / 1e6;
  EXPECT_LT(mb_s, 624.0 * 256 / 288);
  EXPECT_GT(mb_s, 624.0 * 256 / 288 * 0.98);
}

// A link that is never idle moves the published 625 MB/s, or the 624 of 156 MHz.
TEST(Extoll, ALinkMoves625MBPerSecond) {
  Simulation simulation;
  Machine machine(simulation, test::machine("extoll-64"), {0, 1});
  struct Ignore final : CompletionSink {
    void complete(const Completion&) override {}
    void deliver_payload(ProcessId, std::uint64_t) override {}
  } ignore;
  machine.set_sink(ignore);
  machine.post(Time::zero(), {.verb = Verb::put, .source = 0, .target = 1, .bytes = test::mib});
  simulation.run();
  for (const LinkUse& link : machine.link_use()) {
    if (link.packets == 0) continue;
    EXPECT_NEAR(static_cast<double>(link.wire_bytes) / link.busy.to_us(), 625.0, 625.0 * 0.005);
  }
}

// Both directions have separate wires, in the link and in HyperTransport.
TEST(Extoll, BothDirectionsAtOnceMoveNearlyTwiceAsMuch) {
  const double one = measure(test::machine("extoll-64"), CardTest::unidirectional, test::mib).bandwidth_mib_s;
  const double both = measure(test::machine("extoll-64"), CardTest::bidirectional, test::mib).bandwidth_mib_s;
  EXPECT_GT(both, 1.8 * one);
}

// The purpose of VELO: a small message takes longer by RMA, which reads by DMA and notifies; a train of many
// packets takes longer than RMA. The library takes the better one.
TEST(Extoll, TheLibraryTakesVeloOrRmaByTheirCost) {
  const MachineDescription machine = test::machine("extoll-64");
  for (std::int64_t bytes = 56; bytes <= 1064; bytes += 56) {
    const double velo_us = measure(machine, CardTest::pingpong, bytes, Path::send).time.to_us();
    const double rma_us = measure(machine, CardTest::pingpong, bytes, Path::put).time.to_us();
    const double chosen_us = measure(machine, CardTest::pingpong, bytes).time.to_us();
    EXPECT_EQ(chosen_us, bytes <= 7 * 56 ? velo_us : rma_us) << bytes;
    EXPECT_EQ(chosen_us, std::min(velo_us, rma_us)) << bytes;
  }
}

// MPI's eager messages are copied before RMA reads them. If that copy cost nothing, they would leave VELO
// where the card's own library does.
TEST(Extoll, MpiStaysWithVeloForLonger) {
  MachineDescription description = test::machine("extoll-64");
  const auto limit = [&description] {
    Simulation simulation;
    const Machine machine(simulation, description, {0, 1});
    return message_limits(machine).max_pio_bytes;
  };
  EXPECT_EQ(limit(), 13 * 56);
  description.host.copy_bytes_per_second = 1'000'000'000'000;
  EXPECT_EQ(limit(), 7 * 56);
  std::get<extoll::Description>(description.nic).velo_max_message_bytes = 3 * 56;
  EXPECT_EQ(limit(), 3 * 56);
}

}  // namespace
}  // namespace apenet
