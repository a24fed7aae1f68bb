// The state of the heap in which a rank begins virtual time.
#pragma once

namespace apenet::shim {

// What a rank has allocated and freed before depends on the host: the user's variables in an interpreter's
// heap, the names of folders, the helper threads of Open MPI. It decides where later buffers lie, which cards
// that translate addresses see, and recordings show. Uses up the free memory of the C library's heap, and
// lets the heap continue at a round address. Call in the thread that calls MPI. Does nothing for a heap of
// another library or thread.
void settle_heap();

}  // namespace apenet::shim
