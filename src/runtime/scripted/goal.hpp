// GoalSchedule: a trace in the GOAL format, as a graph of operations for each rank.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace apenet {

enum class GoalOperationKind : std::uint8_t { send, receive, calc };

struct GoalOperation {
  std::int64_t amount = 0;    // send, receive: bytes; calc: nanoseconds
  std::uint64_t address = 0;  // the buffer's; 0 if the file does not state it
  std::uint32_t peer = 0;     // any_rank: a receive from any rank
  std::uint32_t tag = 0;      // any_tag: a receive with any tag
  std::uint32_t line = 0;     // line of the file
  std::uint16_t cpu = 0;
  std::uint16_t begun_in = 0;  // index in GoalSchedule::calls
  std::uint16_t ended_in = 0;
  std::uint32_t begun_number = 0;  // among the rank's calls of this function, from 1; 0: not known
  std::uint32_t ended_number = 0;
  GoalOperationKind kind = GoalOperationKind::calc;
  bool in_gpu = false;  // the buffer is in the memory of the node's GPU
};

// The operations of one rank in the order of the file, and their dependencies. The successors of operation i
// are successors[first_successor[i]] up to successors[first_successor[i + 1]]. Each is the index of an
// operation, with the bit on_start set if it waits for the start of i (irequires) and not for its end
// (requires). The arrays are flat because traces have millions of operations.
struct GoalRank {
  static constexpr std::uint32_t on_start = std::uint32_t{1} << 31;
  std::vector<GoalOperation> operations;
  std::vector<std::uint32_t> first_successor;
  std::vector<std::uint32_t> successors;
  std::uint16_t cpus = 1;
};

struct GoalSchedule {
  std::string file;  // its name in errors
  std::vector<GoalRank> ranks;
  std::uint64_t receives_at_no_address = 0;
  std::uint64_t buffers_in_gpu = 0;
  std::set<std::uint16_t> nics;  // the network interfaces that operations name
  // The MPI calls that operations name, "MPI_Send" or "MPI_Send@exchange.c:12"; the first: none.
  std::vector<std::string> calls{""};

  [[nodiscard]] std::uint64_t operation_count() const;
};

// Reads the text form of GOAL (docs/reference/goal.md). Throws std::invalid_argument, which names file, line,
// the text found and what was expected.
[[nodiscard]] GoalSchedule parse_goal(std::string_view text, const std::string& file);
// Reads a file, and keeps only the part being read in memory. `name`: of the file in errors.
[[nodiscard]] GoalSchedule read_goal(const std::string& path, const std::string& name);

// The operation as a line of GOAL, for reports.
[[nodiscard]] std::string to_text(const GoalOperation& operation);

}  // namespace apenet
