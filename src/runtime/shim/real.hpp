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

// The client when virtual time runs for this process, nullptr otherwise: before MPI_Init has returned, and in
// children of a rank, clocks are the host's.
ipc::Client* virtual_client();

}  // namespace apenet::shim
