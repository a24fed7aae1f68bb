// CodeFiles: the files of code that this process has loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace apenet::ipc {

// A part of a file that is loaded as code.
struct CodeFile {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t loaded_at = 0;  // what is added to the addresses in the file
  std::string path;             // absolute, unless the file is gone; empty for code of no file
};

class CodeFiles {
 public:
  // Asks the loader again if something was loaded or unloaded since the last time. Returns whether it was.
  bool refresh();
  // nullptr if the address is in no code that the loader knows.
  [[nodiscard]] const CodeFile* find(std::uint64_t address) const;

 private:
  std::vector<CodeFile> files_;  // sorted
  std::uint64_t loaded_ = 0;     // by the process, ever
  std::uint64_t unloaded_ = 0;
};

// Whether a file of code is an MPI library, the C library, or something else that only an MPI library uses.
[[nodiscard]] bool is_mpi_library(const std::string& file);

}  // namespace apenet::ipc
