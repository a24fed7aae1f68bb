// The specification of ThreadOrder: a program of a few threads, executed one action at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace apenet::testing {

enum class Do : std::uint8_t {
  act,        // nothing, in order
  charge,     // the thread's clock moves by 10
  sleep,      // 25
  lock,       // the only lock, unless the thread holds it
  unlock,     // if it holds it
  wait,       // at the only condition, if it holds the lock
  wait_long,  // for 40 at most
  signal,
  broadcast,
  yield,
  pass,  // nothing: that a thread waits here for its place in the order, or not, changes nothing
};
inline constexpr int action_count = 11;

using ThreadProgram = std::vector<Do>;

// What happened, in order: the thread, its action, and its clock at the end of the action.
struct Happened {
  std::size_t thread;
  std::size_t action;
  std::int64_t clock;
  friend bool operator==(const Happened&, const Happened&) = default;
};

// Executes one thread at a time, always the one whose next action has the least key.
class NaiveOrder {
 public:
  explicit NaiveOrder(std::vector<ThreadProgram> programs) : threads_(programs.size()), programs_(programs) {
    for (std::size_t i = 0; i < threads_.size(); ++i) skip_passes(i);
  }

  // nullopt: some threads wait for ever.
  std::optional<std::vector<Happened>> run() {
    for (;;) {
      std::optional<std::size_t> next;
      for (std::size_t i = 0; i < threads_.size(); ++i) {
        if (may_act(i) && (!next || key_of(i) < key_of(*next))) next = i;
      }
      if (!next) break;
      step(*next);
    }
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (threads_[i].at < programs_[i].size()) return std::nullopt;
    }
    return happened_;
  }

 private:
  enum class At : std::uint8_t { nothing, lock, condition };
  struct Thread {
    std::int64_t clock = 0;
    std::uint32_t round = 0;
    std::size_t at = 0;  // position in its program
    At blocked = At::nothing;
    std::uint64_t ticket = 0;
    std::int64_t deadline = -1;
    std::int64_t wakes = -1;  // it sleeps
    bool wants_lock = false;  // after a condition
  };
  using Key = std::tuple<std::int64_t, std::uint32_t, std::size_t>;

  // The end of a thread is an action, too.
  bool may_act(std::size_t i) const {
    const Thread& thread = threads_[i];
    if (thread.at > programs_[i].size()) return false;
    return thread.blocked == At::nothing || thread.deadline >= 0;
  }
  Key key_of(std::size_t i) const {
    const Thread& thread = threads_[i];
    if (thread.blocked != At::nothing) return {std::max(thread.deadline, thread.clock), 0, i};
    if (thread.at < programs_[i].size() && programs_[i][thread.at] == Do::sleep && !thread.wants_lock)
      return {thread.clock + 25, 0, i};
    return {thread.clock, thread.round, i};
  }
  void end_action(std::size_t i, std::int64_t clock) {
    Thread& thread = threads_[i];
    if (clock > thread.clock) {
      thread.clock = clock;
      thread.round = 0;
    } else {
      ++thread.round;
    }
    happened_.push_back({i, thread.at++, thread.clock});
    skip_passes(i);
  }
  void skip_passes(std::size_t i) {
    while (threads_[i].at < programs_[i].size() && programs_[i][threads_[i].at] == Do::pass) ++threads_[i].at;
  }
  void wake(At what, std::size_t most, std::size_t by) {
    for (; most > 0; --most) {
      Thread* first = nullptr;
      for (Thread& thread : threads_) {
        if (thread.blocked == what && (first == nullptr || thread.ticket < first->ticket)) first = &thread;
      }
      if (first == nullptr) return;
      first->blocked = At::nothing;
      first->deadline = -1;
      const Thread& from = threads_[by];
      if (std::pair(first->clock, first->round) < std::pair(from.clock, from.round))
        std::tie(first->clock, first->round) = std::pair(from.clock, from.round);
    }
  }
  void block(std::size_t i, At what, std::int64_t deadline) {
    threads_[i].blocked = what;
    threads_[i].ticket = ++tickets_;
    threads_[i].deadline = deadline;
  }
  void take_lock(std::size_t i) {
    if (owner_) {
      block(i, At::lock, -1);
      return;
    }
    owner_ = i;
    threads_[i].wants_lock = false;
    end_action(i, threads_[i].clock);
  }
  void step(std::size_t i) {
    Thread& thread = threads_[i];
    if (thread.at == programs_[i].size()) {
      ++thread.at;
      return;
    }
    if (thread.blocked != At::nothing) {  // its deadline has come
      const auto [clock, round, number] = key_of(i);
      if (clock > thread.clock) thread.round = 0;
      thread.clock = clock;
      thread.blocked = At::nothing;
      thread.deadline = -1;
    }
    if (thread.wants_lock) return take_lock(i);
    switch (programs_[i][thread.at]) {
      case Do::act:
      case Do::pass:  // has been skipped
        return end_action(i, thread.clock);
      case Do::charge:
        return end_action(i, thread.clock + 10);
      case Do::sleep:
        thread.clock += 25;
        thread.round = 0;
        return end_action(i, thread.clock);
      case Do::lock:
        if (owner_ == i) return end_action(i, thread.clock);
        thread.wants_lock = true;
        return take_lock(i);
      case Do::unlock:
        if (owner_ == i) {
          owner_.reset();
          wake(At::lock, 1, i);
        }
        return end_action(i, thread.clock);
      case Do::wait:
      case Do::wait_long: {
        if (owner_ != i) return end_action(i, thread.clock);
        owner_.reset();
        wake(At::lock, 1, i);
        thread.wants_lock = true;
        const bool is_limited = programs_[i][thread.at] == Do::wait_long;
        return block(i, At::condition, is_limited ? thread.clock + 40 : -1);
      }
      case Do::signal:
        wake(At::condition, 1, i);
        return end_action(i, thread.clock);
      case Do::broadcast:
        wake(At::condition, threads_.size(), i);
        return end_action(i, thread.clock);
      case Do::yield:
        for (std::size_t j = 0; j < threads_.size(); ++j) {
          if (j == i || !may_act(j)) continue;
          if (threads_[j].clock == thread.clock) thread.round = std::max(thread.round, threads_[j].round);
        }
        return end_action(i, thread.clock);
    }
  }

  std::vector<Thread> threads_;
  std::vector<ThreadProgram> programs_;
  std::optional<std::size_t> owner_;
  std::uint64_t tickets_ = 0;
  std::vector<Happened> happened_;
};

}  // namespace apenet::testing
