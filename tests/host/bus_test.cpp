#include "host/bus.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "host/memory_copy.hpp"

namespace apenet {
namespace {

// Uses a 10 ns clock, so that the expected times are easy to read.
BusDescription round_bus() {
  BusDescription bus;
  bus.clock = {100'000'000};
  bus.width_bytes = 8;
  bus.transaction_overhead_cycles = 10;
  bus.max_burst_bytes = 256;
  bus.read_latency = Time::from_ns(300);
  bus.outstanding_reads = 2;
  return bus;
}

struct Grants final : BusClient {
  void bus_granted(const BusGrant& grant) override { list.push_back(grant); }
  std::vector<BusGrant> list;
};

// Runs an action at a given time.
struct At final : EventHandler {
  At(Simulation& simulation, EventSource& source, Time when, std::function<void()> action)
      : action_(std::move(action)) {
    simulation.schedule(source, when, *this);
  }
  void handle_event(const Event&) override { action_(); }
  std::function<void()> action_;
};

class BusTest : public testing::Test {
 protected:
  Simulation simulation;
  EventSource source{EventKind::control, 0, 0};
  Buses all{simulation, round_bus()};
  Bus bus{all, 0};
  Grants grants;
};

TEST_F(BusTest, AWriteTakesOverheadAndWords) {
  bus.write(Bus::Master::card, 64, Time::zero(), grants, 7);
  ASSERT_EQ(grants.list.size(), 1U);
  EXPECT_EQ(grants.list[0].tag, 7U);
  EXPECT_EQ(grants.list[0].first_data, Time::from_ns(110));
  EXPECT_EQ(grants.list[0].end, Time::from_ns(180));
  EXPECT_EQ(bus.occupancy(64), Time::from_ns(180));
  EXPECT_EQ(bus.occupancy(300), Time::from_ns((2 * 10 + 38) * 10));
}

TEST_F(BusTest, ABurstOnAnIdleBusMayBeginInThePastButEndsNoEarlierThanItsData) {
  At late(simulation, source, Time::from_ns(1000),
          [&] { bus.write(Bus::Master::card, 64, Time::from_ns(900), grants, 0); });
  At early(simulation, source, Time::from_ns(3000),
           [&] { bus.write(Bus::Master::card, 64, Time::from_ns(2000), grants, 1); });
  simulation.run();
  ASSERT_EQ(grants.list.size(), 2U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(1080));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(3000)) << "the tail of the data arrives at 3000 ns";
}

TEST_F(BusTest, NoTimeIsGrantedTwice) {
  At first(simulation, source, Time::from_ns(1000),
           [&] { bus.write(Bus::Master::processor, 64, Time::from_ns(1000), grants, 0); });
  At second(simulation, source, Time::from_ns(1200),
            [&] { bus.write(Bus::Master::card, 64, Time::from_ns(900), grants, 1); });
  simulation.run();
  EXPECT_EQ(grants.list[0].end, Time::from_ns(1180));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(1180 + 180));
}

TEST_F(BusTest, CountsWhatBurstsWaitForOtherTransfers) {
  bus.write(Bus::Master::processor, 64, Time::zero(), grants, 0);  // from 0 to 180 ns
  EXPECT_EQ(all.counters.waited, Time::zero());
  bus.write(Bus::Master::card, 600, Time::zero(), grants, 1);  // bursts of 256, 256 and 88 bytes
  simulation.run();
  EXPECT_EQ(all.counters.waited, Time::from_ns(180)) << "its bursts do not wait for each other";
  EXPECT_EQ(all.counters.bursts, 4U);
  EXPECT_EQ(bus.counters().busy, Time::from_ns(180 + (3 * 10 + 75) * 10));
}

TEST_F(BusTest, AReadIsASplitTransactionAndGrantsItsFirstAndLastWord) {
  bus.read(256, grants, 3);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 1U);
  EXPECT_EQ(grants.list[0].first_data, Time::from_ns(300 + 110));
  EXPECT_EQ(grants.list[0].end, Time::from_ns(300 + 100 + 320));
}

