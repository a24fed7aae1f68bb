// MPI_Probe and MPI_Mprobe at a communicator of one process. MPICH asks its list of such messages again and
// again there, and never makes progress: the simulator would take the rank for one that computes.
#pragma once

#include "runtime/ipc/client.hpp"
#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {

// Whether it is such a communicator, in a library of MPICH's kind.
[[nodiscard]] bool spins_at(Word communicator);

// The calls, for such a communicator. They wait as other calls do.
int probe_own(ipc::Client& client, Word source, Word tag, Word communicator, Word status);
int probe_own(ipc::Client& client, Word source, Word tag, Word communicator, Word message, Word status);

}  // namespace apenet::shim
