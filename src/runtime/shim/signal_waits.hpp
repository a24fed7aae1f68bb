// Sleeps of a thread that waits for signals.
#pragma once

#include <csignal>
#include <cstdint>

#include "runtime/ipc/client.hpp"
#include "runtime/ipc/thread_order.hpp"

namespace apenet::shim {

// Sleeps to the end of the first timer, or for this time, with all signals blocked, and lets in those that
// are not in `blocked`. Returns whether a handler has run.
bool sleep_to_timer(ipc::Client& client, std::int64_t most_ps, const sigset_t& blocked);

// All signals but these.
[[nodiscard]] sigset_t opposite(const sigset_t& set);

// Whether the program has a handler of this signal after which a call that waits does not go on.
[[nodiscard]] bool has_interrupting_handler(int signal);
// Likewise of any signal that programs usually handle: the order does not tell which one has come.
[[nodiscard]] bool has_interrupting_handler();

// How a wait in the order has ended that handlers of signals may end.
enum class SignalWait : std::uint8_t {
  woken,    // by another thread
  goes_on,  // not at all: a timer is over, or a handler with SA_RESTART
  timed_out,
  interrupted,  // by a handler
  of_host,      // what ends it is the host's matter
};
// Within an action: waits so at an object of the order. Timers of the process are due meanwhile. restarts:
// handlers with SA_RESTART do not end it. blocked: the signals that are blocked meanwhile; nullptr: as
// otherwise.
SignalWait await_signal(ipc::OrderedThread& own, const void* object, std::int64_t deadline_ps,
                        ipc::HostReadiness* readiness, bool restarts, const sigset_t* blocked = nullptr);

}  // namespace apenet::shim
