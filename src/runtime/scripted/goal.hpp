// GoalSchedule: a trace in the GOAL format, as a graph of operations for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

struct GoalOperation {
  enum class Kind : std::uint8_t { send, receive, calc };
  std::int64_t amount = 0;    // send, receive: bytes; calc: nanoseconds
  std::uint64_t address = 0;  // of the buffer, as far as the file says it
  std::uint32_t peer = 0;     // any_rank for a receive from anybody
  std::uint32_t tag = 0;      // any_tag for a receive of any
  std::uint32_t line = 0;     // of the file
  std::uint16_t cpu = 0;
  Kind kind = Kind::calc;
};

// The operations of one rank in the order of the file, and who waits for whom: those that operation i lets go
// on are successors[first_successor[i]] to successors[first_successor[i + 1]], each an operation, with
// `on_start` set when it waits for the start (irequires) and not for the end (requires). Flat, because traces
// have millions of operations.
struct GoalRank {
  static constexpr std::uint32_t on_start = std::uint32_t{1} << 31;
  std::vector<GoalOperation> operations;
  std::vector<std::uint32_t> first_successor;
  std::vector<std::uint32_t> successors;
  std::uint16_t cpus = 1;
};

struct GoalSchedule {
  std::string file;  // as errors name it
  std::vector<GoalRank> ranks;
  std::uint64_t receives_at_no_address = 0;
  bool uses_nics = false;  // an operation names a network interface other than the first

  [[nodiscard]] std::uint64_t operation_count() const;
};

// Reads the text form of GOAL (docs/reference/goal.md). Throws std::invalid_argument that names file, line,
// what is there and what was expected.
[[nodiscard]] GoalSchedule parse_goal(std::string_view text, const std::string& file);
// The same from a file, of which only the part that is being read is in memory. Errors call it by `name`.
[[nodiscard]] GoalSchedule read_goal(const std::string& path, const std::string& name);

// The operation as a line of GOAL, for reports.
[[nodiscard]] std::string to_text(const GoalOperation& operation);

}  // namespace apenet
