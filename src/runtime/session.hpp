// Session: one or several jobs on a simulated machine, each a real program, from the start of their processes
// to their end; beside them, traces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

// A machine that jobs join while others run: SharedModel::open().
struct OpenMachine {
  std::uint32_t ranks_per_node = 1;  // most of a job; further jobs may be on the same nodes
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
  // Throws as the other constructor.
  Session(const MachineDescription& description, const OpenMachine& open);
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

  // The next ones are for an open machine.
  //
  // Adds a job and returns its number. It begins at SessionOptions::start_ps if it `starts_then`, in this
  // case with all others; else when its processes have started up. Throws as the constructor.
  std::size_t add(const SessionJob& job, bool starts_then);
  void start(std::size_t job, const StartedJob& started);
  // Runs until jobs have ended, and returns them: at once if there are none. Calls `interrupted` as run().
  // Calls `is_to_return` about fifty times a second; if it returns true, returns no jobs.
  std::vector<std::size_t> serve(const std::function<bool()>& interrupted,
                                 const std::function<bool()>& is_to_return);
  // See RunLoop::cancel().
  void cancel(std::size_t job);
  // Call once when the job has ended.
  SessionReport report(std::size_t job);
  // Frees what a job has of the host that has ended, or has not been started. Of the calls for this job, only
  // began_ps() may follow.
  void forget(std::size_t job);
  // When its virtual time began; nothing if that has not begun.
  [[nodiscard]] std::optional<std::int64_t> began_ps(std::size_t job) const;
  // RunLoop::limit_ps()
  [[nodiscard]] std::int64_t limit_ps(std::size_t job) const;

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