TEST_F(BusTest, OutstandingReadsHideTheLatency) {
  for (std::uint64_t tag = 0; tag < 4; ++tag) bus.read(64, grants, tag);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 4U);
  for (std::uint64_t tag = 0; tag < 4; ++tag) EXPECT_EQ(grants.list[tag].tag, tag);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(480));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(660)) << "directly after the first";
  EXPECT_EQ(grants.list[2].end, Time::from_ns(480 + 480)) << "requested when the first slot was free";
  EXPECT_EQ(grants.list[3].end, Time::from_ns(660 + 480));
}

TEST_F(BusTest, MastersTakeTurnsBurstByBurst) {
  BusDescription quick_reads = round_bus();
  quick_reads.read_latency = Time::zero();
  quick_reads.outstanding_reads = 100;
  Buses narrow(simulation, quick_reads);
  Bus shared(narrow, 1);
  Grants reads;
  Grants writes;
  for (std::uint64_t i = 0; i < 20; ++i) shared.read(256, reads, i);
  for (std::uint64_t i = 0; i < 20; ++i) shared.write(Bus::Master::card, 256, Time::zero(), writes, i);
  simulation.run();
  ASSERT_EQ(reads.list.size(), 20U);
  ASSERT_EQ(writes.list.size(), 20U);
  for (std::size_t i = 0; i + 1 < 20; ++i) {
    EXPECT_LT(writes.list[i].end, reads.list[i].end);
    EXPECT_LT(reads.list[i].end, writes.list[i + 1].end);
  }
  EXPECT_EQ(shared.counters().busy, shared.occupancy(256) * 40);
}

TEST_F(BusTest, ALongTransferIsGrantedWithItsLastBurst) {
  bus.read(600, grants, 0);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 1U);
  // Two full bursts of 420 ns, then 10 + 11 cycles. The third read gets its slot when the first has ended.
  const Time second_end = Time::from_ns(300 + 2 * 420);
  const Time third_ready = Time::from_ns(300 + 420 + 300);
  EXPECT_EQ(grants.list[0].end, std::max(second_end, third_ready) + Time::from_ns(210));
}

TEST(MemoryCopyTest, CopiesQueueBehindOneAnother) {
  HostDescription host;
  host.copy_bytes_per_second = 1'000'000'000;
  MemoryCopy copy(host);
  EXPECT_EQ(copy.reserve(Time::zero(), 1000), Time::from_ns(1000));
  EXPECT_EQ(copy.reserve(Time::from_ns(500), 1000), Time::from_ns(2000));
  EXPECT_EQ(copy.reserve(Time::from_ns(5000), 1000), Time::from_ns(6000));
}

// Headers of 10 clocks in both directions, followed by the words.
class DuplexBusTest : public testing::Test {
 protected:
  static BusDescription duplex() {
    BusDescription bus = round_bus();
    bus.full_duplex = true;
    return bus;
  }
  Simulation simulation;
  Buses all{simulation, duplex()};
  Bus bus{all, 0};
  Grants grants;
};

TEST_F(DuplexBusTest, TheDirectionsAreIndependent) {
  bus.write(Bus::Master::card, 256, Time::zero(), grants, 1);
  bus.write(Bus::Master::processor, 256, Time::zero(), grants, 2);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 2U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(420));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(420));
}

TEST_F(DuplexBusTest, AReadRequestIsAHeaderAfterTheCardsWrites) {
  bus.write(Bus::Master::card, 256, Time::zero(), grants, 1);  // to the host until 420
  bus.read(64, grants, 2);                                     // request until 520, answered at 820
  simulation.run();
  ASSERT_EQ(grants.list.size(), 2U);
  EXPECT_EQ(grants.list[1].tag, 2U);
  EXPECT_EQ(grants.list[1].first_data, Time::from_ns(820 + 110));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(820 + 180));
}

