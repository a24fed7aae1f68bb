#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "runtime/scripted/card_run.hpp"
#include "runtime/scripted/card_tests.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

// On the ideal machine: 1 us of latency, one byte a nanosecond.
message::SoftwareCosts round_software() {
  message::SoftwareCosts software;
  software.send = Time::from_ns(100);
  software.receive = Time::from_ns(200);
  software.after_receive = Time::from_ns(400);
  software.completion = Time::from_ns(50);
  return software;
}

class Scripted : public testing::Test {
 protected:
  CardRun run{test::round_ideal(), round_software(), {0, 1, 2}};
};

Script send_one(CardProcess& process, ProcessId target, Time start, std::int64_t bytes) {
  process.compute(start);
  process.send(target, bytes);
  co_return;
}

Script receive(CardProcess& process, int count, std::vector<Completion>* taken, std::vector<Time>* clocks) {
  for (int i = 0; i < count; ++i) {
    taken->push_back(co_await process.arrival());
    clocks->push_back(process.clock());
  }
}

TEST_F(Scripted, ChargesEachStepToTheProcessThatDoesIt) {
  std::vector<Completion> taken;
  std::vector<Time> clocks;
  run.spawn(0, send_one(run.process(0), 2, Time::from_ns(1000), 10));
  run.spawn(2, receive(run.process(2), 1, &taken, &clocks));
  run.run();
  EXPECT_EQ(run.process(0).clock(), Time::from_ns(1100));
  EXPECT_EQ(taken.at(0).time, Time::from_ns(1100 + 1000 + 10));
  EXPECT_EQ(clocks.at(0), Time::from_ns(1100 + 1000 + 10 + 200));
}

TEST_F(Scripted, TakesArrivalsInTheirOrderAndChargesTheDeferredCostBeforeTheNext) {
  std::vector<Completion> taken;
  std::vector<Time> clocks;
  run.spawn(0, send_one(run.process(0), 2, Time::from_ns(50), 0));
  run.spawn(1, send_one(run.process(1), 2, Time::zero(), 0));
  run.spawn(2, receive(run.process(2), 2, &taken, &clocks));
  run.run();
  EXPECT_EQ(taken.at(0).source, 1U);
  EXPECT_EQ(taken.at(1).source, 0U);
  EXPECT_EQ(clocks.at(0), Time::from_ns(1100 + 200));
  EXPECT_EQ(clocks.at(1), Time::from_ns(1300 + 400 + 200)) << "it came at 1150 ns, but the CPU was busy";
}

