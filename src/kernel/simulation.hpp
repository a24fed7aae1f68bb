// Simulation: the clock, the event queue and the seed. Only this class advances time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernel/check.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/interruption.hpp"
#include "kernel/state.hpp"
#include "kernel/time.hpp"
#include "kernel/trace.hpp"

namespace apenet {

// A component's identity in the event order, with its own counter. (kind, id) is unique in a simulation; id
// is below 2^25.
struct EventSource {
  EventKind kind = EventKind::control;
  std::uint32_t id = 0;
  std::uint64_t counter = 0;

  // The counter only orders events that are pending.
  friend bool is_same_state(const EventSource& left, Moment /*at*/, const EventSource& right, Moment /*at*/) {
    return left.kind == right.kind && left.id == right.id;
  }
};

// A simulation cannot continue, because something would happen at end_of_time or later.
class PastEndOfTime : public std::runtime_error {
 public:
  explicit PastEndOfTime(const std::string& what)
      : std::runtime_error(what + " after the end of virtual time, 104 days") {}
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed = 1);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  // The time of the next event, or Time::never() if there is none.
  [[nodiscard]] Time next_time() const {
    return queue_.empty() ? Time::never() : Time::from_ps(static_cast<std::int64_t>(queue_.next_time_ps()));
  }

  // Schedules a call of handler.handle_event() at `when`. Throws PastEndOfTime. Aborts with the state if
  // `when` < now(), because time cannot go back.
  void schedule(EventSource& source, Time when, EventHandler& handler, std::uint64_t argument_a = 0,
                std::uint64_t argument_b = 0) {
    if (source.id >> PackedOrder::source_bits != 0 || source.counter >> PackedOrder::counter_bits != 0)
        [[unlikely]] {
      refuse(source);
    }
    schedule(PackedOrder::pack(source.kind, source.id, source.counter++), when, handler, argument_a,
             argument_b);
  }
  // As above, for a component that keeps its numbers within the limits and ensures that no two of its events
  // are equal.
  void schedule(std::uint64_t packed_order, Time when, EventHandler& handler, std::uint64_t argument_a,
                std::uint64_t argument_b) {
    if (when < now_ || when >= end_of_time) [[unlikely]]
      refuse(packed_order, when);
    queue_.push(static_cast<std::uint64_t>(when.ps()), packed_order, &handler, argument_a, argument_b);
  }

  // Runs the next event; returns false if there is none. This function and the next one call
  // check_for_interruption() regularly. If that throws, the simulation cannot continue.
  bool step() {
    if (queue_.empty()) return false;
    run_next();
    return true;
  }
  void run();

  // Every event before this time has been run: see replay().
  void ran_before(Time time) { ran_before_ = time; }
  // Adds what should have happened since `from`: begin() schedules the first of it, as if that were the time.
  // Runs it up to now, and at this instant as long as more() holds, on a clock and in a queue of its own, so
  // that those of the simulation do not go back; what is left of it joins the pending events. May be called
  // from within an event. Requires that nothing else has happened since `from` that it affects, and that all
  // of the replay before has happened by then.
  template <typename Begin, typename More>
  void replay(Time from, const Begin& begin, const More& more) {
    const Time now = now_;
    begin_replay(from);
    begin();
    while (next_time() < std::max(now, ran_before_) || (next_time() == now && more())) run_next();
    end_replay(now);
  }

  [[nodiscard]] std::size_t pending_count() const { return queue_.size(); }

  struct State {
    Time now;
    Time ran_before;
    EventQueue::State queue;
  };
  struct Counters {
    std::uint64_t events = 0;  // run
  };
  [[nodiscard]] State state() const { return {now_, ran_before_, queue_.state()}; }
  // Do not call it from within an event.
  void restore(const State& state);
  [[nodiscard]] std::uint64_t event_count() const { return counters_.events; }

  // Sets the sink for the components' records; nullptr, the default, for none. The sink must outlive its use.
  void attach_trace(TraceSink* sink) { trace_ = sink; }
  void trace(const TraceRecord& record) const {
    if (trace_ != nullptr) [[unlikely]]
      trace_->record(record);
  }
  // Check before computing a record.
  [[nodiscard]] bool is_traced() const { return trace_ != nullptr; }

 private:
  void begin_replay(Time from);
  void end_replay(Time now);
  [[noreturn, gnu::cold]] static void refuse(const EventSource& source);
  [[noreturn, gnu::cold]] void refuse(std::uint64_t packed_order, Time when) const;

  void run_next() {
    const Event& next = queue_.pop();
    queue_.prepare_coming();
    const Time time = next.time();
    APENET_CHECK(time >= now_, "time would go back from %lld ps to %lld ps",
                 static_cast<long long>(now_.ps()), static_cast<long long>(time.ps()));
    now_ = time;
    if (++counters_.events % events_between_checks == 0) [[unlikely]]
      check_for_interruption();
    next.handler->handle_event(next);
  }

  // Small, because one event of the flit engine is a cycle of the whole network: milliseconds for a large
  // one.
  static constexpr std::uint64_t events_between_checks = 256;

  Time now_;
  Time ran_before_;
  std::uint64_t seed_;
  Counters counters_;
  TraceSink* trace_ = nullptr;
  EventQueue queue_;
  // The queue of replays, and during a replay that of the simulation. Empty between replays.
  std::unique_ptr<EventQueue> other_queue_;
  Time replayed_;  // the last time in the queue of replays
};

}  // namespace apenet
