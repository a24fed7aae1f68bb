// GoalRanks: the ranks of one or several GOAL traces, on consecutive processes of a machine.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/goal.hpp"
#include "runtime/scripted/message_passing.hpp"

namespace apenet {

// A trace with ranks of its own, none of which acts before `start`.
struct GoalJob {
  const GoalSchedule* schedule = nullptr;  // must outlive the replay
  std::vector<NodeId> node_of_rank;
  Time start;
};

// Times count from GoalRanks::begin().
struct JobReport {
  std::vector<Time> finish;  // per rank: the end of its last operation, or the start of the job
  std::uint64_t operations = 0;
  std::string deadlock;  // which ranks wait forever or leave messages unreceived, and for what; else empty
  std::vector<std::string> warnings;
};

// The nodes of the ranks of all jobs, one job after another. Throws std::invalid_argument for a job with
// another number of nodes than its trace has ranks.
[[nodiscard]] std::vector<NodeId> nodes_of(const std::vector<GoalJob>& jobs);

// Runs each operation as soon as its dependencies are met and its CPU is free. Of several such operations,
// the one that is first in the file runs first. A job that deadlocks ends alone.
class GoalRanks final : private RankProgram {
 public:
  // `first`: the process of the first rank; those of the further ranks follow in the order of nodes_of().
  // Throws std::invalid_argument like MessagePassing.
  GoalRanks(Simulation& simulation, Machine& machine, ProcessId first, const std::vector<GoalJob>& jobs);
  GoalRanks(const GoalRanks&) = delete;
  GoalRanks& operator=(const GoalRanks&) = delete;
  ~GoalRanks() = default;

  // Fills `log`, which must outlive the run. Call before it. The ranks must be the machine's only processes.
  void log(ReplayLog& log, Observation& observation);
  // Starts the ranks.
  void begin(Time now);
  // Takes the completions of the ranks' processes.
  [[nodiscard]] CompletionSink& sink() { return messages_; }
  // Call when no message is in progress.
  [[nodiscard]] std::vector<JobReport> reports();
  [[nodiscard]] RankTotals totals() const { return messages_.totals(); }

 private:
  // The operation that is first in the file comes first.
  using Ready = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;
  struct Job {
    const GoalSchedule& schedule;
    ProcessId first_rank;
    Time start;
    std::uint64_t truncated = 0;
  };
  struct Rank {
    const GoalRank& trace;
    std::uint32_t job;
    std::vector<std::uint32_t> waits_for = {};  // per operation: the number of unmet dependencies
    std::vector<bool> is_ended = {};
    std::vector<Time> earliest =
        {};  // per operation; only with several CPUs, because a single clock implies it
    Ready ready = {};
    std::uint32_t left = 0;  // operations that have not ended
    Time finish = Time::zero();
  };

  bool proceed(ProcessId rank) override;
  void ended(ProcessId rank, std::uint32_t operation, Time time, const Envelope& message) override;
  Time start(ProcessId rank, std::uint32_t operation);
  void release(ProcessId rank, std::uint32_t operation, Time time, bool on_start);
  void add_rank(std::uint32_t job, const GoalRank& trace);
  [[nodiscard]] JobReport report_on(const Job& job);
  [[nodiscard]] std::string describe_deadlock(const Job& job);
  [[nodiscard]] std::string describe_waiting(ProcessId rank);

  [[nodiscard]] Memory memory_of(const GoalOperation& operation) const {
    return operation.in_gpu && has_gpu_ ? Memory::gpu : Memory::host;
  }
  [[nodiscard]] std::string nics_warning(const GoalSchedule& schedule) const;

  bool has_gpu_;
  std::vector<std::string> rails_;  // names of the machine's rails
  std::vector<Job> jobs_;
  std::vector<Rank> ranks_;  // those of all jobs
  ReplayLog* log_ = nullptr;
  Time epoch_;
  MessagePassing messages_;
};

}  // namespace apenet
