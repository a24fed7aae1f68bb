// Parts of ThreadOrder that its sources share.
#pragma once

#include <pthread.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/thread_order.hpp"

namespace apenet::ipc {

// The thread that acts next makes sure, at such intervals, that the one for which it waits will come.
inline constexpr std::int64_t first_pause_ns = 1'000'000;
inline constexpr std::int64_t most_pause_ns = 20'000'000;

inline timespec pause_of(std::int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

// Serialises the threads. What a signal's handler does that comes while its own thread holds the lock belongs
// to the action that it has interrupted. A thread that is about to wait lets none in: a handler may leave a
// wait by a jump.
class ThreadOrder::Guard {
 public:
  enum class Signals : std::uint8_t { come, wait };
  explicit Guard(ThreadOrder& order, Signals signals = Signals::come)
      : order_(order),
        is_nested_(order.holder_.load(std::memory_order_relaxed) == pthread_self()),
        keeps_signals_(signals == Signals::wait && !is_nested_) {
    lock();
  }
  ~Guard() { unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  [[nodiscard]] bool is_nested() const { return is_nested_; }
  void lock() {
    if (is_nested_) return;
    if (keeps_signals_) {
      host_call(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, reinterpret_cast<std::uint64_t>(&before_),
                as_argument(sizeof before_));
    }
    std::uint32_t state = 0;
    if (!order_.lock_.compare_exchange_strong(state, 1)) {
      if (state != 2) state = order_.lock_.exchange(2);
      while (state != 0) {
        futex_wait(order_.lock_, 2, nullptr);
        state = order_.lock_.exchange(2);
      }
    }
    order_.holder_.store(pthread_self(), std::memory_order_relaxed);
  }
  void unlock() {
    if (is_nested_) return;
    if (order_.late_count_ > 0) order_.wake_late();
    order_.holder_.store(pthread_t{}, std::memory_order_relaxed);
    if (order_.lock_.exchange(0) == 2) futex_wake(order_.lock_);
    if (!keeps_signals_) return;
    host_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, 0, as_argument(sizeof before_));
  }
  // Signals::wait: a handler of a signal will run when the lock is released.
  [[nodiscard]] bool has_signal() const {
    SignalSet pending = 0;
    host_call(SYS_rt_sigpending, &pending, sizeof pending);
    return (pending & ~before_) != 0;
  }
  [[nodiscard]] bool lets_in(int signal) const {
    return (before_ >> static_cast<unsigned>(signal - 1) & 1U) == 0;
  }

 private:
  using SignalSet = std::uint64_t;  // as the host has it
  // The C library interrupts its threads by 32 and 33.
  static constexpr SignalSet every_signal = ~(SignalSet{3} << 31U);
  static const void* as_argument(std::size_t bytes) {
    return reinterpret_cast<const void*>(bytes);  // NOLINT(performance-no-int-to-ptr)
  }

  ThreadOrder& order_;
  bool is_nested_;
  bool keeps_signals_;
  SignalSet before_ = 0;
};

}  // namespace apenet::ipc
