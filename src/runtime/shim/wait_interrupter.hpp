// Ends a wait in the host that the signal of a timer was to end, but has come too early for: before the
// thread was in the call. The host would then let it wait for ever.
//
// A moment after the timer's signal the thread gets a second one, of the C library's own number, for which
// its masks have no place. Its handler finds where the thread is. At the system call that waits, or still
// before it, the call ends as if the first signal had come there; a thread that has yet to come there gets
// another one. The handlers of the timer's signal block it, so that it ends no wait of theirs. A process with
// several threads takes the signals of its timers in the first one.
#pragma once

#include <csignal>
#include <cstdint>

namespace apenet::shim {

class WaitInterrupter {
 public:
  // The thread is about to wait, and the host sends the signal after this time. blocked: the signals that the
  // thread blocks while it waits. Requires that all signals are blocked now, in the first thread of the
  // process.
  static void expect(int signal, std::int64_t after_ns, const sigset_t& blocked);
  // Those whose time has not come are no more expected.
  static void forget_later();
  // Likewise all, called by another thread.
  static void forget_in_first_thread();
  // The wait is over.
  static void end();
};

}  // namespace apenet::shim
