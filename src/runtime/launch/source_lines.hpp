// SourceLines: the source lines of code, by a tool of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace apenet {

// Debug information is read by addr2line of binutils or one of its relatives, if the host has one. Ranks run
// the same program, so each address is asked for once.
class SourceLines {
 public:
  // `path`: how the simulator reaches the file. `file`: its name. `address`: as the file gives it, of the
  // call. Returns for example "exchange.c:12"; empty if it is not known, or too much has been asked.
  std::string line_of(const std::string& path, const std::string& file, std::uint64_t address);
  // The same for addresses behind calls in a file that ranks have named, after they have ended. Many cost
  // little more than one.
  std::vector<std::string> lines_of_calls(const std::string& file, const std::vector<std::uint64_t>& behind);

 private:
  void learn(const std::string& path, const std::string& file, std::vector<std::uint64_t> addresses);

  std::map<std::pair<std::string, std::uint64_t>, std::string> known_;
  std::size_t asked_ = 0;  // one by one
  bool is_slow_ = false;   // a tool took too long: no further one is started
};

}  // namespace apenet
