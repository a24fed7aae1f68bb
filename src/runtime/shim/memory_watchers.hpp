// Code that watches the memory of the process (libfabric, UCX, a function of Open MPI): Open MPI, or these
// libraries, let the C library's allocator call it. Which thread allocates or releases memory first is the
// host's choice, and the allocator holds its own locks meanwhile. So the locks that this code takes are no
// actions of the order of threads.
#pragma once

#include "runtime/shim/ordered_threads.hpp"

namespace apenet::shim {

// Finds what is loaded. Call before several threads act in order.
void find_memory_watchers();

// Whether the address is in such code.
[[nodiscard]] bool is_in_memory_watcher(const void* code);

// ordered_thread(), but nullptr if such code calls.
[[nodiscard]] inline ipc::OrderedThread* ordered_caller(const void* caller) {
  ipc::OrderedThread* const own = ordered_thread();
  return own == nullptr || is_in_memory_watcher(caller) ? nullptr : own;
}

}  // namespace apenet::shim
