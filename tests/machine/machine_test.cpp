#include "machine/machine.hpp"
#include "machine/node_name.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/topology/cube.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

using test::Recorder;
std::string refusal(const MachineDescription& description, const std::vector<NodeId>& nodes) {
  try {
    Simulation simulation;
    const Machine machine(simulation, description, nodes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

struct Mistake {
  const char* expected;  // the beginning of the message: key and value
  std::function<void(MachineDescription&)> make;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.expected;
}

class MachineRefuses : public testing::TestWithParam<Mistake> {};

TEST_P(MachineRefuses, NamingKeyValueAndExpectation) {
  MachineDescription description = test::machine("ape16");
  GetParam().make(description);
  const std::string message = refusal(description, {0, 1});
  EXPECT_EQ(message.rfind(GetParam().expected, 0), 0U) << message;
  EXPECT_NE(message.find(": expected "), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, MachineRefuses,
    testing::Values(
        Mistake{"network.dims = []", [](auto& m) { m.network.topology = TorusDescription(); }},
        Mistake{"network.dims = [4, 0, 2]",
                [](auto& m) {
                  m.network.topology = TorusDescription({4, 0, 2});
                }},
        Mistake{"network.topology = none", [](auto& m) { m.network.topology = {}; }},
        Mistake{"bus.clock_mhz = 0 Hz", [](auto& m) { m.host.bus.clock = {0}; }},
        Mistake{"bus.width_bytes = 0", [](auto& m) { m.host.bus.width_bytes = 0; }},
        Mistake{"bus.transaction_overhead_cycles = -1",
                [](auto& m) { m.host.bus.transaction_overhead_cycles = -1; }},
        Mistake{"bus.max_burst_bytes = 4", [](auto& m) { m.host.bus.max_burst_bytes = 4; }},
        Mistake{"bus.outstanding_reads = 0", [](auto& m) { m.host.bus.outstanding_reads = 0; }},
        Mistake{"bus.read_latency_ns = -1000 ps",
                [](auto& m) { m.host.bus.read_latency = Time::from_ns(-1); }},
        Mistake{"bus.pio_write_latency_ns = 0 ps",
                [](auto& m) { m.host.bus.pio_write_latency = Time::zero(); }},
        Mistake{"host.copy_bandwidth_mib_s = 0", [](auto& m) { m.host.copy_bytes_per_second = 0; }},
        Mistake{"host.local_latency_ns = 0 ps", [](auto& m) { m.host.local_latency = Time::zero(); }},
        Mistake{"card.clock_mhz = 0 Hz", [](auto& m) { std::get<apelink::Description>(m.nic).clock = {0}; }},
        Mistake{"card.max_payload_bytes = 8",
                [](auto& m) { std::get<apelink::Description>(m.nic).max_payload_bytes = 8; }},
        Mistake{"card.max_payload_bytes = 250",
                [](auto& m) { std::get<apelink::Description>(m.nic).max_payload_bytes = 250; }},
        Mistake{"card.max_message_bytes = 0",
                [](auto& m) { std::get<apelink::Description>(m.nic).max_message_bytes = 0; }},
        Mistake{"card.descriptor_fifo_entries = 0",
                [](auto& m) { std::get<apelink::Description>(m.nic).descriptor_fifo_entries = 0; }},
        Mistake{"card.queues = 0", [](auto& m) { std::get<apelink::Description>(m.nic).queues = 0; }},
        Mistake{"card.ports = 0", [](auto& m) { std::get<apelink::Description>(m.nic).ports = 0; }},
        Mistake{"card.get_service_us = -1000 ps",
                [](auto& m) { std::get<apelink::Description>(m.nic).get_service = Time::from_ns(-1); }},
        Mistake{"router.injection_buffer_bytes = 100",
                [](auto& m) { m.network.injection_buffer_bytes = 100; }},
        Mistake{"card.paths = none", [](auto& m) { m.nic = fabric::Description{}; }},
        Mistake{"card.latency_ns = 0 ps",
                [](auto& m) {
                  m.nic = ideal::Description{Time::zero(), DataRate::bytes_per_second(1)};
                }},
        Mistake{"card.bandwidth_mib_s = 0", [](auto& m) {
                  m.nic = ideal::Description{Time::from_ns(1), {}};
                }}));

TEST(MachineTest, MoreProcessesThanNodesTimesPortsAreRefused) {
  const MachineDescription description = test::machine("ape16");
  EXPECT_EQ(refusal(description, {0, 0, 0, 0}), "");
  EXPECT_NE(refusal(description, {0, 0, 0, 0, 0}).find("processes on node 0 = 5"), std::string::npos);
  EXPECT_NE(refusal(description, {0, 0, 0, 0, 0}).find("card.ports = 4"), std::string::npos);
  EXPECT_NE(refusal(description, {0, 16}).find("node of process 1 = 16"), std::string::npos);
  EXPECT_NE(refusal(description, {}).find("processes = 0"), std::string::npos);
}

class LocalMessages : public testing::Test {
 protected:
  Simulation simulation;
  Recorder recorder{simulation};
};

// 1000 MiB/s of copy bandwidth, and 500 ns in addition
constexpr std::int64_t one_us_of_bytes = 1048;  // 1048.576 bytes per microsecond

TEST_F(LocalMessages, CostOneCopyAndDoNotUseTheCard) {
  Machine machine(simulation, test::machine("ape16"), {0, 0, 1});
  machine.set_sink(recorder);
  for (const Verb verb : {Verb::send, Verb::put, Verb::get}) {
    recorder.records.clear();
    recorder.landed.clear();
    const Time when = simulation.now() + Time::from_ns(10'000);
    machine.post(when, {.verb = verb,
                        .source = 0,
                        .target = 1,
                        .want_local = true,
                        .want_remote = true,
                        .bytes = one_us_of_bytes});
    simulation.run();
    ASSERT_EQ(recorder.records.size(), verb == Verb::get ? 1U : 3U);
    for (const test::Record& record : recorder.records) {
      EXPECT_NEAR(static_cast<double>((record.completion.time - when).ps()), 1.5e6, 1e3);
    }
  }
  const std::vector<Counter> counters = machine.counters();
  const auto value = [&](const std::string& name) {
    return std::find_if(counters.begin(), counters.end(), [&](const Counter& c) { return c.name == name; })
        ->value;
  };
  EXPECT_EQ(value("packets"), 0U);
  EXPECT_EQ(value("local_messages"), 3U);
}

TEST_F(LocalMessages, QueueOnlyForTheMemoryOfTheirOwnNode) {
  Machine machine(simulation, test::machine("ape16"), {0, 0, 1, 1});
  machine.set_sink(recorder);
  machine.post(Time::zero(), {.source = 0, .target = 1, .bytes = 1 << 20, .message = 0});
  machine.post(Time::zero(), {.source = 1, .target = 0, .bytes = 1 << 20, .message = 1});
  machine.post(Time::zero(), {.source = 2, .target = 3, .bytes = 1 << 20, .message = 2});
  simulation.run();
  const Time copy = Time::from_ns(1'000'000);
  const Time local = Time::from_ns(500);
  EXPECT_EQ(recorder.landed.at({0, 0}), copy + local);
  EXPECT_EQ(recorder.landed.at({1, 1}), copy + copy + local);
  EXPECT_EQ(recorder.landed.at({2, 2}), copy + local);
  const PortUse copies = machine.port_use().back();
  EXPECT_EQ(copies.name, "memory copies");
  EXPECT_EQ(copies.busy[0], copy + copy);
  EXPECT_EQ(copies.busy[1], copy);
  EXPECT_EQ(copies.waited, copy) << "message 1 behind message 0";
  EXPECT_EQ(copies.packets, 3U);
}

TEST_F(LocalMessages, FromAProcessToItselfArrive) {
  Machine machine(simulation, test::round_ideal(), {0, 1});
  machine.set_sink(recorder);
  machine.post(Time::zero(), {.source = 1, .target = 1, .bytes = 8});
  simulation.run();
  ASSERT_EQ(recorder.of(CompletionKind::arrived).size(), 1U);
  EXPECT_EQ(recorder.of(CompletionKind::arrived)[0].process, 1U);
}

TEST(MachineTest, LookaheadIsTheEarliestEffectOfAPost) {
  Simulation simulation;
  EXPECT_EQ(Machine(simulation, test::machine("ape16"), {0}).lookahead(), Time::from_ns(200));
  MachineDescription quick_memory = test::machine("ape16");
  quick_memory.host.local_latency = Time::from_ns(50);
  EXPECT_EQ(Machine(simulation, quick_memory, {0}).lookahead(), Time::from_ns(50));
  EXPECT_EQ(Machine(simulation, test::round_ideal(), {0}).lookahead(), Time::from_ns(300));
}

// The processes of programs that come one after the other are those of a machine that has them from the
// start.
TEST(MachineTest, ProcessesMayBeAddedLater) {
  const std::vector<std::vector<NodeId>> programs = {{0, 1}, {1, 5, 0}};
  const auto times = [&](Machine& machine, Simulation& simulation, const auto& add) {
    Recorder recorder{simulation};
    machine.set_sink(recorder);
    ProcessId first = 0;
    for (const std::vector<NodeId>& program : programs) {
      add(program);
      machine.post(
          simulation.now() + Time::from_ns(1000),
          {.verb = Verb::send, .source = first, .target = first + 1, .want_local = true, .bytes = 3000});
      simulation.run();
      first += static_cast<ProcessId>(program.size());
    }
    std::vector<Time> all;
    for (const test::Record& record : recorder.records) all.push_back(record.completion.time);
    return all;
  };
  for (const char* name : {"ape16", "apenetplus-v5", "extoll-64", "pax"}) {
    Simulation one;
    Machine whole(one, test::machine(name), {0, 1, 1, 5, 0});
    Simulation other;
    Machine open(other, test::machine(name), ProcessesPerNode{1});
    const auto add = [&](const std::vector<NodeId>& nodes) { open.add_processes(nodes); };
    EXPECT_EQ(times(whole, one, [](const auto&) {}), times(open, other, add)) << name;
    EXPECT_THROW(open.add_processes({3, 3}), std::invalid_argument);
    EXPECT_THROW(open.add_processes({1'000'000}), std::invalid_argument);
    EXPECT_EQ(open.process_count(), 5U);
  }
}

TEST(MachineTest, NodesAndLinksHaveNames) {
  Simulation simulation;
  const Machine machine(simulation, test::machine("ape16"), {0, 5});
  EXPECT_EQ(machine.node_count(), 16U);
  EXPECT_EQ(machine.process_count(), 2U);
  EXPECT_EQ(machine.node_of(1), 5U);
  EXPECT_EQ(node_name(machine.description(), 5), "ape16-1-1-0");
  const std::vector<LinkUse> links = machine.link_use();
  ASSERT_EQ(links.size(), 16U * 6U);
  EXPECT_EQ(links[0].name, "(0,0,0)+x");
}

TEST(MachineTest, NamesOfNodesAreNamesOfHosts) {
  MachineDescription description = test::machine("ape16");
  description.name = "my torus_2";
  EXPECT_EQ(node_name(description, 15), "my-torus-2-3-1-1");
  description.name = "long-" + std::string(60, 'x');
  EXPECT_EQ(node_name(description, 15), std::string(57, 'x') + "-3-1-1");
  EXPECT_EQ(node_name(test::machine("my-cluster"), 9), "my-cluster-9");
}

TEST(MachineTest, TheIdealCardCostsLatencyAndBytesOverRate) {
  for (const std::int64_t doorbell_ns : {0, 100, 5000}) {
    Simulation simulation;
    Recorder recorder(simulation);
    MachineDescription description = test::round_ideal();
    description.host.bus.pio_write_latency = Time::from_ns(doorbell_ns);
    Machine machine(simulation, description, {0, 1});
    machine.set_sink(recorder);
    machine.post(Time::zero(), {.source = 0, .target = 1, .bytes = 500});
    simulation.run();
    machine.post(Time::from_ns(10'000),
                 {.verb = Verb::get, .source = 0, .target = 1, .bytes = 500, .message = 1});
    simulation.run();
    EXPECT_EQ(recorder.of(CompletionKind::arrived).at(0).time, Time::from_ns(1500));
    EXPECT_EQ(recorder.of(CompletionKind::got).at(0).time, Time::from_ns(12'500));
  }
}

}  // namespace
}  // namespace apenet
