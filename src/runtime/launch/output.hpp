// Output: what the ranks print, passed on in the order of virtual time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace apenet {

// When a line was written: the virtual time at which its rank was last woken (-1 before virtual time), and by
// whom.
struct OutputKey {
  std::int64_t time_ps;
  std::uint32_t rank;
  auto operator<=>(const OutputKey&) const = default;
};

// Holds whole lines until no line with a smaller key can come, so the order of what is passed on is that of
// the keys, whenever the pipes are read. Lines of one rank keep their order. The last line of a rank needs no
// end. Where both streams go to one file, what a rank writes at one time comes as standard output, then
// standard error.
class Output {
 public:
  // Read ends of every rank's standard output and error, -1 for none; takes ownership. sinks: where they go.
  // is_tagged: each line begins with its rank: "[3] ".
  Output(std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks, bool is_tagged = false);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Empties one pipe into memory. time_ps: when the rank was last woken. The pipe is closed when its other
  // end is.
  void read(std::uint32_t rank, int stream, std::int64_t time_ps);
  [[nodiscard]] bool holds_lines() const { return !lines_.empty(); }
  // Passes on all lines up to and with this key: none with a smaller one comes any more, while more with this
  // one may.
  void pass(OutputKey earliest);
  // The rank has ended: reads what is left.
  void end(std::uint32_t rank, std::int64_t time_ps);
  [[nodiscard]] bool ended(std::uint32_t rank) const { return ranks_[rank].ended; }
  // All that is left.
  void pass_all();
  // Why our own output could not be written: EPIPE when its reader has gone; 0 when it could.
  [[nodiscard]] int sink_error() const { return sink_error_; }

 private:
  using Streams = std::array<std::string, 2>;
  struct Rank {
    std::array<int, 2> pipes{-1, -1};
    Streams unfinished;  // the line that has no end yet
    bool ended = false;
  };
  void take(std::uint32_t rank, int stream, std::int64_t time_ps, std::size_t size);
  void write(int stream, std::string& text);

  std::vector<Rank> ranks_;
  std::array<int, 2> sinks_;
  bool in_one_file_;
  bool is_tagged_;
  std::map<OutputKey, Streams> lines_;
  int sink_error_ = 0;
};

}  // namespace apenet
