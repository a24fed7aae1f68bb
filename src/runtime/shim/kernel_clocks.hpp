// The kernel's own code for clocks in each process (vDSO), which a program can call past the C library.
#pragma once

#include <cstdint>

namespace apenet::shim {

// Makes each of its functions the system call of the same job, which is caught as a direct call. Returns
// false if the host does not let its code be changed.
bool divert_kernel_clocks();
// Whether such a call has just been made, which would return to this place. Safe in a signal handler.
[[nodiscard]] bool is_kernel_clock(std::uint64_t place);

}  // namespace apenet::shim
