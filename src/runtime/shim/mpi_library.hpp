// The MPI library behind the shim, whichever it is.
//
// No MPI header is used: the shim serves every MPI library, and what it passes on are pointers and integers,
// which all ABIs hand over in the same registers and stack slots.
#pragma once

#include <cstdint>

namespace apenet::shim {

using Word = std::intptr_t;

// The profiling name (PMPI_...) of an MPI function: the library's own, whatever stands in front of it. Ends
// the process with a message when no MPI library has it.
void* profiling_symbol(const char* name);

template <typename Result = int, typename... Arguments>
Result call(void* function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

}  // namespace apenet::shim
