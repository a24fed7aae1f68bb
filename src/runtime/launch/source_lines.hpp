// SourceLines: the source lines of code, by a tool of the host.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace apenet {

// Debug information is read by addr2line of binutils or one of its relatives, if the host has one. Ranks run
// the same program, so each address is asked for once.
class SourceLines {
 public:
  // `path`: how the simulator reaches the file. `file`: its name. `address`: as the file gives it, of the
  // call. Returns for example "exchange.c:12"; empty if it is not known, or too much has been asked.
  std::string line_of(const std::string& path, const std::string& file, std::uint64_t address);

 private:
  std::map<std::pair<std::string, std::uint64_t>, std::string> known_;
  bool is_slow_ = false;  // a tool took too long: no further one is started
};

}  // namespace apenet
