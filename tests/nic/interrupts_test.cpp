// Reception by interrupt, the same for every card (docs/models/host.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "machine/machine.hpp"
#include "nic/contract_cards.hpp"
#include "support/machines.hpp"
#include "support/recorder.hpp"

namespace apenet {
namespace {

using test::Recorder;
constexpr Time us(std::int64_t count) {
  return Time::from_ns(1000 * count);
}

struct Traffic {
  Traffic(MachineDescription description, const InterruptDescription& interrupts) {
    description.interrupts = interrupts;
    std::vector<NodeId> nodes;
    for (NodeId node = 0; node < 16; ++node) nodes.push_back(node);
    nodes.push_back(0);  // process 16, beside process 0
    machine = std::make_unique<Machine>(simulation, description, std::move(nodes));
    machine->set_sink(recorder);
    recorder.empties_mailboxes_of(*machine);
  }
  void post(Time when, const Descriptor& descriptor) {
    machine->post(when, descriptor);
    if (!machine->capabilities().needs_credit) return;
    machine->post(when, {.verb = Verb::credit,
                         .source = descriptor.target,
                         .target = descriptor.source,
                         .channel = descriptor.channel,
                         .bytes = descriptor.bytes});
  }
  [[nodiscard]] std::uint64_t counter(const std::string& name) const {
    for (const Counter& one : machine->counters()) {
      if (one.name == name) return one.value;
    }
    return 0;
  }

