// Told: what the wrappers of ranks tell, where a launcher of its own starts them and keeps their status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace apenet {

// A pipe on which each wrapper writes two lines: "started RANK PID", PID its own, and "ended RANK STATUS",
// the exit status as a shell has it.
class Told {
 public:
  struct Line {
    bool is_end;
    std::uint32_t rank;
    int value;  // process id, or status
  };
  // fd: the read end, which stays the caller's; -1 for none.
  Told(int fd, std::uint32_t rank_count);

  [[nodiscard]] int fd() const { return fd_; }
  // The lines that have come. Others than the two above are ignored: a program can write here, too.
  std::vector<Line> read();

 private:
  [[nodiscard]] std::optional<Line> parse(const std::string& text) const;

  int fd_;
  std::uint32_t rank_count_;
  std::string unfinished_;
};

}  // namespace apenet