Script choose(CardProcess& process, std::vector<ProcessId>* order) {
  process.compute(Time::from_ns(10'000));
  order->push_back((co_await process.arrival_from(0)).source);
  order->push_back((co_await process.arrival()).source);
  EXPECT_EQ(process.clock(), Time::from_ns(10'000 + 200 + 400 + 200));
}

TEST_F(Scripted, MayWaitForOneSourceAndComeLate) {
  std::vector<ProcessId> order;
  run.spawn(0, send_one(run.process(0), 2, Time::from_ns(500), 0));
  run.spawn(1, send_one(run.process(1), 2, Time::zero(), 0));
  run.spawn(2, choose(run.process(2), &order));
  run.run();
  EXPECT_EQ(order, (std::vector<ProcessId>{0, 1}));
}

Script one_sided(CardProcess& process) {
  const std::uint64_t put = process.post({.verb = Verb::put,
                                          .target = 1,
                                          .want_local = true,
                                          .want_remote = true,
                                          .notify_target = false,
                                          .bytes = 1000});
  co_await process.completion(CompletionKind::remote_done, put);
  EXPECT_EQ(process.clock(), Time::from_ns(100 + 1000 + 1000 + 1000 + 50));
  co_await process.completion(CompletionKind::sent, put);
  EXPECT_EQ(process.clock(), Time::from_ns(3150 + 50));
  const std::uint64_t get = process.post({.verb = Verb::get, .target = 1, .bytes = 500});
  co_await process.completion(CompletionKind::got, get);
  EXPECT_EQ(process.clock(), Time::from_ns(3200 + 100 + 1000 + 500 + 1000 + 50));
}

TEST_F(Scripted, PutsAndGetsAreWaitedForByTheirNumber) {
  run.spawn(0, one_sided(run.process(0)));
  run.run();
}

TEST_F(Scripted, ADeadlockSaysWhoWaitsForWhat) {
  std::vector<ProcessId> order;
  run.spawn(2, choose(run.process(2), &order));
  try {
    run.run();
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "deadlock: process 2 at 10000000 ps waits for an arrival from process 0");
  }
}

Script fail(CardProcess& process) {
  process.compute(Time::from_ns(1));
  throw std::logic_error("inside");
  co_return;
}

Script fail_outside(CardProcess& process) {
  co_await fail(process);
}

TEST_F(Scripted, WhatAScriptThrowsComesOutOfTheRun) {
  run.spawn(0, fail_outside(run.process(0)));
  EXPECT_THROW(run.run(), std::logic_error);
}

// latency 1000, send 100, receive 200, after_receive 400.
class CardTests : public testing::Test {
 protected:
  CardTests() { machine.card_software = round_software(); }
  [[nodiscard]] TestPoint point(CardTest test, std::int64_t bytes, CardTestOptions options = {}) const {
    options.sizes = {bytes};
    return run_card_test(machine, test, options).at(0);
  }
  MachineDescription machine = test::round_ideal();
};

TEST_F(CardTests, PingPongIsHalfARoundTripAndHidesTheDeferredCost) {
  EXPECT_EQ(point(CardTest::pingpong, 500).time, Time::from_ns(100 + 1000 + 500 + 200));
  EXPECT_EQ(point(CardTest::roundtrip, 500).time, Time::from_ns(2 * 1800));
  EXPECT_NEAR(point(CardTest::pingpong, 500).bandwidth_mib_s, 500.0 / 1.8 * 1e6 / (1 << 20), 1e-6);
}

TEST_F(CardTests, OneWayIsAGap) {
  CardTestOptions many;
  many.iterations = 10'000;
  EXPECT_NEAR(point(CardTest::oneway, 16, many).time.to_us(), 0.6, 1e-3) << "receive + after_receive";
  EXPECT_NEAR(point(CardTest::oneway, 5000, many).time.to_us(), 5.0, 1e-3) << "the wire";
  EXPECT_NEAR(point(CardTest::unidirectional, 5000, many).time.to_us(), 5.0, 1e-3);
}

TEST_F(CardTests, BidirectionalCountsBothDirections) {
  const TestPoint both = point(CardTest::bidirectional, 1 << 20);
  EXPECT_GT(both.bandwidth_mib_s, 1.9 * 1e9 / (1 << 20));
}

TEST_F(CardTests, PingPingIsARoundInWhichBothSendFirst) {
  const TestPoint round = point(CardTest::pingping, 500);
  EXPECT_EQ(round.time, Time::from_ns(100 + 1000 + 500 + 200));
  EXPECT_NEAR(round.bandwidth_mib_s, 500.0 / 1.8 * 1e6 / (1 << 20), 1e-6) << "that of one direction";
}

TEST_F(CardTests, SendAndReceiveAlsoWaitsForItsBuffer) {
  EXPECT_EQ(point(CardTest::bidirectional, 500).time, Time::from_ns(100 + 1000 + 500 + 200 + 400 + 50));
}

TEST_F(CardTests, AWindowKeepsTheWireBusyBothWays) {
  CardTestOptions options;
  options.window = 4;
  options.iterations = 1000;
  EXPECT_NEAR(point(CardTest::bidirectional, 5000, options).time.to_us(), 5.0, 0.02) << "and the last flight";
}

// All posted by 1000 ns, the first at 100: the wire is busy from then on.
TEST_F(CardTests, FlushEndsWithTheSendersCompletions) {
  CardTestOptions ten;
  ten.iterations = 10;
  const Time flushed = point(CardTest::flush, 5000, ten).time;
  ten.until_landed = true;
  const Time landed = point(CardTest::oneway, 5000, ten).time;
  EXPECT_EQ(landed, Time::from_ns((100 + 10 * 5000 + 1000 + 200) / 10));
  EXPECT_LT(flushed, landed) << "the flight and the receiver's software are not in it";
  EXPECT_GE(flushed, Time::from_ns((100 + 10 * 5000 + 50) / 10));
}

// The CPU posts every 100 ns; of the 31 full windows of 64, the first 30 are waited for at 50 ns each; the
// deferred cost of the message that began the test is 400, and the last put ends with flight, bytes and
// receive.
TEST_F(CardTests, RateIsThatOfPuts) {
  EXPECT_EQ(point(CardTest::rate, 16).time, Time::from_ps(101'558));
  CardTestOptions spread;
  spread.channels = 4;
  EXPECT_NEAR(point(CardTest::rate, 16, spread).time.to_us(), 0.102, 1e-3);
}

TEST_F(CardTests, AStagedGpuBufferIsCopiedAtItsSide) {
  machine.host.gpu_copy_bytes_per_second = 1'000'000'000;
  machine.host.gpu_copy_latency = Time::from_ns(10'000);
  CardTestOptions staged;
  staged.remote = Buffer::gpu_staged;
  // Into the remote one and out of it again: half of that in half a round trip.
  const Time plain = point(CardTest::pingpong, 1000).time;
  EXPECT_EQ(point(CardTest::pingpong, 1000, staged).time - plain, Time::from_ns(10'000 + 1000));
}

TEST_F(CardTests, ChannelsAreMessagesAtOnce) {
  CardTestOptions two;
  two.channels = 2;
  EXPECT_EQ(point(CardTest::pingpong, 500, two).time, Time::from_ns(100 + 1000 + 500 + 200 + 400 + 200))
      << "the second arrives while the first's receive and its deferred cost are done";
}

TEST_F(CardTests, CopiedTransfersCostACopyAtBothEnds) {
  CardTestOptions copied;
  copied.local = copied.remote = Buffer::host_copied;
  const Time plain = point(CardTest::pingpong, 1 << 20).time;
  const Time slow = point(CardTest::pingpong, 1 << 20, copied).time;
  EXPECT_EQ(slow - plain, Time::from_ns(2 * 250'000)) << "4000 MiB/s";
}

TEST_F(CardTests, MessagesLargerThanADescriptorAreCut) {
  MachineDescription ape16 = test::machine("ape16");
  std::get<apelink::Description>(ape16.nic).max_message_bytes = 64 * 1024;
  CardTestOptions options;
  options.sizes = {1 << 18};
  const double cut = run_card_test(ape16, CardTest::pingpong, options)[0].bandwidth_mib_s;
  const double whole = run_card_test(test::machine("ape16"), CardTest::pingpong, options)[0].bandwidth_mib_s;
  EXPECT_NEAR(cut, whole, whole / 100);
}

// A result must not name a window that no size had.
TEST_F(CardTests, AWindowThatNoSizeFillsIsRefused) {
  CardTestOptions options;
  options.iterations = 20;
  for (const CardTest test : {CardTest::bidirectional, CardTest::unidirectional}) {
    options.window = 20;
    EXPECT_GT(point(test, 16, options).time, Time::zero());
    for (const std::uint32_t window : {21U, 1000U, 4294967295U}) {
      options.window = window;
      EXPECT_THROW(std::ignore = point(test, 16, options), std::invalid_argument) << window;
    }
  }
}

// By hand: messages, packets of 256 bytes, links.
TEST_F(CardTests, PacketHopsAreCountedBeforeTheRun) {
  const MachineDescription ape16 = test::machine("ape16");
  CardTestOptions options;
  options.sizes = {1024, 1025};
  options.iterations = 10;
  options.nodes = {0, 2};
  options.channels = 2;
  const auto count = [&](CardTest test) { return count_packet_hops(ape16, test, options).all; };
  EXPECT_EQ(count(CardTest::pingpong), 2 * 12 * (4 + 5) * 2 * 2) << "two rounds warm up";
  EXPECT_EQ(count(CardTest::bidirectional), 2 * 12 * (4 + 5) * 2 * 2);
  EXPECT_EQ(count(CardTest::oneway), 10 * (4 + 5) * 2 * 2);
  EXPECT_EQ(count(CardTest::rate), 10 * (4 + 5) * 2) << "the channels take turns";
  options.sizes = {std::int64_t{1} << 40};
  options.channels = 1;
  options.nodes = {0, 1};
  EXPECT_EQ(count(CardTest::pingpong), 2 * 12 * 4294967296.0);
}

TEST_F(CardTests, RefuseMoreMessagesThanMemoryHasRoomFor) {
  CardTestOptions options;
  options.iterations = (1U << 25U) + 1;
  EXPECT_THROW(std::ignore = point(CardTest::flush, 1, options), std::invalid_argument);
  options.sizes = {1};
  EXPECT_THROW(std::ignore = count_packet_hops(machine, CardTest::flush, options), std::invalid_argument);
  options.iterations = 1U << 25U;
  EXPECT_EQ(count_packet_hops(machine, CardTest::flush, options).all, 1 << 25);
}

TEST_F(CardTests, RefuseWhatCannotBeMeasured) {
  EXPECT_THROW(std::ignore = run_card_test(machine, CardTest::pingpong, {}), std::invalid_argument);
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, -1), std::invalid_argument);
  CardTestOptions options;
  options.channels = 1000;
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 1, options), std::invalid_argument);
  options = {};
  options.nodes = {3};
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 1, options), std::invalid_argument);
  options = {};
  options.window = 2;
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 1, options), std::invalid_argument);
  options = {};
  options.local = Buffer::gpu;
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 1, options), std::invalid_argument);
  options.local = Buffer::gpu_staged;
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 1, options), std::invalid_argument);
  options = {};
  options.region_bytes = 1;
  EXPECT_THROW(std::ignore = point(CardTest::pingpong, 2, options), std::invalid_argument);
  options = {};
  options.path = Path::send;
  EXPECT_THROW(std::ignore = point(CardTest::rate, 16, options), std::invalid_argument);
  options = {};
  options.until_landed = true;
  EXPECT_THROW(std::ignore = point(CardTest::flush, 16, options), std::invalid_argument);
}

}  // namespace
}  // namespace apenet
