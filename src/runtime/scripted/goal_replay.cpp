#include "runtime/scripted/goal_replay.hpp"

#include <utility>

namespace apenet {

JobsReport replay_jobs(const MachineDescription& description, const std::vector<GoalJob>& jobs,
                       const ObservationOptions& observed, ReplayLog* log) {
  RankMachine machine(description, nodes_of(jobs), observed);
  GoalRanks ranks(machine.simulation(), machine.machine(), 0, jobs);
  if (log != nullptr) ranks.log(*log, machine.observation());
  machine.run(ranks.sink(), [&ranks] { ranks.begin(Time::zero()); });
  JobsReport report;
  static_cast<RanksReport&>(report) = machine.report(ranks.totals());
  report.jobs = ranks.reports();
  return report;
}

ReplayReport replay_goal(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                         const GoalSchedule& schedule, const ObservationOptions& observed, ReplayLog* log) {
  JobsReport jobs =
      replay_jobs(description, {{&schedule, std::move(node_of_rank), Time::zero()}}, observed, log);
  JobReport& only = jobs.jobs.front();
  if (!only.deadlock.empty()) throw ReplayDeadlock(only.deadlock);
  ReplayReport report;
  static_cast<RanksReport&>(report) = std::move(jobs);
  report.finish = std::move(only.finish);
  report.operations = only.operations;
  for (std::string& warning : only.warnings) report.warnings.push_back(std::move(warning));
  return report;
}

PacketHops count_packet_hops(const MachineDescription& description, const std::vector<NodeId>& node_of_rank,
                             const GoalSchedule& schedule) {
  const MessageWork work(description);
  PacketHops whole;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const GoalOperation& operation : schedule.ranks[rank].operations) {
      if (operation.kind == GoalOperationKind::send)
        whole += work.of(node_of_rank.at(rank), node_of_rank.at(operation.peer), operation.amount);
    }
  }
  return whole;
}

}  // namespace apenet
