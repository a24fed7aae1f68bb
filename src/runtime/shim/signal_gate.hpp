// SignalGate: keeps signals out while the shim does what their handlers must not interrupt.
#pragma once

#include <csignal>
#include <cstdint>

namespace apenet::shim {

// Blocks all signals of the calling thread, except those that the C library keeps to itself.
class SignalGate {
 public:
  // lets_in: of the signals that come meanwhile, those that the thread will let in or take; nullptr: those
  // that it does not block otherwise.
  explicit SignalGate(const sigset_t* lets_in = nullptr);
  ~SignalGate();
  SignalGate(const SignalGate&) = delete;
  SignalGate& operator=(const SignalGate&) = delete;

  // The signals that the thread blocks otherwise.
  [[nodiscard]] const sigset_t& outside() const { return before_; }
  // Lets in those that have come, or come within this time, and are not in `blocked`, until one has run a
  // handler in this thread. Returns whether one has. It may not return: a handler may jump.
  static bool let_in(const sigset_t& blocked, std::int64_t most_ns = 0);
  // Likewise, but waits for one.
  static void await(const sigset_t& blocked);
  // The first thread is behind such a gate, and lets the signal in later. The host does not know, and would
  // give it to another thread.
  static bool is_for_first_thread(int signal);

 private:
  sigset_t before_{};
  bool is_outermost_ = false;  // outermost for the first of several threads
};

}  // namespace apenet::shim
