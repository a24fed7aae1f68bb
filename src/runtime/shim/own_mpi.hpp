#pragma once

#include <string_view>

namespace apenet::shim {

// Whether this program brings an MPI of its own instead of using a library that the simulator knows: a stub
// of MPI for one process, or an MPI library that is linked into it. Call before the program begins.
[[nodiscard]] bool has_own_mpi();
// Whether a function of this name initialises MPI, also in Fortran.
[[nodiscard]] bool is_init_of_mpi(std::string_view name);

}  // namespace apenet::shim
