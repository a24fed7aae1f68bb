// ThreadLock: serialises the threads of one process, whichever library they are in.
#pragma once

#include <pthread.h>
#include <sys/single_threaded.h>

#include <atomic>
#include <cstdint>

#include "runtime/ipc/futex.hpp"

namespace apenet::ipc {

// In turn: a thread that polls without end (MPICH's progress thread) would otherwise take the lock again
// before the one that it has woken. Lies in the mapping, shared by the provider and the shim.
class ThreadLock {
 public:
  void lock() {
    const std::uint32_t number = next_.fetch_add(1);
    std::uint32_t serving = serving_.load();
    while (serving != number) {
      futex_wait(serving_, serving, nullptr);
      serving = serving_.load();
    }
    if (__libc_single_threaded == 0) note_thread();
  }
  void unlock() {
    const std::uint32_t next = serving_.fetch_add(1) + 1;
    if (next_.load() != next) futex_wake(serving_);
  }
  // From now on: has another thread than this one taken the lock?
  void note_threads() {
    first_ = pthread_self();
    several_ = 0;
  }
  [[nodiscard]] bool had_several() const { return several_ != 0; }
  [[nodiscard]] bool is_free() const { return next_.load() == serving_.load(); }

 private:
  void note_thread() {
    if (first_ == pthread_t{}) first_ = pthread_self();
    if (pthread_equal(first_, pthread_self()) == 0) several_.store(1, std::memory_order_relaxed);
  }

  std::atomic<std::uint32_t> next_{0};     // the number that the next thread draws ...
  std::atomic<std::uint32_t> serving_{0};  // ... futex: and the one whose turn it is
  pthread_t first_{};                      // written and read by whose turn it is
  std::atomic<std::uint32_t> several_{0};
};

}  // namespace apenet::ipc
