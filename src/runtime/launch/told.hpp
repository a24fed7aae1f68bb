// Told: what the wrappers of ranks report, when an external launcher starts the ranks and keeps their status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace apenet {

// Reads a pipe on which each wrapper writes two lines: "started RANK PID" with its own process id, and "ended
// RANK STATUS" with the exit status in shell form.
class Told {
 public:
  struct Line {
    bool is_end;
    std::uint32_t rank;
    int value;  // process id, or exit status
  };
  // fd: the read end, or -1 for none. The caller keeps ownership.
  Told(int fd, std::uint32_t rank_count);

  [[nodiscard]] int fd() const { return fd_; }
  // Returns lines that have arrived: at most as many as a few kilobytes hold, so that a program that writes
  // without end keeps nobody waiting. Ignores all other lines, because the program can write to this pipe
  // too.
  std::vector<Line> read();

 private:
  [[nodiscard]] std::optional<Line> parse(const std::string& text) const;

  int fd_;
  std::uint32_t rank_count_;
  std::string unfinished_;
};

}  // namespace apenet
