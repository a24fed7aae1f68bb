// Clock: the virtual time of one process, and what it was spent on.
#pragma once

#include <sys/single_threaded.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "runtime/ipc/thread_times.hpp"

namespace apenet::ipc {

// Where clocks stop, and the run with them: 104 days. The rest of the 64 bits is for what is under way then.
inline constexpr std::int64_t end_of_time_ps = 9'000'000'000'000'000'000;

// A sum that the threads of a process add to. With one thread an addition costs no more than that of an
// integer.
class Sum {
 public:
  [[nodiscard]] std::int64_t get() const { return value_.load(std::memory_order_relaxed); }
  void set(std::int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t value) {
    if (__libc_single_threaded != 0) {
      set(get() + value);
    } else {
      value_.fetch_add(value, std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

// Owner: the process. Its threads move the clock at any time and without a lock: it never goes back, loses
// nothing that is charged, and stops at end_of_time_ps. The simulator reads it, and moves it forward where it
// says so, while the process waits.
class Clock {
 public:
  [[nodiscard]] std::int64_t now_ps() const { return now_ps_.load(std::memory_order_relaxed); }
  // Returns what of ps was left before the end of time.
  std::int64_t charge(std::int64_t ps) {
    std::int64_t now = now_ps();
    std::int64_t left = 0;
    do {
      left = std::min(ps, end_of_time_ps - now);
    } while (!change(now, now + left));
    return left;
  }
  // Returns by how much the clock moved.
  std::int64_t advance_to(std::int64_t ps) {
    std::int64_t now = now_ps();
    while (now < ps) {
      if (change(now, ps)) return ps - now;
    }
    return 0;
  }

  // As advance_to, where the process waits for that time.
  std::int64_t wait_to(std::int64_t ps) {
    const std::int64_t moved = advance_to(ps);
    if (!held()) waited_ps.add(moved);
    return moved;
  }
  // What the process does from here on takes no time that anybody sees: shown_ps() stands. now_ps() goes on,
  // for the exchange with the simulator.
  void hold() { held_ps_.store(now_ps(), std::memory_order_relaxed); }
  void release() { held_ps_.store(not_held, std::memory_order_relaxed); }
  [[nodiscard]] bool held() const { return held_ps_.load(std::memory_order_relaxed) != not_held; }
  [[nodiscard]] std::int64_t shown_ps() const {
    const std::int64_t held = held_ps_.load(std::memory_order_relaxed);
    return held == not_held ? now_ps() : held;
  }
  // Back to zero, before anybody has seen it.
  void restart() {
    now_ps_.store(0, std::memory_order_relaxed);
    for (Sum* sum : {&waited_ps, &computed_ps, &outside_ps, &left_ps}) sum->set(0);
  }

  // Events before it are all in the ring. Written by the simulator when it wakes the process; lowered by the
  // process when it asks for something.
  std::int64_t horizon_ps = 0;
  Sum waited_ps;      // waiting for events
  Sum slept_ps;       // of the program's own will: no CPU time
  Sum acted_ps;       // where a sleep under way began, 0: none is; what other ranks saw of it lies before
  Sum afterwards_ps;  // on the process's own clock since it left the simulation; no part of any result
  Sum computed_ps;    // charged as computation
  Sum outside_ps;     // between calls of the library above
  Sum left_ps;        // when the last of them ended
  ThreadTimes cpu;    // ComputeMode::measured

 private:
  bool change(std::int64_t& now, std::int64_t next) {
    if (__libc_single_threaded == 0) {
      return now_ps_.compare_exchange_weak(now, next, std::memory_order_relaxed);
    }
    now_ps_.store(next, std::memory_order_relaxed);
    return true;
  }

  static constexpr std::int64_t not_held = -1;

  std::atomic<std::int64_t> held_ps_{not_held};
  std::atomic<std::int64_t> now_ps_{0};
};

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace apenet::ipc
