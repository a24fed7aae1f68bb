// ThreadLock: serialises the threads of one process across libraries.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"

namespace apenet::ipc {

// A fair (ticket) lock. With an unfair lock, a thread that polls without end (MPICH's progress thread) would
// take the lock again before the thread that it has woken. Lies in the mapping, where the provider and the
// shim share it.
class ThreadLock {
 public:
  void acquire() {
    const std::uint32_t number = next_.fetch_add(1);
    if (serving_.load() != number) [[unlikely]]
      wait_for(number);
  }
  // As acquire(), for a thread of a process that may share the lock with others: one that has ended with the
  // lock is passed over. Returns whether one was.
  bool acquire_among(std::uint32_t process) {
    const std::uint32_t number = next_.fetch_add(1);
    const bool has_passed = serving_.load() != number && wait_among(number);
    holder_.store(process);
    return has_passed;
  }
  void unlock() {
    holder_.store(0, std::memory_order_relaxed);
    const std::uint32_t next = serving_.fetch_add(1) + 1;
    if (next_.load() != next) [[unlikely]]
      wake();
  }
  // Starts to record whether several threads call what follows.
  void note_threads() {
    first_.store(pthread_t{}, std::memory_order_relaxed);
    several_ = 0;
    used_futex_ = 0;
  }
  // Call when the calling thread does something whose result depends on the order of threads.
  void note_thread() { note(pthread_self()); }
  // Likewise, for all threads whose order is known together.
  void note_ordered() { note(static_cast<pthread_t>(1)); }
  // The calling thread enters the order: if only it has acted before, all that was recorded is in order.
  void note_entered() {
    pthread_t first = pthread_self();
    first_.compare_exchange_strong(first, static_cast<pthread_t>(1));
  }
  void note_several() { several_.store(1, std::memory_order_relaxed); }
  [[nodiscard]] bool had_several() const { return several_ != 0; }
  // A thread has waited or woken others by a futex of its own: by what it read in memory before, it decided
  // to do so.
  void note_futex() { used_futex_.store(1, std::memory_order_relaxed); }
  [[nodiscard]] bool had_futex() const { return used_futex_ != 0; }
  [[nodiscard]] bool is_free() const { return next_.load() == serving_.load(); }

 private:
  // Apart from what each call goes through, which needs no registers for them.
  [[gnu::noinline]] void wait_for(std::uint32_t number) {
    std::uint32_t serving = serving_.load();
    while (serving != number) {
      if (number - serving > most_threads) refuse();
      futex_wait(serving_, serving, nullptr);
      serving = serving_.load();
    }
  }
  [[gnu::noinline]] bool wait_among(std::uint32_t number) {
    constexpr timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};
    bool has_passed = false;
    std::uint32_t serving = serving_.load();
    while (serving != number) {
      if (number - serving > most_threads) refuse();
      const bool has_come = futex_wait(serving_, serving, &patience) == 0 || errno != ETIMEDOUT;
      std::uint32_t holder = holder_.load();
      // Once: whoever is served next may have acquired it by acquire(), and live.
      if (!has_come && holder != 0 && has_process_ended(holder) &&
          holder_.compare_exchange_strong(holder, 0)) {
        has_passed = true;
        unlock();
      }
      serving = serving_.load();
    }
    return has_passed;
  }
  [[gnu::noinline]] void wake() { futex_wake(serving_); }
  void note(pthread_t self) {
    if (!is_single_threaded()) [[unlikely]]
      note_first(self);
  }
  [[gnu::noinline]] void note_first(pthread_t self) {
    pthread_t first = first_.load(std::memory_order_relaxed);
    if (first == self || (first == pthread_t{} && first_.compare_exchange_strong(first, self))) return;
    note_several();
  }

  static constexpr std::uint32_t most_threads = 1U << 16U;

  // Another process of the user has overwritten the lock. Without this check, the thread would wait forever.
  [[noreturn]] static void refuse() {
    std::fprintf(stderr, "apenet: the lock of this rank's block has been overwritten\n");
    std::_Exit(2);
  }

  std::atomic<std::uint32_t> next_{0};     // the ticket that the next thread takes
  std::atomic<std::uint32_t> serving_{0};  // the ticket that holds the lock; futex
  std::atomic<pthread_t> first_{};         // the first thread recorded
  std::atomic<std::uint32_t> several_{0};
  std::atomic<std::uint32_t> used_futex_{0};
  std::atomic<std::uint32_t> holder_{0};  // the process that has acquired it among others; 0: not known
};

}  // namespace apenet::ipc