  Simulation simulation;
  Recorder recorder{simulation};
  std::unique_ptr<Machine> machine;
};

// What the page says, for the events of one process in their order: when the process takes each.
std::vector<Time> taken(const std::vector<Time>& events, const InterruptDescription& interrupts) {
  std::vector<Time> times;
  while (times.size() < events.size()) {
    const std::size_t first = times.size();
    Time raised = events[first] + interrupts.coalescing;
    const auto enough = static_cast<std::size_t>(interrupts.coalesced_events);
    if (enough > 0 && first + enough <= events.size()) raised = std::min(raised, events[first + enough - 1]);
    while (times.size() < events.size() && events[times.size()] <= raised + interrupts.interrupt)
      times.push_back(raised + interrupts.interrupt);
  }
  return times;
}

class InterruptsOfEveryCard : public testing::TestWithParam<test::ContractCard> {};

TEST_P(InterruptsOfEveryCard, DelayAnArrivalAndNotItsPayloadOrTheSendersBuffer) {
  Traffic polled(GetParam().machine(), {});
  Traffic told(GetParam().machine(), {.interrupt = us(7)});
  for (Traffic* run : {&polled, &told}) {
    run->post(us(1), {.source = 0, .target = 1, .want_local = true, .want_remote = true, .bytes = 16});
    run->simulation.run();
  }
  for (const CompletionKind kind :
       {CompletionKind::arrived, CompletionKind::remote_done, CompletionKind::sent}) {
    const Time delay = kind == CompletionKind::sent ? Time::zero() : us(7);
    EXPECT_EQ(told.recorder.of(kind).at(0).time, polled.recorder.of(kind).at(0).time + delay);
  }
  EXPECT_EQ(told.recorder.landed, polled.recorder.landed);
  EXPECT_EQ(told.counter("interrupts"), 2U);
  EXPECT_EQ(told.counter("events_by_interrupt"), 2U);
  EXPECT_EQ(polled.counter("interrupts"), 0U);
}

TEST_P(InterruptsOfEveryCard, LeaveMessagesWithinANodeAlone) {
  Traffic polled(GetParam().machine(), {});
  Traffic told(GetParam().machine(), {.interrupt = us(7)});
  for (Traffic* run : {&polled, &told}) {
    run->machine->post(us(1), {.source = 0, .target = 16, .bytes = 16});
    run->simulation.run();
  }
  EXPECT_EQ(told.recorder.records, polled.recorder.records);
}

// The events of a process have the times that they have without interrupts, and are taken as the page says.
TEST_P(InterruptsOfEveryCard, AreRaisedByTheFirstEventByTheTimeOrByTheCount) {
  for (const InterruptDescription& interrupts :
       {InterruptDescription{.interrupt = us(3)},
        InterruptDescription{.interrupt = us(3), .coalescing = us(16)},
        InterruptDescription{.interrupt = us(3), .coalescing = us(16), .coalesced_events = 4},
        InterruptDescription{.interrupt = us(1), .coalescing = us(50), .coalesced_events = 1}}) {
    Traffic polled(GetParam().machine(), {});
    Traffic told(GetParam().machine(), interrupts);
    RandomStream random(7, 0);
    Time when;
    for (std::uint64_t message = 0; message < 200; ++message) {
      when += Time::from_ps(static_cast<std::int64_t>(random.below(8'000'000)));
      // A mailbox of three packets fills up while its process waits for the interrupt: the messages go to 15
      // processes, and a card with a mailbox gets few.
      const bool has_mailbox = polled.machine->capabilities().mailbox_packets > 0;
      if (has_mailbox && message >= 3 * 15) break;
      const auto target = static_cast<ProcessId>(1 + (has_mailbox ? message % 15 : random.below(3)));
      const Descriptor descriptor = {.source = 0,
                                     .target = target,
                                     .want_remote = random.below(2) == 0,
                                     .bytes = 16 * static_cast<std::int64_t>(random.below(4)),
                                     .message = message};
      for (Traffic* run : {&polled, &told}) run->post(when, descriptor);
    }
    polled.simulation.run();
    told.simulation.run();
    if (interrupts.coalescing > Time::zero() && interrupts.coalesced_events != 1) {
      EXPECT_LT(told.counter("interrupts"), told.counter("events_by_interrupt"));
    }
    std::map<ProcessId, std::vector<Completion>> events;
    std::map<ProcessId, std::vector<Completion>> found;
    for (const test::Record& record : polled.recorder.records)
      events[record.completion.process].push_back(record.completion);
    for (const test::Record& record : told.recorder.records)
      found[record.completion.process].push_back(record.completion);
    ASSERT_EQ(found.size(), events.size());
    for (const auto& [process, own] : events) {
      std::vector<Time> times;
      for (const Completion& completion : own) times.push_back(completion.time);
      const std::vector<Time> expected = taken(times, interrupts);
      ASSERT_EQ(found[process].size(), own.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(found[process][i].message, own[i].message) << "process " << process << ", event " << i;
        EXPECT_EQ(found[process][i].time, expected[i]) << "process " << process << ", event " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cards, InterruptsOfEveryCard, testing::ValuesIn(test::contract_cards()),
                         [](const auto& card) { return card.param.name; });

// Hand-computed: events at 0, 2, 4, 21 and 40 us; 16 us or three events, then 3 us.
TEST(Interrupts, TheOracleOfTheTestsAboveIsTheTextsExample) {
  const InterruptDescription interrupts = {.interrupt = us(3), .coalescing = us(16), .coalesced_events = 3};
  const std::vector<Time> expected = {us(7), us(7), us(7), us(40), us(40)};
  EXPECT_EQ(taken({us(0), us(2), us(4), us(21), us(40)}, interrupts), expected);
}

TEST(Interrupts, RefuseCoalescingWithoutAnInterruptAndACountWithoutATime) {
  const auto refusal = [](const InterruptDescription& interrupts) -> std::string {
    try {
      validate(interrupts);
    } catch (const std::invalid_argument& refused) {
      return refused.what();
    }
    return {};
  };
  EXPECT_EQ(refusal({.coalescing = us(5)}),
            "card.coalesce_us = 5000000 ps: expected 0 or absent: there is no interrupt without "
            "card.interrupt_us above 0");
  EXPECT_EQ(refusal({.interrupt = us(5), .coalesced_events = 2}),
            "card.coalesce_events = 2: expected 0 or absent: no interrupt waits for events without "
            "card.coalesce_us above 0");
  EXPECT_EQ(refusal({.interrupt = us(5), .coalescing = us(1), .coalesced_events = 2}), "");
}

}  // namespace
}  // namespace apenet
