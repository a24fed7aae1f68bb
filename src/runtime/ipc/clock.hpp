// Clock: the virtual time of one process, and how it was spent.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/ipc/single_threaded.hpp"

namespace apenet::ipc {

// Clocks stop here, after 104 days, and the run ends. The rest of the 64-bit range is left for events in
// progress.
// 25 July 2005, 00:00 UTC, the day on which the results of the 2005 clusters were shown: the date of virtual
// time zero. A fixed date, so that a program that prints the time prints the same in every run.
inline constexpr std::int64_t date_of_zero_s = 1'122'249'600;
inline constexpr std::int64_t end_of_time_ps = 9'000'000'000'000'000'000;

// A sum to which several threads add. With one thread, an addition costs no more than for a plain integer.
class Sum {
 public:
  [[nodiscard]] std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t value) {
    if (is_single_threaded()) {
      set(get() + value);
    } else {
      value_.fetch_add(value, std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Owner: the process. Its threads advance the clock at any time without a lock. It never goes back, loses no
// charge, and stops at end_of_time_ps. While the process waits, the simulator may read and advance it.
class Clock {
 public:
  [[nodiscard]] std::int64_t now_ps() const { return now_ps_.load(std::memory_order_relaxed); }
  // Returns the part of ps that was charged before the end of time.
  std::int64_t charge(std::int64_t ps) {
    std::int64_t now = now_ps();
    std::int64_t left = 0;
    do {
      left = std::min(ps, end_of_time_ps - now);
    } while (!change(now, now + left));
    return left;
  }
  // Returns by how much the clock advanced.
  std::int64_t advance_to(std::int64_t ps) {
    std::int64_t now = now_ps();
    while (now < ps) {
      if (change(now, ps)) return ps - now;
    }
    return 0;
  }

  // As advance_to(), and counts the time as waiting.
  std::int64_t wait_to(std::int64_t ps) {
    const std::int64_t moved = advance_to(ps);
    if (!held()) waited_ps.add(moved);
    return moved;
  }
  // Freezes the visible clock, shown_ps(): what follows takes no time that anyone sees. now_ps() continues,
  // for the exchange with the simulator.
  void hold() { held_ps_.store(now_ps(), std::memory_order_relaxed); }
  void release() { held_ps_.store(not_held, std::memory_order_relaxed); }
  [[nodiscard]] bool held() const { return held_ps_.load(std::memory_order_relaxed) != not_held; }
  [[nodiscard]] std::int64_t shown_ps() const {
    const std::int64_t held = held_ps_.load(std::memory_order_relaxed);
    return held == not_held ? now_ps() : held;
  }
  // Resets the clock to zero. Call before anyone has read it.
  void restart() {
    now_ps_.store(0, std::memory_order_relaxed);
    for (Sum* sum : {&waited_ps, &computed_ps, &outside_ps, &left_ps, &uncharged_ps}) sum->set(0);
  }

  // All events before this time are in the ring. The simulator sets it when it wakes the process; the process
  // lowers it when it posts a request.
  std::int64_t horizon_ps = 0;
  Sum waited_ps;  // waiting for events
  Sum slept_ps;   // the program's own sleeps, which take no CPU time
  // Start of the current sleep, or 0; only what the process did before it is known to other ranks.
  Sum acted_ps;
  Sum afterwards_ps;  // time on the process's clock since it left the simulation; in no result
  Sum computed_ps;    // charged as computation
  Sum outside_ps;     // between calls of the library above
  Sum left_ps;        // end of the last such call
  Sum uncharged_ps;   // CPU time that ComputeMode::none does not charge; of the host, and in no result

 private:
  bool change(std::int64_t& now, std::int64_t next) {
    if (!is_single_threaded()) return now_ps_.compare_exchange_weak(now, next);
    now_ps_.store(next, std::memory_order_relaxed);
    return true;
  }

  static constexpr std::int64_t not_held = -1;

  std::atomic<std::int64_t> held_ps_{not_held};
  std::atomic<std::int64_t> now_ps_{0};
};

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace apenet::ipc
