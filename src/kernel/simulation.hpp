// Simulation: the clock, the queue and the seed. It alone advances time.
#pragma once

#include <cstdint>
#include <memory>

#include "kernel/event_queue.hpp"
#include "kernel/time.hpp"

namespace apenet {

// A component's identity in the event order, with its own counter.
struct EventSource {
  EventKind kind = EventKind::control;
  std::uint32_t id = 0;
  std::uint64_t counter = 0;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed = 1);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  // Time of the next event, Time::never() when there is none.
  [[nodiscard]] Time next_time() const;

  // Calls handler.handle_event at `when` >= now(); aborts with the state otherwise: time cannot go back.
  void schedule(EventSource& source, Time when, EventHandler& handler, std::uint64_t argument_a = 0,
                std::uint64_t argument_b = 0);
  // Runs the next event; false when there is none.
  bool step();
  void run_until(Time horizon);  // every event before horizon, exclusive; now() then is that of the last
  void run();

 private:
  Time now_;
  std::uint64_t seed_;
  // the queue: see event_queue.hpp
};

}  // namespace apenet
