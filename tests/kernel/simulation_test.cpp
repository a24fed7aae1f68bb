// Simulation: one clock that only goes forward, one order of events.
#include "kernel/simulation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/check.hpp"

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
  set_interruption_look([] { throw Wanted{}; });
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
  set_interruption_look(nullptr);
}

TEST(SimulationDeathTest, TimeCannotGoBack) {
  Simulation simulation;
  Recorder recorder;
  EventSource source{EventKind::host, 3};
  simulation.schedule(source, Time::from_ns(2), recorder);
  simulation.run();
  EXPECT_DEATH(simulation.schedule(source, Time::from_ns(1), recorder),
               "schedule at 1000 ps, now 2000 ps.*id 3");
  EXPECT_DEATH(simulation.schedule(source, Time::never(), recorder), "check failed");
  source.id = 1U << 25U;
  EXPECT_DEATH(simulation.schedule(source, Time::from_ns(3), recorder), "check failed");
}

TEST(CheckDeathTest, PrintsPlaceConditionAndState) {
  const int credits = -3;
  EXPECT_DEATH(APENET_CHECK(credits >= 0, "credits %d of port %s", credits, "+x"),
               "simulation_test.cpp:[0-9]+: check failed: credits >= 0: credits -3 of port \\+x");
}

}  // namespace
}  // namespace apenet
