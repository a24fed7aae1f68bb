// RunLoop: runs the processes of a job from virtual time's beginning to their end.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/launch/core_rotation.hpp"
#include "runtime/launch/cores.hpp"
#include "runtime/launch/drain.hpp"
#include "runtime/launch/host_deadlock.hpp"
#include "runtime/launch/idle_watch.hpp"
#include "runtime/launch/poll_watch.hpp"
#include "runtime/launch/rank_server.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/launch/stalled_ranks.hpp"
#include "runtime/launch/start_watch.hpp"
#include "runtime/launch/stopped_watch.hpp"
#include "runtime/launch/stray_watch.hpp"
#include "runtime/launch/verdict.hpp"
#include "runtime/scheduler/scheduler.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Single-threaded, in turns (run_jobs()). A turn finds that the scheduler has to be stepped, or otherwise
// serves what the processes need from the host. Wall time decides when to check, never a value that a process
// gets.
class RunLoop {
 public:
  RunLoop(SharedMemory& shared, SharedModel& model, Scheduler& scheduler, ProcessIds& process_ids,
          ProcessMemory& memory, const SessionOptions& options, const std::vector<RankProcess>& ranks,
          int supervisor_fd, const ManagerSocket& manager);

  // The job goes on: some rank is left, and nothing has ended the job.
  [[nodiscard]] bool is_live() const;
  // others_go_on: the loop is not to wait for processes whose ranks have all left the simulation.
  void turn(bool others_go_on, const std::function<bool()>& interrupted);
  // What the last turn has found: all ranks wait, and a step is due; or they have left the simulation, and
  // their processes have not ended.
  [[nodiscard]] bool wants_step() const { return wants_step_; }
  [[nodiscard]] bool all_finished() const { return all_finished_; }
  // The last step was outside an open model, and the job can join. note_join(): it has.
  [[nodiscard]] bool is_ready() const { return is_ready_; }
  void note_join();
  // Ends the job soon: at the virtual time that its ranks have reached, so that a limit of this time ends it
  // likewise in another run. Returns at once. If the ranks do not wait for each other meanwhile, they are
  // ended in the middle of what they do.
  void cancel();
  // The virtual time at which the job was or will be ended; 0: at its own end.
  [[nodiscard]] std::int64_t limit_ps() const { return options_.limit_virtual_ps; }
  // Serves the processes of a job that wants a step, while others do not.
  void serve_meanwhile(const std::function<bool()>& interrupted);
  // Before and after the step of the model. After the first, the job may want no step any more.
  void begin_step();
  void end_step(const std::function<bool()>& interrupted);
  // Ends the processes and leaves the model. Call when the job does not go on.
  void end();
  // Sets outcome, exit status, message and the ranks' ends in the report. Call after end().
  void report_on(SessionReport& report);

 private:
  using WallClock = std::chrono::steady_clock;

  template <typename Work>
  void guarded(Work work);
  [[nodiscard]] bool awaits_last_step() const;
  void note_outcome();
  void limit_if_cancelled();
  [[nodiscard]] bool is_at_limit();
  void wait_for_processes(bool others_go_on);
  void let_another_run();
  void on_idle();
  void on_host_deadlock();
  [[nodiscard]] std::string describe_waiting();
  void drain(VirtualInstant first_failure, bool others_go_on);
  void wait_for_last_output();
  void continue_supervisor();
  void check_periodically(const std::function<bool()>& interrupted);

  SharedMemory& shared_;
  SharedModel& model_;
  Scheduler& scheduler_;
  SchedulerView view_;
  ProcessIds& process_ids_;
  ProcessMemory& memory_;
  SessionOptions options_;
  std::uint32_t count_;
  Verdict verdict_;
  RankServer server_;
  Drain drain_;
  IdleWatch idle_;
  PollWatch polls_;
  StartWatch start_;
  StoppedWatch stopped_;
  StrayWatch strays_;
  SourceLines lines_;
  StalledRanks stalled_;
  HostDeadlock host_deadlock_;
  Cores cores_;
  std::optional<CoreRotation> rotation_;  // while computation is recorded
  std::uint32_t sleeping_checks_ = 0;     // in a row, at a process that sleeps in the host
  bool wants_step_ = false;
  bool was_started_ = false;  // before the step
  bool all_finished_ = false;
  bool is_ready_ = false;
  std::optional<WallClock::time_point> cancelled_until_;  // then the ranks are ended, wherever they are
  bool is_drained_ = false;
  bool is_blocked_for_ever_ = false;  // in the host
  bool has_told_of_supervisor_ = false;
  WallClock::time_point next_check_{};
};

}  // namespace apenet
