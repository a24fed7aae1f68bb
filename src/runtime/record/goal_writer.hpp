// write_goal: a recorded run as a trace in the GOAL format.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/record/recording.hpp"

namespace apenet {

// What a trace has, and what it could only approximate.
struct GoalSummary {
  std::uint64_t operations = 0;
  std::uint64_t puts = 0;        // written as a send, and a receive on a second CPU
  std::uint64_t gets = 0;        // written as a request, and an answer by a second CPU
  std::uint64_t unreceived = 0;  // messages that no receive took: written with one that nobody waits for
  std::uint64_t earlier = 0;     // receives of what was sent before virtual time began: left out
  std::uint32_t unclosed = 0;    // ranks that ended without closing their endpoint
};

// Writes `heading` as a comment, then each rank's operations in the order in which it began them. An
// operation requires those that its rank knew to have ended when it began; that it began after the one before
// it is said by irequires, unless it follows. What follows from these is not written. Tags, 64 bits in
// libfabric, are numbered in the order of their first use. Throws std::system_error when the file cannot be
// written, and std::runtime_error for a recording that cannot be.
GoalSummary write_goal(const Recording& recording, const std::string& heading, const std::string& path);

}  // namespace apenet
