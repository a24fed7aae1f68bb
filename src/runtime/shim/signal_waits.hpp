// Sleeps of a thread that waits for signals.
#pragma once

#include <csignal>
#include <cstdint>

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// Sleeps to the end of the first timer, or for this time, with all signals blocked, and lets in those that
// are not in `blocked`. Returns whether a handler has run.
bool sleep_to_timer(ipc::Client& client, std::int64_t most_ps, const sigset_t& blocked);

}  // namespace apenet::shim
