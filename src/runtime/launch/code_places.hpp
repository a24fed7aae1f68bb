// CodePlaces: names the functions and source lines of code addresses in a process of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ipc/code_symbols.hpp"
#include "runtime/launch/source_lines.hpp"

namespace apenet {

// Serves reports. Reads the files that the process has mapped, but maps none of them, because a program may
// truncate its own. What is not known is an empty string.
class CodePlaces {
 public:
  explicit CodePlaces(int process_id);

  // The addresses behind calls, as they stand on a stack from `from` upwards, at most to its upper end: the
  // innermost call comes first. Remains of calls that have returned may be among them.
  [[nodiscard]] std::vector<std::uint64_t> calls_on_stack(std::uint64_t from, std::size_t bytes) const;
  // The file that holds this code, as the process has mapped it.
  [[nodiscard]] std::string file_of(std::uint64_t address) const;
  // The function that holds this code.
  [[nodiscard]] std::string function_of(std::uint64_t address);
  // Whether the call before the address may lead to another file: it is not one of a function of its own
  // file, by that function's address. What calls the C library is such a call; most remains of earlier calls
  // are not.
  [[nodiscard]] bool may_leave_file(std::uint64_t address);
  // "exchange.c:12", for the address behind a call: where the call is.
  [[nodiscard]] std::string line_of_call(std::uint64_t address, SourceLines& lines);

 private:
  struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // in the file
    std::string file;
  };
  [[nodiscard]] const Mapping* mapping_of(std::uint64_t address) const;
  // The end of the mapping that holds the address.
  [[nodiscard]] std::uint64_t end_of_memory(std::uint64_t address) const;
  [[nodiscard]] bool follows_call(std::uint64_t address) const;
  [[nodiscard]] const ipc::CodeSymbols& symbols_of(const Mapping& mapping);
  // The address as the file gives it; 0 if the file does not tell.
  [[nodiscard]] std::uint64_t linked_address(std::uint64_t address);
  // The file as this process reaches it.
  [[nodiscard]] std::string path_of(const Mapping& mapping) const;

  int process_id_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> memory_;  // begin and end of every mapping, sorted
  std::vector<Mapping> code_;                                    // executable mappings of files, sorted
  std::map<std::string, ipc::CodeSymbols> symbols_;
};

}  // namespace apenet
