// CallSites: where in the program its MPI calls are, for a recording.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/ipc/call_instructions.hpp"
#include "runtime/ipc/code_files.hpp"
#include "runtime/ipc/code_symbols.hpp"
#include "runtime/ipc/wait_note.hpp"

namespace apenet::libfabric {

// Numbers the sites from 1. A binding of an MPI library, such as that for Fortran, may stand between the
// program and the call: then the program's address is searched on the stack, where that of an earlier call
// may remain.
class CallSites {
 public:
  struct Site {
    std::uint32_t file = 0;     // index in files()
    std::uint64_t address = 0;  // behind the call, as the file gives it
  };
  // The site of a call that is in progress; 0 if it is not known.
  std::uint16_t of(const ipc::CallNote& note);
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }
  [[nodiscard]] const std::vector<std::string>& files() const { return paths_; }

 private:
  std::uint16_t of_address(std::uint64_t address);
  [[nodiscard]] std::uint64_t program_address(std::uint64_t frame);
  [[nodiscard]] bool is_binding(std::uint64_t address);

  ipc::CodeFiles loaded_;
  std::unordered_map<std::uint64_t, std::uint16_t> known_;  // by the address in memory; 0: in no file
  std::unordered_map<std::uint64_t, bool> is_binding_;      // the same
  std::map<std::string, ipc::CodeSymbols> symbols_;         // by file
  std::vector<Site> sites_;
  std::vector<std::string> paths_;
};

}  // namespace apenet::libfabric