TEST_F(DuplexBusTest, OutstandingReadsLimitTheirBandwidth) {
  for (std::uint64_t tag = 0; tag < 3; ++tag) bus.read(256, grants, tag);
  simulation.run();
  // Two slots: the requests end at 100 and 200, their data at 820 and 1240. The first slot is free at 820:
  // its next request ends at 920, is answered at 1220, and waits for the second read's data.
  ASSERT_EQ(grants.list.size(), 3U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(820));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(1240));
  EXPECT_EQ(grants.list[2].end, Time::from_ns(1660));
}

// PCI Express of generation 2 with 8 lanes: 4 bytes a nanosecond. A write of 128 bytes takes (24 + 128) / 4 =
// 38 ns, a read request 24 / 4 = 6 ns, a completion of 128 bytes (20 + 128) / 4 = 37 ns.
class PcieTest : public testing::Test {
 protected:
  static BusDescription gen2_x8() {
    BusDescription bus;
    bus.clock = {250'000'000};
    bus.width_bytes = 16;
    bus.full_duplex = true;
    bus.max_burst_bytes = 128;
    bus.read_latency = Time::from_ns(300);
    bus.outstanding_reads = 2;
    bus.pio_write_latency = Time::from_ns(100);
    bus.pcie_generation = 2;
    bus.read_request_bytes = 512;
    bus.completion_bytes = 128;
    bus.packets_per_update = 64;
    return bus;
  }
  // The time at which the last of `count` writes of 128 bytes, and the last of as many reads, has ended.
  static std::pair<Time, Time> both_directions(const BusDescription& description, std::uint64_t count) {
    Simulation simulation;
    Buses all(simulation, description);
    Bus bus(all, 0);
    Grants reads;
    Grants writes;
    for (std::uint64_t i = 0; i < count; ++i) bus.read(512, reads, i);
    for (std::uint64_t i = 0; i < 4 * count; ++i) bus.write(Bus::Master::card, 128, Time::zero(), writes, i);
    simulation.run();
    return {writes.list.back().end, reads.list.back().end};
  }
  Simulation simulation;
  Grants grants;
};

TEST_F(PcieTest, PacketsHaveThePublishedHeaders) {
  Buses all(simulation, gen2_x8());
  Bus bus(all, 0);
  bus.write(Bus::Master::card, 128, Time::zero(), grants, 1);
  bus.write(Bus::Master::processor, 8, Time::zero(), grants, 2);
  bus.write(Bus::Master::card, 200, Time::zero(), grants, 3);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 3U);
  EXPECT_EQ(grants.list[0].first_data, Time::from_ns(7)) << "24 bytes of header and the first word";
  EXPECT_EQ(grants.list[0].end, Time::from_ns(38));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(8)) << "the other direction";
  EXPECT_EQ(grants.list[2].end, Time::from_ns(38 + 38 + 24))
      << "128 bytes, and 72 with a header of their own";
  EXPECT_EQ(bus.occupancy(200), Time::from_ns(38 + 24));
  EXPECT_EQ(bus.occupancy(13), Time::from_ns(10)) << "13 bytes are 4 words";
}

TEST_F(PcieTest, ARequestIsAnsweredByCompletions) {
  Buses all(simulation, gen2_x8());
  Bus bus(all, 0);
  bus.read(512, grants, 1);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 1U) << "once, with the last completion";
  EXPECT_EQ(grants.list[0].first_data, Time::from_ns(6 + 300 + 3 * 37 + 6));
  EXPECT_EQ(grants.list[0].end, Time::from_ns(6 + 300 + 4 * 37));
}

TEST_F(PcieTest, ATagIsHeldUntilTheLastCompletion) {
  Buses all(simulation, gen2_x8());
  Bus bus(all, 0);
  bus.read(1536, grants, 1);  // three requests on two tags
  simulation.run();
  // The first two requests end at 6 and 12 ns; their completions are on the bus from 306 to 306 + 8 * 37. The
  // third gets the first tag at 306 + 4 * 37 = 454: requested until 460, answered from 760 on.
  ASSERT_EQ(grants.list.size(), 1U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(760 + 4 * 37));
}

