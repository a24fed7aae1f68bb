// Access to the program's MPI library, whichever it is.
//
// Uses no MPI header, because the shim serves every MPI library. It passes on only pointers and integers,
// which all ABIs pass in the same registers and stack slots.
#pragma once

#include <cstdint>

namespace apenet::shim {

using Word = std::intptr_t;

// Returns the library's function under its profiling name (PMPI_...), past any interposed library; of a stub
// the function itself. Ends the process with a message if no loaded MPI library has it.
void* profiling_symbol(const char* name);
// As above; nullptr if none has it.
void* find_profiling_symbol(const char* name);

// Whether the program's MPI library is a stub for one process: the shim stands before it, but it has no
// profiling names, and no MPI library that has them is loaded. Its functions are to be called as they are.
bool is_stub();

// The binary interfaces of MPI libraries, which differ in handles and constants. MPICH serves two of them.
enum class Abi : std::uint8_t { mpich, standard, openmpi };

// The ABI of the loaded library.
Abi abi();

// The file of the loaded library; empty if unknown.
const char* library_file();

// Returns the address of a predefined object of Open MPI, or 0 in another library.
std::uint64_t openmpi_object(const char* name);

template <typename Result = int, typename... Arguments>
Result call(void* function, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

}  // namespace apenet::shim
