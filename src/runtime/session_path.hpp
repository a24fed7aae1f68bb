// prove_path(): whether the messages of a run's ranks crossed the simulated network.
#pragma once

#include <cstdint>

#include "runtime/launch/session_options.hpp"

namespace apenet {

// Fails a run of an MPI program whose messages did not cross the simulated network, because its results would
// be meaningless. For other programs this is only a warning, and if the run has failed anyway, a lost shim
// may be the reason.
// `startup_messages`: those before virtual time began.
void prove_path(SessionReport& report, std::uint64_t startup_messages, bool has_sockets);

}  // namespace apenet
