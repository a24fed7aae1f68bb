// The guard of a static variable in a function, as the compiler and libstdc++ have it, so that libraries that
// bring their own libstdc++ may use the same variable: the first byte says whether the variable is complete
// (Itanium C++ ABI, 3.3.3), the next two that a thread initialises it, and that others wait.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/ipc/futex.hpp"

namespace apenet::ipc {

class StaticGuard {
 public:
  [[nodiscard]] bool is_complete() const { return (state_.load(std::memory_order_acquire) & complete) != 0; }
  // Whether the caller initialises the variable. If not, it is complete, or another thread does.
  [[nodiscard]] bool try_begin() {
    std::uint32_t state = 0;
    return state_.compare_exchange_strong(state, begun);
  }
  // Returns when the thread that initialises it has ended that, or earlier.
  void wait() {
    std::uint32_t state = begun;
    if (state_.compare_exchange_strong(state, begun | awaited) || state == (begun | awaited))
      futex_wait(state_, begun | awaited, nullptr);
  }
  void finish(bool has_succeeded) {
    if ((state_.exchange(has_succeeded ? complete : 0) & awaited) != 0) futex_wake(state_);
  }
  // As __cxa_guard_acquire().
  [[nodiscard]] bool acquire() {
    while (!is_complete()) {
      if (try_begin()) return true;
      wait();
    }
    return false;
  }

  // The thread that initialises the variable does so in the order of threads.
  [[nodiscard]] bool is_ordered() const { return is_ordered_.load() != 0; }
  void set_ordered(bool is_ordered) { is_ordered_ = is_ordered ? 1 : 0; }

 private:
  static constexpr std::uint32_t complete = 1;
  static constexpr std::uint32_t begun = 0x100;
  static constexpr std::uint32_t awaited = 0x10000;

  std::atomic<std::uint32_t> state_;
  std::atomic<std::uint32_t> is_ordered_;
};

}  // namespace apenet::ipc
