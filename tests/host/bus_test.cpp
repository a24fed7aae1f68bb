#include "host/bus.hpp"

#include <gtest/gtest.h>

#include <functional>
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

}  // namespace
}  // namespace apenet
