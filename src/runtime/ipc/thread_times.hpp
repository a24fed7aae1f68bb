// ThreadTimes: how much CPU time of each thread of a process has been charged.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apenet::ipc {

// Lies in the mapping, where the shim and the provider share it. Each thread has its own CPU clock and its
// own entry, which no other thread writes. Threads that find no free entry are not charged.
class ThreadTimes {
 public:
  // now_ps: the calling thread's CPU clock. Returns the time since the thread's last call, or since the
  // thread began.
  std::int64_t take(std::int64_t now_ps) {
    const pthread_t self = pthread_self();
    for (Entry& entry : entries_) {
      pthread_t owner = entry.owner.load(std::memory_order_relaxed);
      if (owner != self && (owner != pthread_t{} || !entry.owner.compare_exchange_strong(owner, self)))
        continue;
      const std::int64_t passed_ps = now_ps - entry.seen_ps.load(std::memory_order_relaxed);
      entry.seen_ps.store(now_ps, std::memory_order_relaxed);
      return passed_ps >= 0 ? passed_ps : now_ps;  // an ended thread had the same id
    }
    return 0;
  }

 private:
  static constexpr std::size_t most_threads = 64;
  struct Entry {
    std::atomic<pthread_t> owner{};
    std::atomic<std::int64_t> seen_ps{0};
  };
  std::array<Entry, most_threads> entries_;
};

}  // namespace apenet::ipc
