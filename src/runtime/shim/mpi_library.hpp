// Access to the program's MPI library, whichever it is.
//
// Uses no MPI header, because the shim serves every MPI library. It passes on only pointers and integers,
// which all ABIs pass in the same registers and stack slots.
#pragma once

#include <cstdint>

namespace apenet::shim {

using Word = std::intptr_t;

// Returns the library's function under its profiling name (PMPI_...), past any interposed library. Ends the
// process with a message if no loaded MPI library has it.
void* profiling_symbol(const char* name);

template <typename Result = int, typename... Arguments>
Result call(void* function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

}  // namespace apenet::shim
