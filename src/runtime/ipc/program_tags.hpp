// The tags that MPI libraries give libfabric: MPICH and Open MPI put the program's tag into the lowest 31
// bits, mark their own messages (of collectives) with the next bit, and put the communicator above it.
#pragma once

#include <cstdint>

namespace apenet::ipc {

[[nodiscard]] constexpr std::uint32_t program_tag(std::uint64_t tag) {
  return static_cast<std::uint32_t>(tag & 0x7fffffff);
}

[[nodiscard]] constexpr bool is_of_program(std::uint64_t tag) {
  return (tag >> 31 & 1) == 0;
}

// MPI_COMM_WORLD has the number 0. The bits that say how a message is sent are above the number in MPICH, and
// below it in Open MPI.
[[nodiscard]] constexpr bool is_in_world(std::uint64_t tag, bool is_mpich) {
  return (is_mpich ? tag >> 31 & 0xfffff : tag >> 34) == 0;
}

// Whether a receive of this tag waits for the acknowledgement of a synchronous message (MPI_Issend).
[[nodiscard]] constexpr bool is_acknowledgement(std::uint64_t tag, bool is_mpich) {
  return (tag >> (is_mpich ? 51 : 33) & 1) != 0;
}

}  // namespace apenet::ipc
