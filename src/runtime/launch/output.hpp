// Output: forwards what the ranks print in the order of virtual time.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/scheduler/spill_file.hpp"

namespace apenet {

// Orders lines by the virtual time at which their rank was last woken (-1 before virtual time begins), then
// by rank.
struct OutputKey {
  std::int64_t time_ps;
  std::uint32_t rank;
  auto operator<=>(const OutputKey&) const = default;
};

// Text of one key, in pieces: in memory, or in the spill file.
class HeldText {
 public:
  struct Piece {
    std::string text;         // empty for spilled text
    std::uint64_t place = 0;  // in the spill file
    std::uint64_t bytes = 0;
  };
  std::vector<Piece> pieces;
};

// Holds complete lines until no line with a smaller key can follow. The output order therefore depends on the
// keys only, not on when the pipes are read. Lines of one rank keep their order. The last line of a rank
// needs no newline. At most most_unfinished_bytes of a line without an end are held: each such part counts as
// a line. Lines beyond most_held_bytes are held in a file. If both streams go to one file, a rank's standard
// output at one time precedes its standard error.
class Output {
 public:
  // pipes: read ends of every rank's standard output and error, -1 for none; takes ownership. sinks: the
  // descriptors to which the output is forwarded. is_tagged: prefixes each line with its rank, as in "[3] ".
  static constexpr std::size_t most_unfinished_bytes = std::size_t{1} << 20;
  static constexpr std::size_t most_held_bytes = std::size_t{64} << 20;  // all ranks together
  // A call of read() takes no more: a pipe holds a tenth of it, and its writer may go on for ever.
  static constexpr std::size_t most_read_bytes = std::size_t{16} << 20;

  Output(std::vector<std::array<int, 2>> pipes, std::array<int, 2> sinks, bool is_tagged = false);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Reads one pipe until it is empty, or has given most_read_bytes. time_ps: when the rank was last woken.
  // Closes the pipe at end of file.
  void read(std::uint32_t rank, int stream, std::int64_t time_ps);
  [[nodiscard]] bool holds_lines() const { return !lines_.empty(); }
  // Forwards all lines with keys up to and including `earliest`. No line with a smaller key may follow; lines
  // with this key may.
  void pass(OutputKey earliest);
  // Call when the rank has ended: reads the rest of its pipes.
  void end(std::uint32_t rank, std::int64_t time_ps);
  [[nodiscard]] bool ended(std::uint32_t rank) const { return ranks_[rank].ended; }
  [[nodiscard]] bool is_open(std::uint32_t rank) const {
    return ranks_[rank].pipes[0] >= 0 || ranks_[rank].pipes[1] >= 0;
  }
  // Why a process of the rank has refused to go on (ipc::refusal_mark), which is not forwarded; empty if none
  // has.
  [[nodiscard]] const std::string& refusal(std::uint32_t rank) const { return ranks_[rank].refusal; }
  // Forwards all remaining lines.
  void pass_all();
  // The errno of a failed write to a sink: EPIPE if the reader has closed it; 0 if all writes succeeded.
  [[nodiscard]] int sink_error() const { return sink_error_; }

 private:
  using Streams = std::array<std::string, 2>;
  struct Rank {
    std::array<int, 2> pipes{-1, -1};
    Streams unfinished;  // text after the last newline
    std::string refusal;
    bool ended = false;
  };
  using HeldStreams = std::array<HeldText, 2>;
  void take(std::uint32_t rank, int stream, std::int64_t time_ps, std::size_t size);
  // Takes the lines out that begin with the mark. kept: the end of the mark, if it belongs to the reason.
  static void take_refusals(Rank& rank, std::string& lines, std::string_view mark, std::string_view kept);
  void hold(HeldText& held, std::string text);
  void write(int stream, HeldText& held);
  void write(int stream, std::string_view text);

  std::vector<Rank> ranks_;
  std::array<int, 2> sinks_;
  bool in_one_file_;
  bool is_tagged_;
  std::map<OutputKey, HeldStreams> lines_;
  std::size_t held_bytes_ = 0;  // in memory
  SpillFile spilled_;
  int sink_error_ = 0;
};

}  // namespace apenet
