// What a rank has done by system calls of its own code that the shim could not answer.
#pragma once

#include <atomic>
#include <cstdint>

namespace apenet::ipc {

enum class UncaughtCall : std::uint32_t {
  all,         // the host has no syscall user dispatch, or refuses it
  clocks,      // the kernel's code for clocks in the process (vDSO) cannot be changed
  threads,     // the code has created a thread by clone()
  processes,   // the code has started a process by fork(), vfork() or clone()
  rings,       // the program has asked for a ring of requests (io_uring), which is refused
  dispatch,    // the program uses syscall user dispatch itself, or has tried to
  namespaces,  // the loader does not show which libraries have come by dlmopen()
  count,
};

[[nodiscard]] constexpr std::uint32_t bit_of(UncaughtCall what) {
  return 1U << static_cast<std::uint32_t>(what);
}

// Owner: the process; the simulator reads it at any time.
struct DirectNote {
  std::atomic<std::uint32_t> uncaught{0};  // bits of UncaughtCall
  char object[96] = {};  // file name of the first object with such calls; written before the bits
};

}  // namespace apenet::ipc
