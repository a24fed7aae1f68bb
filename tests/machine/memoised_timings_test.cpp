// Messages that have the machine to themselves, moved as a whole, in lockstep with packet by packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "machine/machine.hpp"
#include "support/cases.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

// A machine and its sink. Answers some arrivals at once, as a process does that waits for them.
class Side final : public CompletionSink {
 public:
  Side(const MachineDescription& description, const std::vector<NodeId>& nodes)
      : machine(simulation, description, nodes), recorder(simulation) {
    machine.set_sink(*this);
    recorder.empties_mailboxes_of(machine);
  }

  void complete(const Completion& completion) override {
    recorder.complete(completion);
    if (completion.kind != CompletionKind::arrived || answers == 0) return;
    --answers;
    Descriptor answer = answer_with;
    answer.source = completion.process;
    answer.target = completion.source;
    answer.message = (completion.message << 8U) + answers;
    post(simulation.now() + answer_after, answer);
  }
  void deliver_payload(ProcessId source, std::uint64_t message) override {
    recorder.deliver_payload(source, message);
  }
  void execute(ProcessId source, std::uint64_t message) override { recorder.execute(source, message); }

  void post(Time when, Descriptor descriptor) {
    descriptor.channel = machine.channel_between(descriptor.source, descriptor.target);
    machine.post(when, descriptor);
  }
  void run_before(Time time) {
    while (simulation.next_time() < time) simulation.step();
    simulation.ran_before(time);
  }

  Simulation simulation;
  Machine machine;
  test::Recorder recorder;
  std::uint32_t answers = 0;
  Time answer_after;
  Descriptor answer_with;
};

// The readers run no events.
void expect_equal_use(const Side& left, const Side& right) {
  const std::vector<LinkUse> expected = right.machine.link_use();
  const std::vector<LinkUse> use = left.machine.link_use();
  ASSERT_EQ(use.size(), expected.size());
  for (std::size_t i = 0; i < use.size(); ++i) {
    EXPECT_EQ(use[i].packets, expected[i].packets) << use[i].name;
    EXPECT_EQ(use[i].wire_bytes, expected[i].wire_bytes) << use[i].name;
    EXPECT_EQ(use[i].busy, expected[i].busy) << use[i].name;
  }
}

void expect_equal_totals(const Side& left, const Side& right) {
  const std::vector<Counter> expected = right.machine.counters();
  const std::vector<Counter> counters = left.machine.counters();
  ASSERT_EQ(counters.size(), expected.size());
  for (std::size_t i = 0; i < counters.size(); ++i)
    EXPECT_EQ(counters[i].value, expected[i].value) << counters[i].name;
  EXPECT_EQ(left.machine.warnings(), right.machine.warnings());
}

// Few processes, sizes and kinds of messages, so that timings come again; gaps so long that the machine
// rests, and so short that messages meet.
class Traffic {
 public:
  Traffic(const MachineDescription& description, std::uint64_t seed) : random_(seed, 0) {
    const std::uint32_t processes = 2 + static_cast<std::uint32_t>(random_.below(3));
    std::uint64_t there = 1;
    for (const std::uint32_t extent : description.network.topology.dims()) there *= extent;
    there = std::min(there, std::uint64_t{16});
    for (std::uint32_t p = 0; p < processes; ++p)
      nodes.push_back(static_cast<NodeId>(random_.below(4) == 0 ? random_.below(there) : p));
    for (std::uint32_t i = 0; i < 3; ++i)
      sizes_.push_back(1 + static_cast<std::int64_t>(random_.below(random_.below(2) == 0 ? 6000 : 70000)));
    meets_ = random_.below(3);
  }

  [[nodiscard]] Descriptor message(const NicCapabilities& card) {
    Descriptor descriptor;
    descriptor.source = static_cast<ProcessId>(random_.below(nodes.size()));
    if (random_.below(3) > 0) descriptor.source = 0;
    descriptor.target =
        static_cast<ProcessId>((descriptor.source + 1 + random_.below(nodes.size() - 1)) % nodes.size());
    descriptor.bytes = sizes_[random_.below(sizes_.size())];
    const std::uint64_t verb = random_.below(8);
    if (verb > 0 || descriptor.bytes > card.max_send_bytes) descriptor.verb = Verb::put;
    if (verb == 7 && card.get) descriptor.verb = Verb::get;
    descriptor.want_local = descriptor.verb != Verb::get && random_.below(2) == 0;
    descriptor.want_remote = descriptor.verb == Verb::put && random_.below(4) == 0;
    if (descriptor.verb == Verb::put) descriptor.notify_target = random_.below(8) > 0;
    descriptor.message = ++messages_;
    return descriptor;
  }
  [[nodiscard]] Time gap() {
    if (random_.below(4) < meets_)
      return Time::from_ps(static_cast<std::int64_t>(random_.below(200'000'000)));
    return Time::from_ps(500'000'000 + static_cast<std::int64_t>(random_.below(1'000'000)));
  }
  [[nodiscard]] bool one_in(std::uint64_t count) { return random_.below(count) == 0; }
  [[nodiscard]] Time answer_time() {
    return Time::from_ps(static_cast<std::int64_t>(random_.below(3'000'000)));
  }