TEST_F(PcieTest, CompletionsAreSplitAtTheirBoundary) {
  BusDescription description = gen2_x8();
  description.completion_bytes = 64;
  Buses all(simulation, description);
  Bus bus(all, 0);
  bus.read(512, grants, 1);
  simulation.run();
  EXPECT_EQ(grants.list[0].end, Time::from_ns(6 + 300 + 8 * 21)) << "(20 + 64) / 4 = 21 ns each";
}

TEST_F(PcieTest, ACompletionIsAPacketOfTheBus) {
  BusDescription description = gen2_x8();
  description.completion_bytes = 512;
  Buses all(simulation, description);
  Bus bus(all, 0);
  bus.read(512, grants, 1);
  simulation.run();
  EXPECT_EQ(grants.list[0].end, Time::from_ns(6 + 300 + 4 * 37)) << "of 128 bytes, as packets are";
}

TEST_F(PcieTest, ShortRequestsHaveShortCompletions) {
  BusDescription description = gen2_x8();
  description.max_burst_bytes = 512;
  description.completion_bytes = 512;
  description.read_request_bytes = 128;
  description.outstanding_reads = 1;
  Buses all(simulation, description);
  Bus bus(all, 0);
  bus.read(200, grants, 1);
  simulation.run();
  // One tag: 6 ns of request, 300 of latency and 37 of completion, then the same with 72 bytes, (20 + 72) / 4
  // = 23.
  ASSERT_EQ(grants.list.size(), 1U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(6 + 300 + 37 + 6 + 300 + 23));
}

TEST_F(PcieTest, ReadRequestsShareTheDirectionOfWrites) {
  BusDescription description = gen2_x8();
  description.outstanding_reads = 1000;
  const std::uint64_t count = 1000;
  const auto [writes, reads] = both_directions(description, count);
  // To the host: 4 writes and a request for each 512 bytes, and 8 bytes of acknowledgement for 64
  // completions.
  const std::int64_t updates_to_host = 4 * 1000 / 64 * 2;
  const std::int64_t to_host = 1000 * (4 * 38 + 6) + updates_to_host;
  EXPECT_NEAR(static_cast<double>(writes.ps()), static_cast<double>(to_host) * 1e3, 6e3);
  // To the card: 16 bytes of acknowledgement and credits for 64 packets; the requests are spread over the
  // writes.
  EXPECT_GT(reads, Time::from_ns(1000 * 4 * 37));
  EXPECT_LE(reads, Time::from_ns(to_host + 300 + 4 * 37));
}

TEST_F(PcieTest, UpdatesTakeTimeWhereSomethingWaits) {
  BusDescription description = gen2_x8();
  description.packets_per_update = 1;
  Buses all(simulation, description);
  Bus bus(all, 0);
  bus.write(Bus::Master::processor, 8, Time::zero(), grants, 1);  // nothing to delay
  bus.write(Bus::Master::card, 128, Time::zero(), grants, 2);     // its update goes after the first packet
  bus.write(Bus::Master::processor, 8, Time::zero(), grants, 3);
  simulation.run();
  ASSERT_EQ(grants.list.size(), 3U);
  EXPECT_EQ(grants.list[0].end, Time::from_ns(8));
  EXPECT_EQ(grants.list[1].end, Time::from_ns(38));
  EXPECT_EQ(grants.list[2].end, Time::from_ns(8 + 4 + 8)) << "16 bytes of update, then 32 of the write";
}

TEST_F(PcieTest, WritesWaitForCreditsAndRequestsWaitBehindThem) {
  BusDescription description = gen2_x8();
  description.posted_credit_bytes = 256;
  description.credit_return = Time::from_ns(1000);
  Buses all(simulation, description);
  Bus first(all, 5);
  Bus second(all, 6);
  for (std::uint64_t i = 0; i < 4; ++i) first.write(Bus::Master::card, 128, Time::zero(), grants, i);
  Grants others;
  second.write(Bus::Master::card, 128, Time::zero(), others, 9);
  simulation.run();
  // Two writes have credits, which come back at 256 bytes in 1000 ns: the third starts at 500, the fourth at
  // 1000.
  ASSERT_EQ(grants.list.size(), 4U);
  EXPECT_EQ(grants.list[1].end, Time::from_ns(76));
  EXPECT_EQ(grants.list[2].end, Time::from_ns(500 + 38));
  EXPECT_EQ(grants.list[3].end, Time::from_ns(1000 + 38));
  ASSERT_EQ(others.list.size(), 1U);
  EXPECT_EQ(others.list[0].end, Time::from_ns(38)) << "each bus has credits of its own";
}

