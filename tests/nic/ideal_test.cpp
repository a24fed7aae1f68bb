// The ideal card's paths and protocols, against times calculated by hand (docs/models/fabric.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "machine/machine.hpp"
#include "nic/fabric.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

using test::Recorder;
Time ns(std::int64_t count) {
  return Time::from_ns(count);
}

constexpr DataRate byte_per_ns = DataRate::bytes_per_second(1'000'000'000);
constexpr DataRate half_a_byte_per_ns = DataRate::bytes_per_second(500'000'000);

ideal::Path path(std::int64_t latency_ns, std::int64_t gap_ns, DataRate rate) {
  return {.latency = ns(latency_ns), .gap = ns(gap_ns), .rate = rate, .transit = {}};
}

class IdealTest : public testing::Test {
 protected:
  void wire(const ideal::Protocols& protocols) {
    MachineDescription description = test::round_ideal();
    description.nic = test::fabric_of(protocols);
    machine = std::make_unique<Machine>(simulation, description, std::vector<NodeId>{0, 1, 2});
    machine->set_sink(recorder);
  }
  void post(std::int64_t bytes, ProcessId target = 1) {
    machine->post(Time::zero(), {.source = 0, .target = target, .bytes = bytes, .message = next++});
  }
  // Arrival times in the order of the messages.
  std::vector<Time> arrivals() {
    simulation.run();
    std::vector<Time> times(next);
    for (const Completion& arrived : recorder.of(CompletionKind::arrived))
      times.at(arrived.message) = arrived.time;
    return times;
  }

  Simulation simulation;
  Recorder recorder{simulation};
  std::unique_ptr<Machine> machine;
  std::uint64_t next = 0;
};

struct Together {
  std::int64_t messages;
  std::int64_t bytes;
  std::int64_t last_ns;
};

class SlowestPath : public IdealTest, public testing::WithParamInterface<Together> {};

// n messages posted together arrive after max(1000 + n (100 + N), 3000 + n (10 + 2 N)) ns.
TEST_P(SlowestPath, Decides) {
  wire({{.paths = {path(1000, 100, byte_per_ns), path(3000, 10, half_a_byte_per_ns)}}});
  for (std::int64_t i = 0; i < GetParam().messages; ++i) post(GetParam().bytes);
  const std::vector<Time> times = arrivals();
  EXPECT_EQ(*std::max_element(times.begin(), times.end()), ns(GetParam().last_ns));
}

INSTANTIATE_TEST_SUITE_P(ByHand, SlowestPath,
                         testing::Values(Together{1, 0, 3010}, Together{1, 100, 3210}, Together{20, 10, 3600},
                                         Together{50, 0, 6000}, Together{100, 10, 12000},
                                         Together{100, 200, 44000}));

TEST_F(IdealTest, EachProtocolTakesMessagesUpToItsSize) {
  wire({{.max_message_bytes = 100, .paths = {path(1000, 0, byte_per_ns)}},
        {.max_message_bytes = 200, .paths = {path(5000, 0, byte_per_ns)}},
        {.paths = {path(9000, 0, half_a_byte_per_ns)}}});
  post(100);
  // The messages share one wire, so each waits until it is free, at 100 and 201 ns after the doorbell.
  post(101, 2);
  EXPECT_EQ(arrivals(), (std::vector<Time>{ns(1100), ns(5201)}));
}

TEST_F(IdealTest, TheLastProtocolHasNoLimit) {
  wire({{.max_message_bytes = 100, .paths = {path(1000, 0, byte_per_ns)}},
        {.paths = {path(9000, 0, half_a_byte_per_ns)}}});
  post(201);
  EXPECT_EQ(arrivals().at(0), ns(9402));
}

TEST_F(IdealTest, MessagesToOneTargetDoNotOvertakeEachOther) {
  wire({{.max_message_bytes = 100, .paths = {path(1000, 0, byte_per_ns)}},
        {.paths = {path(5000, 0, byte_per_ns)}}});
  post(200);
  post(10);     // would arrive at 1210
  post(10, 2);  // another target, so it arrives then
  EXPECT_EQ(arrivals(), (std::vector<Time>{ns(5200), ns(5200), ns(1220)}));
}

TEST_F(IdealTest, TransitDelaysAMessageButDoesNotOccupyThePath) {
  ideal::Path slow_to_arrive = path(1000, 0, byte_per_ns);
  slow_to_arrive.transit = half_a_byte_per_ns;
  wire({{.paths = {slow_to_arrive}}});
  post(100);
  post(100);
  // 1000 + 100 + 200; the second message arrives only the 100 ns on the wire later.
  EXPECT_EQ(arrivals(), (std::vector<Time>{ns(1300), ns(1400)}));
}

TEST_F(IdealTest, ThePayloadHasLeftBeforeItArrives) {
  wire({{.paths = {path(1000, 0, byte_per_ns), path(0, 0, half_a_byte_per_ns)}}});
  machine->post(Time::zero(), {.source = 0, .target = 1, .want_local = true, .bytes = 1000});
  simulation.run();
  // The second path determines the time: 2 ns per byte, no latency. The doorbell's 1000 ns are part of it.
  EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, ns(2000));
  EXPECT_EQ(recorder.of(CompletionKind::sent).at(0).time, ns(2000));
}

}  // namespace
}  // namespace apenet
