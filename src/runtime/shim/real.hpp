// What the shim stands in front of, and the client behind it.
#pragma once

#include "runtime/ipc/client.hpp"

#define APENET_EXPORT extern "C" __attribute__((visibility("default")))

namespace apenet::shim {

// The function of this name that the program would have called without us, from the C library.
void* next_symbol(const char* name);

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(next_symbol(name));
}

// Whether a program passed nothing to a function that is declared never to get it: the compiler takes such
// pointers for valid, unless it does not know whose they are.
inline bool is_null(const void* pointer) {
  __asm__("" : "+r"(pointer));
  return pointer == nullptr;
}

// The client when virtual time runs for this process, nullptr otherwise: before MPI_Init has returned, and in
// children of a rank, clocks are the host's.
ipc::Client* virtual_client();

}  // namespace apenet::shim
