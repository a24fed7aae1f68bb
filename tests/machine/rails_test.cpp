// Machines whose nodes have several cards, each with a network of its own.
#include "machine/rails.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kernel/random.hpp"
#include "machine/machine.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

using test::Recorder;
constexpr std::int64_t large_bytes = std::int64_t{1} << 20;

std::string refusal(const MachineDescription& description) {
  try {
    Simulation simulation;
    const Machine machine(simulation, description, {0, 1});
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// When each of two messages from node 0 to node 1 is in memory, which begin together on these rails.
std::vector<Time> arrivals(const MachineDescription& description, const std::vector<std::uint8_t>& rails) {
  Simulation simulation;
  Machine machine(simulation, description, {0, 1});
  Recorder recorder(simulation);
  machine.set_sink(recorder);
  machine.begin(Time::zero());
  std::uint64_t message = 0;
  for (const std::uint8_t rail : rails) {
    machine.post(Time::zero(), {.verb = Verb::put,
                                .source = 0,
                                .target = 1,
                                .rail = rail,
                                .bytes = large_bytes,
                                .message = message++});
  }
  machine.run_to_end();
  std::map<std::uint64_t, Time> found;
  for (const Completion& arrived : recorder.of(CompletionKind::arrived))
    found[arrived.message] = arrived.time;
  std::vector<Time> times;
  for (const auto& [number, time] : found) times.push_back(time);
  return times;
}

TEST(Rails, CarryWhatTheirCardCarriesAlone) {
  const MachineDescription quong = test::machine("quong");
  ASSERT_EQ(rail_count(quong), 2);
  for (const std::uint8_t rail : {std::uint8_t{0}, std::uint8_t{1}}) {
    EXPECT_EQ(arrivals(quong, {rail}), arrivals(rail_alone(quong, rail), {0}));
  }
  EXPECT_NE(arrivals(quong, {0}), arrivals(quong, {1}));
}

TEST(Rails, InSlotsOfTheirOwnDoNotSlowEachOther) {
  const MachineDescription quong = test::machine("quong");
  const std::vector<Time> both = arrivals(quong, {0, 1});
  EXPECT_EQ(both.at(0), arrivals(quong, {0}).at(0));
  EXPECT_EQ(both.at(1), arrivals(quong, {1}).at(0));
}

TEST(Rails, AtOneBusShareItsRate) {
  const MachineDescription shared = test::machine("pax-dual");
  MachineDescription own = shared;
  own.rails[0].shares_slot = false;
  own.rails[0].bus = own.host.bus;
  const Time alone = arrivals(shared, {1}).at(0);
  EXPECT_EQ(alone, arrivals(shared, {0}).at(0)) << "equal ports";
  EXPECT_EQ(arrivals(own, {0, 1}), (std::vector<Time>{alone, alone}));
  // The bus ends at 3.0 GiB/s, and one port reaches nearly all of that.
  for (const Time time : arrivals(shared, {0, 1})) {
    EXPECT_GT(time.ps(), 1.9 * static_cast<double>(alone.ps()));
    EXPECT_LT(time.ps(), 2.1 * static_cast<double>(alone.ps()));
  }
}

TEST(Rails, HaveFaultsOfTheirOwn) {
  MachineDescription machine = test::machine("quong");
  const std::vector<Time> whole = arrivals(machine, {0, 1});
  set_faults(machine, {"link (0,0,0)+x down @1us"});
  const std::vector<Time> faulty = arrivals(machine, {0, 1});
  EXPECT_GT(faulty.at(0), whole.at(0)) << "the other way around the ring";
  EXPECT_EQ(faulty.at(1), whole.at(1));
  try {
    set_faults(machine, {"eth: link (0,0,0)+x down @1us"});
    FAIL() << "no rail of this name";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "fault = \"eth: link (0,0,0)+x down @1us\": expected a rail in front of the colon: ib");
  }
}

TEST(Rails, OfAFurtherRailTakeFaultsByItsName) {
  MachineDescription machine = test::machine("quong");
  machine.rails.push_back(machine.rails[0]);
  machine.rails[1].name = "torus";
  machine.rails[1].network = machine.network;
  machine.rails[1].nic = machine.nic;
  machine.rails[1].bus = machine.host.bus;
  const std::vector<Time> whole = arrivals(machine, {0, 2});
  set_faults(machine, {"torus: link (0,0,0)+x down @1us"});
  const std::vector<Time> faulty = arrivals(machine, {0, 2});
  EXPECT_EQ(faulty.at(0), whole.at(0));
  EXPECT_GT(faulty.at(1), whole.at(1));
}

TEST(Rails, GiveTheSameRunTwice) {
  const auto hash = [] {
    Simulation simulation;
    TraceHash trace;
    simulation.attach_trace(&trace);
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < 16; ++node) nodes.push_back(node);
    Machine machine(simulation, test::machine("quong"), nodes);
    Recorder recorder(simulation);
    machine.set_sink(recorder);
    RandomStream random(3, 0);
    constexpr std::uint64_t messages = 400;
    for (std::uint64_t message = 0; message < messages; ++message) {
      machine.post(Time::from_ns(static_cast<std::int64_t>(100 * message)),
                   {.verb = Verb::put,
                    .source = static_cast<ProcessId>(random.below(16)),
                    .target = static_cast<ProcessId>(random.below(16)),
                    .rail = static_cast<std::uint8_t>(random.below(2)),
                    .bytes = static_cast<std::int64_t>(random.below(20'000)),
                    .message = message});
    }
    simulation.run();
    EXPECT_EQ(recorder.of(CompletionKind::arrived).size(), messages);
    return trace.value();
  };
  EXPECT_EQ(hash(), hash());
}

TEST(Rails, RefuseWhatDoesNotFit) {
  MachineDescription fewer = test::machine("quong", {{"rail.ib.network.nodes", std::int64_t{8}}});
  EXPECT_EQ(refusal(fewer), "rail.ib.network = 8 nodes: expected the 16 nodes of the first rail");

  MachineDescription without_bus = test::round_ideal();
  without_bus.rails = test::machine("pax-dual").rails;
  without_bus.rails[0].network = without_bus.network;
  without_bus.rails[0].nic = without_bus.nic;
  EXPECT_EQ(refusal(without_bus).rfind("rail.port2.slot = \"shared\": expected own", 0), 0U);

  MachineDescription many = test::machine("quong");
  for (int more = 0; more < 3; ++more) many.rails.push_back(many.rails[0]);
  EXPECT_EQ(refusal(many), "rail = 5 rails: expected at most 4, the first included");

  try {
    std::ignore = test::machine("quong", {{"rail.ib.card.mtu_bytes", std::int64_t{0}}});
    FAIL() << "no bytes";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).rfind("rail.ib.card.mtu_bytes = 0: expected", 0), 0U) << error.what();
  }

  Simulation simulation;
  Machine machine(simulation, test::machine("quong"), {0, 1});
  Recorder recorder(simulation);
  machine.set_sink(recorder);
  EXPECT_THROW(machine.post(Time::zero(), {.source = 0, .target = 1, .rail = 2}), std::invalid_argument);
}

}  // namespace
}  // namespace apenet
