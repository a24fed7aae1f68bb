// Session: one or several jobs on a simulated machine, each a real program, from the start of their processes
// to their end; beside them, traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/scripted/goal_ranks.hpp"

namespace apenet {

struct SessionProgress {
  std::int64_t virtual_ps = 0;     // since virtual time began for the first job
  std::uint64_t messages = 0;      // the programs', posted until now
  std::vector<std::int32_t> grid;  // SessionReport::grid of the first job, if it is known already
};

// A job: a program on nodes of its own.
struct SessionJob {
  std::vector<NodeId> node_of_rank;
  SessionOptions options;
};

// What the traces beside the jobs did.
struct TracesReport {
  std::vector<JobReport> traces;
  RankTotals totals;
};

// The processes of a job.
struct StartedJob {
  std::vector<RankProcess> ranks;
  Supervisor supervisor{};
};

class Session {
 public:
  // `traces` run beside the jobs, from the beginning of virtual time on. Throws std::invalid_argument for an
  // invalid description, and std::system_error if the host refuses. ObservationOptions::trace_path is for one
  // job without traces.
  Session(const MachineDescription& description, const std::vector<SessionJob>& jobs,
          const std::vector<GoalJob>& traces = {}, const ObservationOptions& observation = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The value of ipc::mapping_variable for the environment of a job's ranks.
  [[nodiscard]] std::string mapping_path(std::size_t job = 0) const;

  // Runs until all processes and traces have ended; `jobs` and the reports are in the order of the session's.
  // A job that fails ends alone. Calls `interrupted` about fifty times a second; if it returns true, all
  // processes are terminated and their output so far is forwarded. Throws std::invalid_argument for a trace
  // that computes beyond the limit of the clocks.
  std::vector<SessionReport> run(const std::vector<StartedJob>& jobs,
                                 const std::function<bool()>& interrupted);
  // Call after run().
  [[nodiscard]] TracesReport report_on_traces();
  // How far the run is. Call it from within `interrupted`.
  [[nodiscard]] SessionProgress progress() const;

 private:
  struct Job;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace apenet
