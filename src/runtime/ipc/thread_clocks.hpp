// ThreadClocks: the threads of a rank that have a time of their own, because they sleep or have slept.
//
// docs/internals/threads.md states the rule. Lies in the mapping, so that the provider and the shim share it.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/ipc/clock.hpp"

namespace apenet::ipc {

// Owner: the thread; others read it at any time, and set is_passed_over and checks.
struct ThreadClock {
  enum State : std::uint32_t { free, acts, sleeps };
  static constexpr std::int64_t of_rank_ps = -1;

  std::atomic<std::uint32_t> state{free};
  std::atomic<std::int32_t> id{0};               // of the host; 0: the thread has not begun
  std::atomic<std::int64_t> own_ps{of_rank_ps};  // its clock, unless it takes part in the rank's
  std::atomic<std::int64_t> until_ps{0};         // State::sleeps
  std::atomic<std::uint32_t> bell{0};            // futex: changes when the thread is the next to wake
  std::atomic<std::int64_t> since_ps{0};         // the rank's clock when the thread fell asleep
  // It waits for another thread in the host, and may wake before until_ps.
  std::atomic<std::uint32_t> is_in_host{0};
  // It waits for files that only this process can make ready.
  std::atomic<std::uint32_t> waits_inside{0};
  std::atomic<pthread_cond_t*> condition{nullptr};  // the one at which it waits in the host
  std::atomic<std::uint32_t> is_rung{0};            // 1: it was signalled, because its time has come; 2: now
  // Others do not wait for what it does, until it sleeps again: it is blocked, or computes without end.
  std::atomic<std::uint32_t> is_passed_over{0};
  std::atomic<std::uint32_t> checks{0};   // that have found it blocked since it woke
  std::atomic<std::int64_t> cpu_ns{0};    // CPU time that it had used when it woke
  std::atomic<std::int64_t> switches{0};  // how often it had blocked in the host when its clock was last set
};

// Owner: the process.
class ThreadClocks {
 public:
  static constexpr std::uint32_t room = 1024;
  static constexpr std::int64_t never_ps = INT64_MAX;

  [[nodiscard]] bool in_use() const { return used_.load(std::memory_order_relaxed) != 0; }
  // The entry of a thread, or nullptr.
  [[nodiscard]] ThreadClock* find(pthread_t thread) {
    const std::uint32_t used = used_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; ++i) {
      if (threads_[i].load(std::memory_order_relaxed) == thread) return &clocks_[i];
    }
    return nullptr;
  }
  // A new entry; nullptr if there is no room.
  [[nodiscard]] ThreadClock* add(pthread_t thread) {
    for (std::uint32_t i = 0; i < room; ++i) {
      std::uint32_t state = ThreadClock::free;
      if (!clocks_[i].state.compare_exchange_strong(state, ThreadClock::acts)) continue;
      std::uint32_t used = used_.load();
      while (used < i + 1 && !used_.compare_exchange_weak(used, i + 1)) continue;
      threads_[i].store(thread);
      return &clocks_[i];
    }
    return nullptr;
  }
  void set_thread(const ThreadClock& clock, pthread_t thread) { threads_[&clock - clocks_.data()] = thread; }
  void drop(ThreadClock& clock) {
    set_thread(clock, pthread_t{});
    clock.id = 0;
    clock.own_ps = ThreadClock::of_rank_ps;
    for (auto* word :
         {&clock.is_in_host, &clock.waits_inside, &clock.is_rung, &clock.is_passed_over, &clock.checks})
      *word = 0;
    clock.condition = nullptr;
    clock.cpu_ns = clock.switches = 0;
    clock.state = ThreadClock::free;
    note_change();
  }

