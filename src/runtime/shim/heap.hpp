// The state of the heap in which a rank begins virtual time.
#pragma once

#include <cstdint>

namespace apenet::shim {

// What the heap holds when it is settled. Empty if it is left as it is.
struct EarlyMemory {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

// What a rank has allocated and freed before depends on the host: the user's variables in an interpreter's
// heap, the names of folders, the helper threads of Open MPI. It decides where later buffers lie, which cards
// that translate addresses see, and recordings show. Uses up the free memory of the C library's heap, and
// lets the heap continue at a round address; what the program frees of the memory of before is not allocated
// again. Call in the thread that calls MPI. Does nothing for a heap of
// another library or thread.
EarlyMemory settle_heap();

}  // namespace apenet::shim
