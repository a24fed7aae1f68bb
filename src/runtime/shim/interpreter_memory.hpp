// The memory of a Python interpreter in which a rank begins virtual time.
#pragma once

#include "runtime/ipc/client.hpp"

namespace apenet::shim {

// The interpreter takes small objects from pools of its own, in which a block lies where an earlier one has
// been freed: before virtual time, as the user's variables and folders have it. On a machine whose cards
// translate addresses it takes them from new pages from now on. Call before settle_heap(), in the thread that
// calls MPI. Returns whether there is an interpreter on such a machine.
bool settle_interpreter(const ipc::Client& client);

}  // namespace apenet::shim
