// replay_goal: runs a GOAL trace on a simulated machine; replay_jobs: several, at the same time.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "machine/message_work.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/goal_ranks.hpp"
#include "runtime/scripted/rank_machine.hpp"

namespace apenet {

struct ReplayReport : RanksReport {
  std::vector<Time> finish;  // per rank: the end of its last operation
  std::uint64_t operations = 0;
};

// The ranks of the trace wait for each other forever, or leave messages unreceived.
class ReplayDeadlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// See GoalRanks. `log`, if given, is filled. Throws ReplayDeadlock, which lists the waiting ranks, and
// std::invalid_argument like Machine.
[[nodiscard]] ReplayReport replay_goal(const MachineDescription& description,
                                       std::vector<NodeId> node_of_rank, const GoalSchedule& schedule,
                                       const ObservationOptions& observed = {}, ReplayLog* log = nullptr);

// Its ranks are those of all jobs, one job after another.
struct JobsReport : RanksReport {
  std::vector<JobReport> jobs;
};

// Runs several traces on one network. A job that deadlocks ends alone. Throws std::invalid_argument like
// Machine.
[[nodiscard]] JobsReport replay_jobs(const MachineDescription& description, const std::vector<GoalJob>& jobs,
                                     const ObservationOptions& observed = {}, ReplayLog* log = nullptr);

// The work of all messages of the trace. Requires a node for each rank.
[[nodiscard]] PacketHops count_packet_hops(const MachineDescription& description,
                                           const std::vector<NodeId>& node_of_rank,
                                           const GoalSchedule& schedule);

}  // namespace apenet
