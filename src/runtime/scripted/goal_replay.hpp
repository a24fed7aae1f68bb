// replay_goal: a GOAL trace on a simulated machine.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/message_passing.hpp"

namespace apenet {

struct ReplayReport : RanksReport {
  std::vector<Time> finish;  // of each rank: its last operation's end
  std::uint64_t operations = 0;
};

// A trace whose ranks wait for each other for ever, or leave messages behind.
class ReplayDeadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Runs every operation as soon as what it requires has started or ended and its CPU is free; of several, that
// first which comes first in the file. Throws ReplayDeadlock that says who waits for what, and
// std::invalid_argument as Machine does.
[[nodiscard]] ReplayReport replay_goal(const MachineDescription& description,
                                       std::vector<NodeId> node_of_rank, const GoalSchedule& schedule,
                                       const ObservationOptions& observed = {});

}  // namespace apenet
