// Sleeps of a thread that waits for signals.
#pragma once

#include <csignal>
#include <cstdint>

#include "runtime/ipc/client.hpp"

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

}  // namespace apenet::shim
