// Reports what ranks leave behind when they finalise MPI, against its rules: windows, and messages that
// nobody received.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/scheduler/rank_snapshot.hpp"

namespace apenet {

// Messages that nobody has received, by the rank that they reached.
class UnreceivedMessages {
 public:
  struct Found {
    std::uint32_t count = 0;
    std::uint32_t source = 0;  // sender of the first one
    std::uint64_t tag = 0;     // as libfabric has it
  };
  void add(std::uint32_t rank, const Found& found) {
    Found& here = found_.try_emplace(rank, Found{0, found.source, found.tag}).first->second;
    here.count += found.count;
  }
  [[nodiscard]] const std::map<std::uint32_t, Found>& found() const { return found_; }

 private:
  std::map<std::uint32_t, Found> found_;
};

// "exchange.c:12", the source line of a call: the address behind it, as the file gives it. Empty if it is not
// known.
using LineOfCode = std::function<std::string(const std::string& file, std::uint64_t address)>;

// Returns lines for the report about the ranks that have called MPI_Finalize. `untaken`: the messages that
// their processes have not taken.
[[nodiscard]] std::vector<std::string> left_behind(const std::vector<RankSnapshot>& ranks,
                                                   const UnreceivedMessages& untaken,
                                                   const LineOfCode& line_of);

}  // namespace apenet
