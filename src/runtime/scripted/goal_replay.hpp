// replay_goal: a GOAL trace on a simulated machine.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/message_passing.hpp"

namespace apenet {

struct ReplayReport {
  std::vector<Time> finish;  // of each rank: its last operation's end
  std::vector<RankActivity> ranks;
  std::uint64_t operations = 0;
  std::uint64_t messages = 0;  // posted to the cards, those of the protocols included
  std::uint64_t bytes = 0;     // of these
  std::uint64_t trace_hash = 0;
  std::vector<LinkUse> links;
  std::optional<NetworkHistory> network;
  std::vector<std::string> warnings;
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
