// The functions of MPI 4 that count in MPI_Count (MPI_Send_c), in a program whose library lacks them, as Open
// MPI 5.0 does.
//
// mpi4py refers to them weakly and calls them if the process has them. The shim has them, whatever the
// library. So it calls the function of the same name without _c, with the counts as ints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "runtime/shim/mpi_library.hpp"

namespace apenet::shim {

// Which arguments of a function are counts. Bits, the first argument is bit 0.
struct CountArguments {
  std::uint32_t single = 0;  // a count
  std::uint32_t arrays = 0;  // one for each rank of the communicator
  int communicator = -1;
  int root = -1;         // arrays have a meaning in this rank only
  bool is_kept = false;  // the library reads arrays until the operation has ended
};

// What a function of the shim calls.
struct Original {
  void* function = nullptr;
  bool takes_ints = false;
  CountArguments counts{};  // if takes_ints
};

// The library's function `large` (PMPI_Send_c), or else `plain` (PMPI_Send). Ends the process with a message
// if there is neither, or if this file does not know the arguments of `plain`.
Original large_function(const char* large, const char* plain);

// Makes counts ints. Ends the process with a message if one does not fit. Returns the arrays that the
// arguments then name, unless the library may read them after the call.
std::vector<std::vector<int>> narrow(const CountArguments& counts, Word* arguments);

template <typename... Arguments>
int call_original(const Original& original, Arguments... arguments) {
  if (!original.takes_ints) return call(original.function, arguments...);
  std::array<Word, sizeof...(Arguments)> words{arguments...};
  const std::vector<std::vector<int>> arrays = narrow(original.counts, words.data());
  return std::apply([&](auto... each) { return call(original.function, each...); }, words);
}

}  // namespace apenet::shim
