// The code of the C library, in which the kernel tells its calls from the program's (direct_calls.hpp).
#pragma once

#include <cstdint>

namespace apenet::shim {

// The code of the C library, whose calls are not caught, and an instruction `syscall` there that returns.
struct CLibraryCode {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t call = 0;
  std::uint64_t restorer = 0;  // returns from a handler

  [[nodiscard]] bool holds(std::uint64_t address) const { return address - begin < bytes; }
};

// By one of the library's functions that is only a system call. Without bytes: not found.
[[nodiscard]] CLibraryCode find_library_code();

}  // namespace apenet::shim
