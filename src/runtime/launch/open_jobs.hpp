// OpenJobs: runs the jobs of an open model (SharedModel::open()), which join while others run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/launch/run_loop.hpp"
#include "runtime/scheduler/shared_model.hpp"

namespace apenet {

// A job first starts up outside the model, in the host's time, while the others go on. It joins when all
// ranks of the jobs that take part wait: the model stands still then.
class OpenJobs {
 public:
  explicit OpenJobs(SharedModel& model) : model_(model) {}
  OpenJobs(const OpenJobs&) = delete;
  OpenJobs& operator=(const OpenJobs&) = delete;

  // Numbers are the caller's. `start_ps`: virtual time at which the job begins. Without it, the job begins at
  // the earliest time that is possible when it has started up. With it, no job begins before all jobs are
  // ready: so there are no others, and their order here matters to no time.
  void add(std::size_t number, RunLoop& loop, Scheduler& scheduler, std::vector<NodeId> nodes,
           std::optional<std::int64_t> start_ps);
  [[nodiscard]] bool is_empty() const { return jobs_.empty(); }
  // Returns the jobs that have ended. `interrupted`: see RunLoop::turn().
  std::vector<std::size_t> turn(const std::function<bool()>& interrupted);

 private:
  using WallClock = std::chrono::steady_clock;

  struct OpenJob {
    std::size_t number;
    RunLoop* loop;
    Scheduler* scheduler;
    std::vector<NodeId> nodes;
    std::optional<std::int64_t> start_ps;
    bool is_ready = false;
    bool has_joined = false;
    WallClock::time_point next_turn{};  // while it starts up beside others
  };

  [[nodiscard]] bool any_takes_part() const;
  [[nodiscard]] bool all_want_step() const;
  void start_up(OpenJob& job, const std::function<bool()>& interrupted);
  bool join_ready();
  void step(const std::function<bool()>& interrupted);

  SharedModel& model_;
  std::vector<OpenJob> jobs_;
};

}  // namespace apenet
