// write_goal: writes a recorded run as a trace in the GOAL format.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/recording/recording.hpp"

namespace apenet {

// The approximations of a trace.
struct GoalSummary {
  std::uint64_t puts = 0;  // written as a send, and a receive on a second CPU
  std::uint64_t gets = 0;  // written as a request, and an answer by a second CPU
  // Messages without a receive: written with a receive that no operation requires.
  std::uint64_t unreceived = 0;
  std::uint32_t unclosed = 0;  // ranks that ended without closing their endpoint
  // Libraries of the machines' own whose messages are not in the trace.
  std::vector<std::string> unrecorded;
};

// "exchange.c:12" for each address behind a call in a file of code, empty where it is not known.
using LinesOfCalls = std::function<std::vector<std::string>(const std::string& file,
                                                            const std::vector<std::uint64_t>& behind)>;

// Writes `heading` as a comment, then each rank's operations in the order in which they began. An operation
// requires those that its rank knew to have ended when it began. Unless this already orders it after its
// predecessor, it also has an irequires for that. Implied dependencies are not written. Tags, which have 64
// bits in libfabric, are numbered in the order of first use. Throws std::system_error if the file cannot be
// written, and std::runtime_error for an invalid recording.
GoalSummary write_goal(const Recording& recording, const std::string& heading, const std::string& path,
                       const LinesOfCalls& lines_of_calls);

}  // namespace apenet
