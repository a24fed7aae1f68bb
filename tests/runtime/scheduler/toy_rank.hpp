// ToyRank: a rank that carries out a list of actions, one after the other, on any scheduler.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "message/requests.hpp"
#include "runtime/ipc/protocol.hpp"

namespace apenet::test {

enum class Action : std::uint8_t {
  post,       // to the next rank; both hear of it
  wait,       // for the next event
  poll,       // whether there is an event now
  compute,    // beside the others
  sleep,      // until a time, when all that happens before is known
  share,      // from now on it shares memory with the other ranks of its node
  exit,       // leaves the simulation
  die,        // its process ends
  join_late,  // as first action: reaches the start late; later, its other threads have something to do
  // Not of the small alphabet:
  flush,          // its rings are full
  timed_wait,     // for the next event, or until a time
  wait_two,       // for two events
  die_waiting,    // its process ends while it waits
  die_computing,  // its process ends while it computes
  outside_wait,   // for the next event, or until the host ends the wait
  end
};
inline constexpr auto small_alphabet = static_cast<std::size_t>(Action::flush);
inline constexpr auto whole_alphabet = static_cast<std::size_t>(Action::end);

// What the rank saw: an event, or that there was none.
struct Seen {
  std::int64_t at_ps = 0;
  int kind = -1;  // kind of the event
  std::uint32_t source = 0;
  std::uint64_t message = 0;
  bool operator==(const Seen&) const = default;
};

// What a scheduler offers a rank while it runs.
class Port {
 public:
  virtual ~Port() = default;
  // The oldest event that the rank knows of and has not taken, visible or not.
  [[nodiscard]] virtual const ipc::Event* front() = 0;
  virtual void pop() = 0;
  virtual void post(ipc::Request& request) = 0;
};

struct ToyRank {
  static constexpr std::int64_t us = 1'000'000;  // ps
  static constexpr std::int64_t no_deadline = 0;

  ToyRank(std::size_t of_rank, std::size_t of_count, std::vector<Action> to_do)
      : rank(static_cast<std::uint32_t>(of_rank)),
        count(static_cast<std::uint32_t>(of_count)),
        actions(std::move(to_do)) {}

  std::uint32_t rank;
  std::uint32_t count;
  std::vector<Action> actions;
  // Its state for a scheduler: why it waits, and the deadline.
  ipc::Wait wait = ipc::Wait::running;
  std::int64_t deadline_ps = no_deadline;
  std::uint32_t least_events = 1;
  bool shares = false;
  bool died = false;
  std::int64_t clock_ps = 0;
  std::int64_t horizon_ps = 0;
  std::vector<Seen> log;

  // Whether it waits for an event, or for the host.
  [[nodiscard]] bool waits_outside() const {
    return !died && wait == ipc::Wait::for_event && next_ < actions.size() &&
           actions[next_] == Action::outside_wait;
  }
  // Goes on until it waits, leaves or dies.
  void run(Port& port);

 private:
  // Times of two ranks are equal only where a test means that.
  [[nodiscard]] std::int64_t cost_ps(std::int64_t ps) const { return ps + 7'000 * rank; }
  bool stop(ipc::Wait why, std::int64_t until_ps = no_deadline) {
    wait = why;
    deadline_ps = until_ps;
    is_resuming_ = true;
    return false;
  }
  bool take(Port& port) {
    const ipc::Event* event = port.front();
    clock_ps = std::max(clock_ps, event->time_ps);
    log.push_back({clock_ps, static_cast<int>(event->kind), event->source, event->message});
    port.pop();
    return true;
  }
  bool sees_nothing() {
    log.push_back({.at_ps = clock_ps});
    return true;
  }
  // Returns whether the action has ended.
  bool act(Action action, Port& port, bool resumes);
  bool begin(Port& port, bool resumes);
  bool take_two(Port& port);

  std::size_t next_ = 0;
  std::uint32_t taken_ = 0;
  std::uint64_t messages_ = 0;
  bool has_begun_ = false;
  bool is_resuming_ = false;
};

inline void ToyRank::run(Port& port) {
  wait = ipc::Wait::running;
  if (!has_begun_ && !begin(port, std::exchange(is_resuming_, false))) return;
  for (; next_ < actions.size() && !died && wait == ipc::Wait::running; ++next_) {
    if (!act(actions[next_], port, std::exchange(is_resuming_, false))) return;
  }
  if (!died && wait == ipc::Wait::running) wait = ipc::Wait::finished;
}

inline bool ToyRank::begin(Port& /*port*/, bool resumes) {
  if (!resumes) {
    if (!actions.empty() && actions.front() == Action::join_late) clock_ps += cost_ps(9 * us);
    return stop(ipc::Wait::start);
  }
  has_begun_ = true;
  return true;
}

inline bool ToyRank::take_two(Port& port) {
  for (; taken_ < 2 && port.front() != nullptr; ++taken_) take(port);
  if (taken_ < 2) {
    least_events = 2 - taken_;
    return stop(ipc::Wait::for_event);
  }
  taken_ = 0;
  least_events = 1;
  return true;
}

inline bool ToyRank::act(Action action, Port& port, bool resumes) {
  const auto is_visible = [&] { return port.front() != nullptr && port.front()->time_ps <= clock_ps; };
  switch (action) {
    case Action::post: {
      clock_ps += cost_ps(us);
      ipc::Request request;
      request.target = (rank + 1) % count;
      request.bytes = request.inline_length = 8;
      request.flags = message::want_local;
      request.no_reply = 1;
      request.message = ++messages_;
      request.time_ps = clock_ps;
      port.post(request);
      return true;
    }
    case Action::wait:
      return port.front() != nullptr ? take(port) : stop(ipc::Wait::for_event);
    case Action::poll:
      if (!is_visible() && !resumes && clock_ps >= horizon_ps) return stop(ipc::Wait::until, clock_ps);
      if (is_visible()) return take(port);
      sees_nothing();
      clock_ps += cost_ps(us / 10);
      return true;
    case Action::compute:
      if (resumes) return true;
      clock_ps += cost_ps(2 * us);
      return stop(ipc::Wait::computes, clock_ps);
    case Action::sleep:
      if (resumes) return true;
      clock_ps += cost_ps(3 * us);
      return clock_ps < horizon_ps || stop(ipc::Wait::until, clock_ps);
    case Action::share:
      shares = true;
      return true;
    case Action::exit:
      wait = ipc::Wait::finished;
      return true;
    case Action::die:
      died = true;
      return true;
    case Action::join_late:
      clock_ps += cost_ps(us / 2);
      return true;
    case Action::flush:
      return resumes || stop(ipc::Wait::flush);
    case Action::timed_wait: {
      if (!resumes && is_visible()) return take(port);
      const std::int64_t until_ps = resumes ? deadline_ps : clock_ps + cost_ps(4 * us);
      if (port.front() != nullptr && port.front()->time_ps <= until_ps) return take(port);
      if (!resumes) return stop(ipc::Wait::for_event, until_ps);
      clock_ps = std::max(clock_ps, until_ps);
      return sees_nothing();
    }
    case Action::wait_two:
      return take_two(port);
    case Action::die_waiting:
      died = true;
      return stop(ipc::Wait::for_event);
    case Action::die_computing:
      died = true;
      clock_ps += cost_ps(2 * us);
      return stop(ipc::Wait::computes, clock_ps);
    case Action::outside_wait:
      if (port.front() != nullptr) return take(port);
      return resumes ? sees_nothing() : stop(ipc::Wait::for_event);
    case Action::end:
      break;
  }
  return true;
}

}  // namespace apenet::test
