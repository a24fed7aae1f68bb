// Messages between processes of one node that go through their card (card.same_node = "card").
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nic/card_fixture.hpp"
#include "nic/contract_cards.hpp"
#include "runtime/scripted/card_tests.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

MachineDescription loop_back(std::string_view name) {
  return test::machine(name, {{"card.same_node", std::string("card")}});
}

std::uint64_t counter(const Machine& machine, const std::string& name) {
  for (const Counter& counter : machine.counters()) {
    if (counter.name == name) return counter.value;
  }
  return 0;
}

class LoopBack : public testing::TestWithParam<test::ContractCard> {};

// A message takes as long as one to another node, less the second router and the link.
TEST_P(LoopBack, CrossesOneRouterAndNoLink) {
  const auto arrival = [](NodeId node_of_target) {
    Simulation simulation;
    test::Recorder recorder(simulation);
    const MachineDescription description = GetParam().machine();
    Machine machine(simulation, description, {0, node_of_target});
    machine.set_sink(recorder);
    recorder.empties_mailboxes_of(machine);
    machine.post(Time::zero(), {.source = 0, .target = 1, .bytes = 100});
    simulation.run();
    EXPECT_EQ(machine.link_crossings(), node_of_target == 0 ? 0U : 1U);
    EXPECT_EQ(counter(machine, "local_messages"), 0U);
    EXPECT_EQ(counter(machine, "packets"), 1U);
    return recorder.of(CompletionKind::arrived).at(0).time;
  };
  const NetworkDescription network = GetParam().machine().network;
  const Time apart = arrival(1) - arrival(0);
  EXPECT_GE(apart, network.links[0].latency + network.router_latency);
  EXPECT_LE(apart, (network.links[0].latency + network.router_latency) * 2);
}

TEST_P(LoopBack, IsAlsoTheWayOfAProcessToItself) {
  Simulation simulation;
  test::Recorder recorder(simulation);
  Machine machine(simulation, GetParam().machine(), {0});
  machine.set_sink(recorder);
  recorder.empties_mailboxes_of(machine);
  machine.post(Time::zero(), {.source = 0, .target = 0, .bytes = 100});
  simulation.run();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), 1U);
  EXPECT_EQ(counter(machine, "packets"), 1U);
}

TEST_P(LoopBack, IsReceivedByInterruptLikeEverythingOfTheCard) {
  const auto arrival = [](Time interrupt) {
    Simulation simulation;
    test::Recorder recorder(simulation);
    MachineDescription description = GetParam().machine();
    description.interrupts.interrupt = interrupt;
    Machine machine(simulation, description, {0, 0});
    machine.set_sink(recorder);
    recorder.empties_mailboxes_of(machine);
    machine.post(Time::zero(), {.source = 0, .target = 1, .bytes = 100});
    simulation.run();
    return recorder.of(CompletionKind::arrived).at(0).time;
  };
  EXPECT_EQ(arrival(Time::from_ns(7000)), arrival(Time::zero()) + Time::from_ns(7000));
}

INSTANTIATE_TEST_SUITE_P(Cards, LoopBack, testing::ValuesIn(test::loop_back_cards()),
                         [](const auto& card) { return card.param.name; });

// A machine, and a size at which its stream is steady.
using Stream = std::pair<const char*, std::int64_t>;
constexpr std::array loop_back_machines = {Stream{"ape16", 65536}, Stream{"apenetplus-v4", 262144},
                                           Stream{"apenetplus-v5", 262144}, Stream{"extoll-64", 65536}};
constexpr std::span<const Stream> loop_back_streams(loop_back_machines);
class LoopBackStreams : public testing::TestWithParam<Stream> {};

TEST_P(LoopBackStreams, HaveTheSameRateInBothEngines) {
  CardTestOptions options;
  options.sizes = {4096, GetParam().second};
  options.nodes = {0, 0};
  for (const CardTest test : {CardTest::unidirectional, CardTest::bidirectional}) {
    MachineDescription description = loop_back(GetParam().first);
    const std::vector<TestPoint> packet = run_card_test(description, test, options);
    description.network.engine = NetworkDescription::Engine::flit;
    const std::vector<TestPoint> flit = run_card_test(description, test, options);
    for (std::size_t i = 0; i < packet.size(); ++i)
      EXPECT_NEAR(flit[i].bandwidth_mib_s / packet[i].bandwidth_mib_s, 1, 0.03) << packet[i].size_bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, LoopBackStreams,
                         testing::ValuesIn(test::runs_all_cases() ? loop_back_streams
                                                                  : loop_back_streams.first(1)),
                         [](const auto& stream) {
                           std::string word = stream.param.first;
                           std::replace(word.begin(), word.end(), '-', '_');
                           return word;
                         });

// Timings are memoised for messages between nodes only.
TEST(LoopBackCounters, CountEveryMessageOnce) {
  constexpr std::uint64_t messages = 6;
  Simulation simulation;
  test::Recorder recorder(simulation);
  Machine machine(simulation, loop_back("ape16"), {0, 0});
  machine.set_sink(recorder);
  for (std::uint64_t message = 0; message < messages; ++message) {
    machine.post(simulation.now() + Time::from_ns(1'000'000),
                 {.verb = Verb::put, .source = 0, .target = 1, .bytes = 4096, .message = message});
    simulation.run();
  }
  machine.settle();
  EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), messages);
  EXPECT_EQ(counter(machine, "packets"), messages * 4096 / 256);
}

TEST(LoopBackRefusals, NameKeyValueAndReason) {
  const auto refusal = [](std::string_view name) -> std::string {
    Simulation simulation;
    try {
      const Machine machine(simulation, loop_back(name), {0, 0});
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return {};
  };
  const std::string expected = "card.same_node = \"card\": expected \"memory\" with card.kind = ";
  EXPECT_EQ(refusal("qpace"), expected + "\"tnw\": its links lead to neighbours only");
  EXPECT_EQ(refusal("ideal"), expected + "\"ideal\": it has no router that could return a message");
  EXPECT_EQ(refusal("pax"), expected +
                                "\"hca\": an adapter returns such a message before its link, which is "
                                "not modelled");
}

}  // namespace
}  // namespace apenet
