// Simulation: one clock that only goes forward, one order of events.
#include "kernel/simulation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/rate.hpp"

namespace apenet {
namespace {

class Recorder final : public EventHandler {
 public:
  void handle_event(const Event& event) override { events.push_back(event); }
  std::vector<Event> events;
};

TEST(Simulation, OrdersOneInstantByKindThenSourceThenCounter) {
  Simulation simulation;
  Recorder recorder;
  EventSource control{EventKind::control, 0};
  EventSource second{EventKind::nic, 2};
  EventSource first{EventKind::nic, 1};
  EventSource credit{EventKind::credit, 7};
  const Time when = Time::from_ns(5);
  simulation.schedule(control, when, recorder, 6);
  simulation.schedule(second, when, recorder, 4);
  simulation.schedule(second, when, recorder, 5);
  simulation.schedule(first, when, recorder, 2);
  simulation.schedule(credit, when, recorder, 1);
  simulation.schedule(first, when, recorder, 3);
  simulation.schedule(control, Time::from_ns(1), recorder, 0);
  simulation.run();
  ASSERT_EQ(recorder.events.size(), 7U);
  for (std::uint64_t i = 0; i < 7; ++i) EXPECT_EQ(recorder.events[i].argument_a, i);
  EXPECT_EQ(recorder.events[5].source(), 2U);
  EXPECT_EQ(recorder.events[5].counter(), 1U);
  EXPECT_EQ(recorder.events[5].kind(), EventKind::nic);
  EXPECT_EQ(recorder.events[5].time(), when);
  EXPECT_EQ(simulation.event_count(), 7U);
}

TEST(Simulation, RunsStepByStep) {
  Simulation simulation(42);
  Recorder recorder;
  EventSource source;
  for (int i = 1; i <= 5; ++i) simulation.schedule(source, Time::from_ns(10) * i, recorder);
  EXPECT_EQ(simulation.seed(), 42U);
  EXPECT_EQ(simulation.next_time(), Time::from_ns(10));
  while (simulation.next_time() < Time::from_ns(30)) simulation.step();
  EXPECT_EQ(recorder.events.size(), 2U);
  EXPECT_EQ(simulation.now(), Time::from_ns(20));
  EXPECT_EQ(simulation.next_time(), Time::from_ns(30));
  EXPECT_TRUE(simulation.step());
  EXPECT_EQ(simulation.now(), Time::from_ns(30));
  simulation.run();
  EXPECT_EQ(simulation.now(), Time::from_ns(50));
  EXPECT_EQ(simulation.next_time(), Time::never());
  EXPECT_FALSE(simulation.step());
}

TEST(Simulation, EventsScheduledBetweenNowAndTheNextComeFirst) {
  Simulation simulation;
  Recorder recorder;
  EventSource source;
  simulation.schedule(source, Time::zero(), recorder);
  simulation.schedule(source, Time::from_ns(1'000'000), recorder, 3);
  simulation.step();
  EXPECT_EQ(simulation.next_time(), Time::from_ns(1'000'000));
  simulation.schedule(source, Time::from_ns(2), recorder, 2);
  simulation.schedule(source, Time::from_ns(1), recorder, 1);
  simulation.run();
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(recorder.events[i].argument_a, i);
}

class Forever final : public EventHandler {
 public:
  Forever(Simulation& simulation, EventSource& source) : simulation_(simulation), source_(source) {}
  void handle_event(const Event& event) override {
    simulation_.schedule(source_, event.time() + Time::from_ns(1), *this);
  }