  std::vector<NodeId> nodes;

 private:
  RandomStream random_;
  std::vector<std::int64_t> sizes_;
  std::uint64_t meets_ = 0;
  std::uint64_t messages_ = 0;
};

// Returns how many events the replays have saved.
std::int64_t compare(const MachineDescription& description, std::uint64_t seed) {
  SCOPED_TRACE(description.name + ", seed " + std::to_string(seed));
  Traffic traffic(description, seed);
  Side known(description, traffic.nodes);
  Side every(description, traffic.nodes);
  every.machine.move_every_packet();
  Time now = Time::from_ps(2'000'000);
  for (int i = 0; i < 30; ++i) {
    const Descriptor descriptor = traffic.message(known.machine.capabilities());
    const bool reads_use = traffic.one_in(8);
    const std::uint32_t answers = traffic.one_in(3) ? 3 : 0;
    const Time answer_after = traffic.answer_time();
    for (Side* side : {&known, &every}) {
      side->run_before(now);
      side->answers = answers;
      side->answer_after = answer_after;
      side->answer_with = descriptor;
      side->post(now, descriptor);
    }
    if (reads_use) {
      for (Side* side : {&known, &every}) side->machine.settle();
      const std::uint64_t events = known.simulation.event_count();
      expect_equal_use(known, every);
      expect_equal_totals(known, every);
      EXPECT_EQ(known.simulation.event_count(), events);
    }
    now += traffic.gap();
  }
  for (Side* side : {&known, &every}) side->machine.run_to_end();
  EXPECT_EQ(known.recorder.records.size(), every.recorder.records.size());
  EXPECT_TRUE(known.recorder.records == every.recorder.records);
  EXPECT_EQ(known.recorder.landed, every.recorder.landed);
  expect_equal_use(known, every);
  expect_equal_totals(known, every);
  return static_cast<std::int64_t>(every.simulation.event_count()) -
         static_cast<std::int64_t>(known.simulation.event_count());
}

TEST(MemoisedTimings, GiveWhatPacketByPacketGives) {
  std::int64_t saved = 0;
  for (const char* name : {"ape16", "ape128", "apenet-2004", "apenetplus-v4", "extoll-64", "ideal"}) {
    const MachineDescription description = test::machine(name);
    const bool takes_part = description.name.starts_with("ape1") || description.name == "apenet-2004";
    for (std::uint64_t seed = 0; seed < test::drawn_cases(takes_part ? 120 : 20); ++seed) {
      saved += compare(description, seed);
      ASSERT_FALSE(::testing::Test::HasFailure());
    }
  }
  EXPECT_GT(saved, 0);
}

// Processes share nodes in some of these runs. Messages within a node are no hits, and end those of others.
TEST(MemoisedTimings, GiveTheSameBesideMessagesThatTheCardLoopsBack) {
  const MachineDescription description = test::machine("ape16", {{"card.same_node", std::string("card")}});
  for (std::uint64_t seed = 0; seed < test::drawn_cases(120); ++seed) {
    compare(description, seed);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

// Nothing is known in advance of faults, corrupted packets and random routes.
TEST(MemoisedTimings, AreNotUsedWherePacketsDependOnMore) {
  MachineDescription faulty = test::machine("ape16");
  faulty.network.faults = {"link (0,0,0)+x down @100us up @3ms"};
  const MachineDescription noisy = test::machine("ape16", {{"network.link.bit_error_rate", 1e-6}});
  for (const MachineDescription& description : {faulty, noisy}) {
    for (std::uint64_t seed = 0; seed < test::drawn_cases(40); ++seed)
      EXPECT_EQ(compare(description, seed), 0);
  }
}

}  // namespace
}  // namespace apenet
