// RunLoop: runs the processes of a simulation from virtual time's beginning to their end.
#pragma once

#include <chrono>
#include <functional>
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

// Single-threaded: steps the scheduler when no process runs, and otherwise serves what the processes need
// from the host. Wall time decides when to check, never a value that a process gets.
class RunLoop {
 public:
  RunLoop(SharedMemory& shared, Scheduler& scheduler, ProcessIds& process_ids, ProcessMemory& memory,
          const SessionOptions& options, const std::vector<RankProcess>& ranks, int supervisor_fd,
          const ManagerSocket& manager);

  // Returns when no process is left. Sets outcome, exit status, message and the ranks' ends in the report.
  void run(SessionReport& report, const std::function<bool()>& interrupted);

 private:
  using WallClock = std::chrono::steady_clock;

  template <typename Work>
  void guarded(Work work);
  void live(const std::function<bool()>& interrupted);
  void step();
  [[nodiscard]] bool is_at_limit();
  void wait_for_processes();
  void let_another_run();
  void on_idle();
  void on_host_deadlock();
  [[nodiscard]] std::string describe_waiting();
  void drain(VirtualInstant first_failure);
  void wait_for_last_output();
  void continue_supervisor();
  void check_periodically(const std::function<bool()>& interrupted);
  void report_on(SessionReport& report);

  SharedMemory& shared_;
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
  bool all_finished_ = false;
  bool is_drained_ = false;
  bool is_blocked_for_ever_ = false;  // in the host
  bool has_told_of_supervisor_ = false;
  WallClock::time_point next_check_{};
};

}  // namespace apenet