  // The earliest time until which a thread sleeps, of those for which others wait.
  [[nodiscard]] std::int64_t earliest_ps() const {
    std::int64_t first_ps = never_ps;
    for_each([&](const ThreadClock& clock) {
      if (sleeps(clock) && clock.is_passed_over == 0) first_ps = std::min(first_ps, clock.until_ps.load());
    });
    return first_ps;
  }
  // The threads that sleep in virtual time and wake before this one: their number, and the first.
  struct Earlier {
    std::int64_t count = 0;
    ThreadClock* first = nullptr;
  };
  [[nodiscard]] Earlier earlier_than(const ThreadClock& own) {
    Earlier earlier;
    for_each([&](ThreadClock& clock) {
      const std::int64_t until_ps = clock.until_ps;
      const bool is_earlier = until_ps < own.until_ps || (until_ps == own.until_ps && &clock < &own);
      if (!is_earlier || !wakes_by_clock(clock)) return;
      ++earlier.count;
      if (earlier.first == nullptr || until_ps < earlier.first->until_ps) earlier.first = &clock;
    });
    return earlier;
  }
  // Returns the thread that wakes first of those that sleep in virtual time; nullptr if none sleeps.
  [[nodiscard]] ThreadClock* first_asleep() {
    ThreadClock* first = nullptr;
    for_each([&](ThreadClock& clock) {
      if (wakes_by_clock(clock) && (first == nullptr || clock.until_ps < first->until_ps)) first = &clock;
    });
    return first;
  }
  // A thread, other than `own`, that should wake by now, and has not yet; nullptr if none.
  [[nodiscard]] ThreadClock* due(std::int64_t now_ps, const ThreadClock* own) {
    return find_other(own,
                      [=](const ThreadClock& clock) { return sleeps(clock) && clock.until_ps <= now_ps; });
  }
  // Likewise, or one that has woken and not yet done what it does.
  [[nodiscard]] ThreadClock* unsettled(std::int64_t now_ps, const ThreadClock* own) {
    return find_other(own, [=](const ThreadClock& clock) {
      return clock.state == ThreadClock::acts || (sleeps(clock) && clock.until_ps <= now_ps);
    });
  }
  [[nodiscard]] std::uint32_t used() const { return used_; }
  // Whether the thread, by its id of the host, sleeps, and nothing but time ends that.
  [[nodiscard]] bool is_asleep(std::int32_t id) const {
    bool sleeps = false;
    for_each([&](const ThreadClock& clock) {
      sleeps = sleeps || (clock.id == id && wakes_by_clock(clock) && clock.waits_inside == 0);
    });
    return sleeps;
  }
  // Whether the thread, by its id of the host, waits for what only this process does.
  [[nodiscard]] bool waits_inside(std::int32_t id) const {
    bool waits = false;
    for_each([&](const ThreadClock& clock) { waits = waits || (clock.id == id && clock.waits_inside != 0); });
    return waits;
  }
  template <typename Use>
  void for_each(Use use) {
    for (std::uint32_t i = 0; i < used_.load(); ++i) use(clocks_[i]);
  }
  template <typename Use>
  void for_each(Use use) const {
    // The simulator trusts no number of a rank.
    for (std::uint32_t i = 0; i < std::min(used_.load(), room); ++i) use(clocks_[i]);
  }
  static bool wakes_by_clock(const ThreadClock& clock) {
    return sleeps(clock) && clock.is_in_host == 0 && clock.is_passed_over == 0;
  }
  static bool sleeps(const ThreadClock& clock) { return clock.state == ThreadClock::sleeps; }

  // Changes whenever a thread falls asleep, wakes, begins or ends.
  [[nodiscard]] std::atomic<std::uint32_t>& changes() { return changes_; }
  void note_change() { ++changes_; }
  // A thread of the rank would wait in the simulation, but lets others act first.
  std::atomic<std::uint32_t> is_awaited{0};
  // A thread waits in the simulation, or has been told to go on and has not yet woken.
  std::atomic<std::uint32_t> in_simulation{0};
  // Threads that sleep for a moment in a wait of MPI, and look again.
  std::atomic<std::uint32_t> give_way{0};
  [[nodiscard]] bool any_in_simulation() const { return in_simulation != 0 || give_way != 0; }

 private:
  template <typename Holds>
  ThreadClock* find_other(const ThreadClock* own, Holds holds) {
    ThreadClock* found = nullptr;
    for_each([&](ThreadClock& clock) {
      if (&clock != own && clock.is_passed_over == 0 && holds(clock)) found = &clock;
    });
    return found;
  }

  std::atomic<std::uint32_t> used_{0};  // entries that were ever used
  std::atomic<std::uint32_t> changes_{0};
  std::array<std::atomic<pthread_t>, room> threads_{};
  std::array<ThreadClock, room> clocks_;
};

}  // namespace apenet::ipc
