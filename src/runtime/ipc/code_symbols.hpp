// CodeSymbols: the functions of a file of code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace apenet::ipc {

// Read from the file, of which nothing is mapped: a program may truncate its own. What is not known is empty
// or 0.
class CodeSymbols {
 public:
  explicit CodeSymbols(const std::string& path);

  // The address, as the file gives it, of what is at an offset in the file.
  [[nodiscard]] std::uint64_t linked_address(std::uint64_t offset) const;
  // The function that holds an address, as the file gives it.
  [[nodiscard]] std::string function_of(std::uint64_t linked) const;
  // Whether the file has debug information, or refers to some.
  [[nodiscard]] bool has_lines() const { return has_lines_; }

 private:
  struct Function {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string name;
  };
  struct Load {  // a loaded part of the file
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t address = 0;
  };
  std::vector<Load> loads_;
  std::vector<Function> functions_;  // sorted
  bool has_lines_ = false;
};

// Whether a function of a file is one of an MPI library or of its binding for a language, which may stand
// between the program and the library.
[[nodiscard]] bool is_mpi_function(const std::string& file, const std::string& function);

}  // namespace apenet::ipc
