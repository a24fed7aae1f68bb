// Libraries that watch the memory of the process (libfabric, UCX): Open MPI, or they themselves, let the C
// library's allocator call them. Which thread allocates first is the host's choice, and the allocator holds
// its own locks meanwhile. So the locks that these libraries take are no actions of the order of threads.
#pragma once

#include "runtime/shim/ordered_threads.hpp"

namespace apenet::shim {

// Finds those that are loaded. Call before several threads act in order.
void find_memory_watchers();

// Whether the address is in the code of one.
[[nodiscard]] bool is_in_memory_watcher(const void* code);

// ordered_thread(), but nullptr if such a library calls.
[[nodiscard]] inline ipc::OrderedThread* ordered_caller(const void* caller) {
  ipc::OrderedThread* const own = ordered_thread();
  return own == nullptr || is_in_memory_watcher(caller) ? nullptr : own;
}

}  // namespace apenet::shim