TEST_F(PcieTest, TheRateOfEachGenerationIsThatOfItsLanes) {
  struct Rate {
    std::int64_t generation;
    std::int64_t hertz;
    std::int64_t write_ps;  // 152 bytes on 8 lanes
  };
  for (const Rate& rate :
       {Rate{1, 250'000'000, 76'000}, Rate{2, 500'000'000, 38'000}, Rate{3, 984'615'384, 19'297},
        Rate{4, 1'969'230'768, 9'649}, Rate{5, 3'938'461'537, 4'825}}) {
    BusDescription description = gen2_x8();
    description.width_bytes = 8;
    description.pcie_generation = rate.generation;
    description.clock = {rate.hertz};
    EXPECT_NO_THROW(validate(description)) << rate.generation;
    EXPECT_EQ(BusKind(description).occupancy(128), Time::from_ps(rate.write_ps)) << rate.generation;
    description.clock = {rate.hertz / 3 * 4};
    EXPECT_THROW(validate(description), std::invalid_argument) << rate.generation;
  }
}

TEST_F(PcieTest, ImpossibleBusesAreRefusedWithKeyValueAndReason) {
  const auto refusal = [](auto change) {
    BusDescription description = gen2_x8();
    change(description);
    try {
      validate(description);
    } catch (const std::invalid_argument& refused) {
      return std::string(refused.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_EQ(refusal([](auto& bus) { bus.full_duplex = false; }),
            "bus.duplex = half: expected full with bus.pcie_generation");
  EXPECT_EQ(refusal([](auto& bus) { bus.transaction_overhead_cycles = 2; }),
            "bus.transaction_overhead_cycles = 2: expected none with bus.pcie_generation, whose packets have "
            "their own headers");
  EXPECT_EQ(refusal([](auto& bus) { bus.pcie_generation = 6; }),
            "bus.pcie_generation = 6: expected at most 5");
  EXPECT_EQ(
      refusal([](auto& bus) { bus.read_request_bytes = 500; }),
      "bus.read_request_bytes = 500: expected a power of two from 128 to 4096 with bus.pcie_generation");
  EXPECT_EQ(refusal([](auto& bus) { bus.completion_bytes = 32; }),
            "bus.completion_bytes = 32: expected a power of two from 64 to 4096 with bus.pcie_generation");
  EXPECT_EQ(refusal([](auto& bus) { bus.packets_per_update = 0; }),
            "bus.packets_per_update = 0: expected 1 or more");
  EXPECT_EQ(
      refusal([](auto& bus) { bus.posted_credit_bytes = 4096; }),
      "bus.credit_return_ns = 0 ps: expected more than zero with bus.posted_credit_bytes, and none without");
  EXPECT_EQ(refusal([](auto& bus) {
              bus.posted_credit_bytes = 64;
              bus.credit_return = Time::from_ns(100);
            }),
            "bus.posted_credit_bytes = 64: expected 128 or more");
  EXPECT_EQ(refusal([](auto& bus) {
              bus.pcie_generation = 0;
              bus.transaction_overhead_cycles = 2;
            }),
            "bus.read_request_bytes = 512: expected none without bus.pcie_generation");
  BusDescription other = round_bus();
  other.pio_write_latency = Time::from_ns(100);
  EXPECT_NO_THROW(validate(other));
  other.transaction_overhead_cycles = 0;
  EXPECT_THROW(validate(other), std::invalid_argument) << "neither overhead nor generation";
}

}  // namespace
}  // namespace apenet
