// Parts of ThreadOrder that its sources share.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/thread_order.hpp"

namespace apenet::ipc {

// The thread that acts next makes sure, at such intervals, that the one for which it waits will come.
inline constexpr std::int64_t first_pause_ns = 1'000'000;
inline constexpr std::int64_t most_pause_ns = 20'000'000;
// The same for one that may be of another process.
inline constexpr std::int64_t first_process_pause_ns = 250'000;
inline constexpr std::int64_t most_process_pause_ns = 4'000'000;
// What many actions at one time take.
inline constexpr std::int64_t actions_take_ps = 1'000'000;
// Checks in a row that must find a thread blocked, without CPU time between them.
inline constexpr std::uint32_t checks_until_blocked = 3;
// A thread that runs for so long without an action may spin until another one changes memory. Other threads
// that run for so long while one is blocked do not wake it.
inline constexpr std::int64_t most_cpu_ns = 10'000'000'000;
// A thread that sleeps in the host without a word to the order is waited for so long.
inline constexpr std::int64_t most_limited_ns = 1'000'000'000;
// The CPU time of a thread in a call of a library, where all other threads wait for it.
inline constexpr std::int64_t most_call_cpu_ns = 1'000'000'000;
// Who waits for the lock makes sure, at such intervals, that the process lives that holds it.
inline constexpr timespec lock_pause{.tv_sec = 0, .tv_nsec = 100'000'000};

inline constexpr std::uint64_t mark_word = 0x6f72646572206f66;

// A handler of a signal has left the wait by a jump: what the thread has called since has overwritten the
// mark that the wait keeps on the stack.
inline bool has_jumped(const OrderedThread& own) {
  stack_t stack{};
  const bool is_on_other = sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
  if (!is_on_other && __builtin_frame_address(0) > static_cast<const void*>(own.mark)) return true;
  return std::any_of(own.mark->begin(), own.mark->end(),
                     [](std::uint64_t word) { return word != mark_word; });
}

inline timespec pause_of(std::int64_t ns) {
  return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

// Serialises the threads. What a signal's handler does that comes while its own thread holds the lock belongs
// to the action that it has interrupted. A thread that is about to wait lets none in: a handler may leave a
// wait by a jump. errno stays: many calls that act in the order, as those of locks, do not set it.
class ThreadOrder::Guard {
 public:
  enum class Signals : std::uint8_t { come, wait };
  explicit Guard(ThreadOrder& order, Signals signals = Signals::come)
      : order_(order),
        table_(*order.table_),
        is_nested_(order.holder_.load(std::memory_order_relaxed) == pthread_self()),
        is_before_wait_(signals == Signals::wait && !is_nested_) {
    lock();
  }
  ~Guard() {
    unlock();
    errno = error_;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  [[nodiscard]] bool is_nested() const { return is_nested_; }
  void lock() {
    if (is_nested_) return;
    keeps_signals_ = is_before_wait_ && order_.handled_signals_.load(std::memory_order_relaxed) != 0;
    if (keeps_signals_) {
      host_call(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, reinterpret_cast<std::uint64_t>(&before_),
                as_argument(sizeof before_));
    }
    take();
  }
  void unlock() {
    if (is_nested_ || !is_locked_) return;
    release();
    if (!keeps_signals_) return;
    host_call(SYS_rt_sigprocmask, SIG_SETMASK, &before_, 0, as_argument(sizeof before_));
  }
  // Signals::wait: a handler of a signal will run when the lock is released.
  [[nodiscard]] bool has_signal() const {
    if (!keeps_signals_) return false;
    SignalSet pending = 0;
    host_call(SYS_rt_sigpending, &pending, sizeof pending);
    // The host keeps a blocked signal also if it would be ignored, as SIGCHLD by default.
    for (int signal = 1; pending != 0; pending >>= 1U, ++signal) {
      if ((pending & 1U) != 0 && lets_in(signal)) return true;
    }
    return false;
  }
  // The signal's handler runs when it lets signals in.
  [[nodiscard]] bool lets_in(int signal) const {
    const HostAction handling = action_of(signal);
    const bool is_handled = handling.handler != reinterpret_cast<std::uintptr_t>(SIG_DFL) &&
                            handling.handler != reinterpret_cast<std::uintptr_t>(SIG_IGN);
    SignalSet blocked = blocked_outside();
    if (blocked_in_wait != nullptr) std::memcpy(&blocked, blocked_in_wait, sizeof blocked);
    return is_handled && (blocked & bit_of(signal)) == 0;
  }
  // Whether the host tells the process when a child has been stopped, or goes on.
  [[nodiscard]] bool gets_stop_signals() const {
    const HostAction handling = action_of(SIGCHLD);
    if (handling.handler == reinterpret_cast<std::uintptr_t>(SIG_IGN)) return false;
    const bool is_default = handling.handler == reinterpret_cast<std::uintptr_t>(SIG_DFL);
    return (handling.flags & SA_NOCLDSTOP) == 0 &&
           (!is_default || (blocked_outside() & bit_of(SIGCHLD)) != 0);
  }
  // Signals::wait: whether the thread blocks the signal while it waits. False if the process handles none.
  [[nodiscard]] bool blocks_in_wait(int signal) const {
    SignalSet blocked = keeps_signals_ ? before_ : 0;
    if (blocked_in_wait != nullptr) std::memcpy(&blocked, blocked_in_wait, sizeof blocked);
    return (blocked & bit_of(signal)) != 0;
  }
  // Signals::wait: lets in the signals that the thread does not block, for this time or until a handler has
  // run. Returns whether one has.
  bool let_in(std::int64_t most_ns = 0) {
    const SignalSet blocked = blocked_outside();
    const timespec most = pause_of(most_ns);
    release();
    const bool has_run = host_call(SYS_ppoll, static_cast<void*>(nullptr), 0,
                                   reinterpret_cast<std::uint64_t>(&most), &blocked, sizeof blocked) < 0;
    take();
    return has_run;
  }
  // Likewise. Returns also whether the thread blocks this signal, and it is pending.
  [[nodiscard]] bool has_come(int signal, std::int64_t most_ns) {
    const SignalSet blocked = blocked_outside();
    const auto is_pending = [&] {
      SignalSet pending = 0;
      host_call(SYS_rt_sigpending, &pending, sizeof pending);
      return (pending & blocked & bit_of(signal)) != 0;
    };
    return is_pending() || let_in(most_ns) || is_pending();
  }

 private:
  using SignalSet = std::uint64_t;  // as the host has it
  // The C library interrupts its threads by 32 and 33, and the host by SIGSYS (31) at calls that it passes
  // on.
  static constexpr SignalSet every_signal = ~(SignalSet{7} << 30U);
  static const void* as_argument(std::size_t bytes) {
    return reinterpret_cast<const void*>(bytes);  // NOLINT(performance-no-int-to-ptr)
  }

  struct HostAction {  // the host's sigaction
    std::uintptr_t handler = 0;
    std::uint64_t flags = 0;
    std::uintptr_t restorer = 0;
    SignalSet mask = 0;
  };
  static HostAction action_of(int signal) {
    HostAction action;
    const void* const none = nullptr;
    host_call(SYS_rt_sigaction, signal, none, reinterpret_cast<std::uint64_t>(&action),
              as_argument(sizeof action.mask));
    return action;
  }
  static SignalSet bit_of(int signal) { return SignalSet{1} << static_cast<unsigned>(signal - 1); }
  [[nodiscard]] SignalSet blocked_outside() const {
    SignalSet blocked = before_;
    if (!keeps_signals_) {
      const SignalSet* const unchanged = nullptr;
      host_call(SYS_rt_sigprocmask, SIG_BLOCK, unchanged, reinterpret_cast<std::uint64_t>(&blocked),
                as_argument(sizeof blocked));
    }
    return blocked;
  }

  void take() {
    acquire();
    is_locked_ = true;
    order_.holder_.store(pthread_self(), std::memory_order_relaxed);
  }
  void release() {
    if (order_.late_count_ > 0) order_.wake_late();
    std::atomic<std::uint32_t>* const granted = std::exchange(order_.granted_, nullptr);
    order_.holder_.store(pthread_t{}, std::memory_order_relaxed);
    is_locked_ = false;
    if ((table_.lock.exchange(0) & OrderTable::has_waiters) != 0) futex_wake(table_.lock, 1);
    if (granted != nullptr) futex_wake(*granted);
  }
  void acquire() {
    const std::uint32_t own = order_.own_process();
    std::uint32_t state = 0;
    if (table_.lock.compare_exchange_strong(state, own)) return;
    for (;; state = table_.lock.load()) {
      if (state == 0) {
        if (table_.lock.compare_exchange_strong(state, own | OrderTable::has_waiters)) return;
        continue;
      }
      const std::uint32_t awaited = state | OrderTable::has_waiters;
      if (state != awaited && !table_.lock.compare_exchange_strong(state, awaited)) continue;
      const bool has_come = futex_wait(table_.lock, awaited, &lock_pause) == 0 || errno != ETIMEDOUT;
      const std::uint32_t holder = state & ~OrderTable::has_waiters;
      if (has_come || holder == own || !has_process_ended(holder)) continue;
      state = awaited;
      if (!table_.lock.compare_exchange_strong(state, own | OrderTable::has_waiters)) continue;
      order_.repair();
      return;
    }
  }

  int error_ = errno;
  ThreadOrder& order_;
  OrderTable& table_;
  bool is_nested_;
  bool is_before_wait_;
  bool keeps_signals_ = false;  // at the last lock()
  bool is_locked_ = false;
  SignalSet before_ = 0;
};

}  // namespace apenet::ipc