 private:
  Simulation& simulation_;
  EventSource& source_;
};

TEST(Simulation, WhatALookThrowsEndsARunWithoutEnd) {
  struct Wanted {};
  set_interruption_check([] { throw Wanted{}; });
  const auto run_each_way = std::to_array<void (*)(Simulation&)>({
      [](Simulation& simulation) { simulation.run(); },
      [](Simulation& simulation) {
        while (simulation.step()) {
        }
      },
  });
  for (const auto run : run_each_way) {
    Simulation simulation;
    EventSource source{EventKind::host, 1};
    Forever forever(simulation, source);
    simulation.schedule(source, Time::from_ns(1), forever);
    EXPECT_THROW(run(simulation), Wanted);
  }
  set_interruption_check(nullptr);
}

TEST(SimulationDeathTest, TimeCannotGoBack) {
  Simulation simulation;
  Recorder recorder;
  EventSource source{EventKind::host, 3};
  simulation.schedule(source, Time::from_ns(2), recorder);
  simulation.run();
  EXPECT_DEATH(simulation.schedule(source, Time::from_ns(1), recorder),
               "schedule at 1000 ps, now 2000 ps.*id 3");
  source.id = 1U << 25U;
  EXPECT_DEATH(simulation.schedule(source, Time::from_ns(3), recorder), "check failed");
}

TEST(SimulationTest, NothingHappensAfterTheEndOfTime) {
  Simulation simulation;
  Recorder recorder;
  EventSource source{EventKind::host, 3};
  const Time last = end_of_time - Time::from_ps(1);
  simulation.schedule(source, last, recorder);
  EXPECT_THROW(simulation.schedule(source, end_of_time, recorder), PastEndOfTime);
  EXPECT_THROW(simulation.schedule(source, Time::never(), recorder), PastEndOfTime);
  simulation.run();
  EXPECT_EQ(simulation.now(), last);
  EXPECT_LT(last + end_of_time, Time::zero());
  EXPECT_THROW(simulation.schedule(source, last + end_of_time, recorder), PastEndOfTime);
}

TEST(RateTest, DurationsEndWithVirtualTime) {
  const DataRate slow = DataRate::bytes_per_second(1);
  EXPECT_EQ(slow.duration(8'999'999), end_of_time - Time::from_ps(ps_per_second));
  EXPECT_EQ(slow.duration(9'000'000), end_of_time);
  EXPECT_EQ(slow.duration(20'000'000), end_of_time);  // 2 * 10^19 ps are more than 2^64
  EXPECT_EQ(slow.duration(std::int64_t{1} << 60), end_of_time);
  EXPECT_EQ(ClockDomain{1}.cycles(20'000'000), Time::never());
}

TEST(CheckDeathTest, PrintsPlaceConditionAndState) {
  const int credits = -3;
  EXPECT_DEATH(APENET_CHECK(credits >= 0, "credits %d of port %s", credits, "+x"),
               "simulation_test.cpp:[0-9]+: check failed: credits >= 0: credits -3 of port \\+x");
}

// Schedules further events, of few and of many pending ones, at times that a number in the event determines.
struct Chain final : EventHandler {
  explicit Chain(Simulation& simulation_) : simulation(simulation_) {}
  void handle_event(const Event& event) override {
    seen.emplace_back(event.time_ps, event.argument_a);
    if (event.argument_b == 0) return;
    const std::uint64_t next = event.argument_a * 6364136223846793005U + 1442695040888963407U;
    const auto delay = static_cast<std::int64_t>(next >> 40U);
    simulation.schedule(source, simulation.now() + Time::from_ps(delay), *this, next, event.argument_b - 1);
  }
  Simulation& simulation;
  EventSource source{EventKind::nic, 1, 0};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;
};

TEST(Simulation, ContinuesFromACopyOfItsState) {
  for (const std::uint64_t chains : {1U, 30U, 3000U}) {
    Simulation simulation;
    Chain chain(simulation);
    for (std::uint64_t i = 0; i < chains; ++i)
      simulation.schedule(chain.source, Time::from_ps(static_cast<std::int64_t>(i * 7919)), chain, i, 20);
    for (std::uint64_t i = 0; i < 7 * chains; ++i) ASSERT_TRUE(simulation.step());
    const Simulation::State state = simulation.state();
    const EventSource source = chain.source;
    EXPECT_EQ(state.queue.pending.size(), simulation.pending_count());
    chain.seen.clear();
    simulation.run();
    const auto expected = chain.seen;
    const Time end = simulation.now();
    chain.seen.clear();
    simulation.restore(state);
    chain.source = source;
    EXPECT_TRUE(equal_up_to_shift(simulation.state(), {state.now}, state, {state.now}));
    simulation.run();
    EXPECT_EQ(simulation.now(), end);
    EXPECT_EQ(chain.seen, expected) << chains;
    EXPECT_GT(expected.size(), 12 * chains);
  }
}

// A chain of events, one a nanosecond, of which each notes the clock.
class Steps final : public EventHandler {
 public:
  explicit Steps(Simulation& of, std::uint32_t id) : simulation(of), source{EventKind::nic, id, 0} {}
  void begin(Time first, std::uint64_t count) { simulation.schedule(source, first, *this, count); }
  void handle_event(const Event& event) override {
    EXPECT_EQ(event.time(), simulation.now());
    seen.push_back(simulation.now());
    if (event.argument_a > 1) begin(simulation.now() + Time::from_ns(1), event.argument_a - 1);
  }
  Simulation& simulation;
  EventSource source;
  std::vector<Time> seen;
};

std::vector<Time> nanoseconds(std::int64_t first, std::int64_t last) {
  std::vector<Time> times;
  for (std::int64_t ns = first; ns <= last; ++ns) times.push_back(Time::from_ns(ns));
  return times;
}

// The replayed chain has what would have happened from 3 ns on; the events of the simulation wait.
TEST(Simulation, AReplayAddsWhatShouldHaveHappened) {
  Simulation simulation;
  Steps present(simulation, 1);
  Steps past(simulation, 2);
  present.begin(Time::from_ns(0), 101);
  for (int i = 0; i <= 50; ++i) simulation.step();
  ASSERT_EQ(simulation.now(), Time::from_ns(50));
  const auto begin = [&] {
    EXPECT_EQ(simulation.now(), Time::from_ns(3));
    EXPECT_EQ(simulation.pending_count(), 0U) << "the event of the simulation waits in another queue";
    past.begin(Time::from_ns(5), 60);
  };
  simulation.replay(Time::from_ns(3), begin, [] { return false; });
  EXPECT_EQ(past.seen, nanoseconds(5, 49));
  EXPECT_EQ(present.seen, nanoseconds(0, 50));
  EXPECT_EQ(simulation.now(), Time::from_ns(50));
  EXPECT_EQ(simulation.next_time(), Time::from_ns(50));
  EXPECT_EQ(simulation.pending_count(), 2U);
  simulation.run();
  EXPECT_EQ(past.seen, nanoseconds(5, 64));
  EXPECT_EQ(present.seen, nanoseconds(0, 100));
  EXPECT_EQ(simulation.event_count(), 161U);
}

// From within an event of this instant, and up to a time before which every event has been run.
TEST(Simulation, AReplayGoesAsFarAsItsSimulation) {
  Simulation simulation;
  Steps past(simulation, 1);
  Steps present(simulation, 2);
  present.begin(Time::from_ns(20), 1);
  simulation.step();
  simulation.replay(
      Time::zero(), [&] { past.begin(Time::from_ns(18), 9); }, [&] { return past.seen.size() < 3; });
  EXPECT_EQ(past.seen, nanoseconds(18, 20));
  simulation.run();
  EXPECT_EQ(past.seen, nanoseconds(18, 26));
  simulation.ran_before(Time::from_ns(40));
  simulation.replay(
      Time::from_ns(26), [&] { past.begin(Time::from_ns(27), 20); }, [] { return false; });
  EXPECT_EQ(past.seen, nanoseconds(18, 39));
  EXPECT_EQ(simulation.now(), Time::from_ns(39));
}

// Events of one instant, of which replays add the earlier and the later ones: their total order holds.
TEST(Simulation, WhatIsLeftOfAReplayJoinsThePendingEvents) {
  Simulation simulation;
  Recorder recorder;
  std::array<EventSource, 4> sources{
      {{EventKind::link, 0}, {EventKind::nic, 1}, {EventKind::nic, 2}, {EventKind::host, 0}}};
  for (const std::uint64_t pending : {2U, 90U}) {
    recorder.events.clear();
    const Time now = simulation.now();
    const auto add = [&](std::uint64_t first) {
      for (std::uint64_t i = 0; i < pending; ++i) {
        const Time when = now + Time::from_ns(static_cast<std::int64_t>(1 + i / 2));
        simulation.schedule(sources[first + i % 2 * 2], when, recorder);
      }
    };
    add(1);
    simulation.replay(
        now, [&] { add(0); }, [] { return false; });
    simulation.run();
    ASSERT_EQ(recorder.events.size(), 2 * pending);
    for (std::size_t i = 1; i < recorder.events.size(); ++i)
      EXPECT_TRUE(recorder.events[i - 1].before(recorder.events[i])) << i;
  }
}

TEST(SimulationDeathTest, NorCanTheTimeOfReplays) {
  Simulation simulation;
  Recorder recorder;
  EventSource source{EventKind::nic, 1, 0};
  const auto replay = [&](Time from, Time first) {
    simulation.replay(
        from, [&] { simulation.schedule(source, first, recorder); }, [] { return false; });
  };
  replay(Time::zero(), Time::from_ns(30));
  simulation.run();
  EXPECT_DEATH(replay(Time::from_ns(29), Time::from_ns(31)),
               "a replay from 29000 ps would go back: the one before reached 30000 ps");
  simulation.ran_before(Time::from_ns(40));
  replay(Time::from_ns(30), Time::from_ns(35));
  EXPECT_EQ(simulation.pending_count(), 0U);
  EXPECT_DEATH(replay(Time::from_ns(34), Time::from_ns(36)), "the one before reached 35000 ps");
}

}  // namespace
}  // namespace apenet
