// RankServer: serves what the processes of a run need from the host: process manager, output, their ends.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/failure_watch.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/image_watch.hpp"
#include "runtime/launch/manager_socket.hpp"
#include "runtime/launch/output_pump.hpp"
#include "runtime/launch/pmi_server.hpp"
#include "runtime/launch/poller.hpp"
#include "runtime/launch/rank_processes.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/launch/verdict.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/scheduler.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Acts only when it is called. Removes the ranks that end from the scheduler, notes how they fail, and stops
// the run (Verdict) if the supervisor ends or the output cannot be written.
class RankServer {
 public:
  RankServer(SharedMemory& shared, Scheduler& scheduler, ProcessIds& process_ids, Verdict& verdict,
             const SessionOptions& options, const std::vector<RankProcess>& ranks, int supervisor_fd,
             const ManagerSocket& manager);

  // Waits at most timeout_ms for something to serve. Returns true if more may be pending.
  bool serve(int timeout_ms);
  // Forwards the output that no later output can precede.
  void pass_output() { output_.pass(); }
  // Notices what no descriptor reports: new MPI processes, failures, a closed output.
  void watch_attached();
  void notice_failures();
  void notice_lost_output();
  // Ends the processes: terminate() by SIGTERM, with time to react; kill_all() by SIGKILL, also those that
  // ranks have left running.
  void terminate();
  void kill_all();
  // Call before kill_all() at the end of a run that nothing has disturbed.
  void find_vanished();
  // Forwards the rest of the output.
  void finish_output() { output_.finish(count_); }
  // Sets the ranks' ends in the report.
  void report(SessionReport& report) const;

  [[nodiscard]] FailureWatch& failure_watch() { return failure_watch_; }
  [[nodiscard]] const Failures& failures() const { return failure_watch_.failures(); }
  [[nodiscard]] const RankProcesses& processes() const { return processes_; }
  // A rank is not over while a process that its leader has left behind may still call MPI_Init.
  [[nodiscard]] bool any_alive() const { return processes_.any_alive() || !left_to_children_.empty(); }
  // Call when nothing can happen any more. Refuses a rank whose MPI library the others do not have; returns
  // whether there is one.
  bool refuse_two_libraries();
  // Waits no longer for processes that their leaders have left behind without the ranks' output. Returns
  // whether there were any.
  bool abandon_daemons();
  // The process of each rank that takes part in the simulation.
  [[nodiscard]] ProcessIds& process_ids() const { return process_ids_; }
  // The rank and the process started for it have ended.
  [[nodiscard]] bool ended(std::uint32_t rank) const { return output_.ended(rank); }
  // The rank waits for others, by the process manager.
  [[nodiscard]] bool waits_for_others(std::uint32_t rank) const { return pmi_.waits_for_others(rank); }
  // Open MPI keeps the rank in MPI_Init until all have come through it, and one has ended without that or may
  // not.
  [[nodiscard]] bool is_kept_in_init(std::uint32_t rank) const;
  // What HostWaits needs to know of the ranks. Valid as long as this object and the scheduler.
  [[nodiscard]] HostWaits::Queries wait_queries() const;
  // The rank has spoken with the process manager.
  [[nodiscard]] bool spoke(std::uint32_t rank) const { return pmi_.spoke(rank); }
  // The process that serves the ranks of another MPI library; 0 for none.
  [[nodiscard]] int launcher_id() const;
  // The rank's process group.
  [[nodiscard]] int group_of(std::uint32_t rank) const;

 private:
  using WallClock = std::chrono::steady_clock;

  // Returns whether a process can still ask.
  bool serve_pmi(std::uint32_t rank);
  void on_end(std::uint32_t rank);
  void accept_connections();
  int watch_attached(std::uint32_t rank);
  [[nodiscard]] bool is_left_to_a_child(std::uint32_t rank);
  [[nodiscard]] bool has_orphan(std::uint32_t rank) const;
  std::string find_launcher(std::uint32_t rank, const std::string& library);

  SharedMemory& shared_;
  Scheduler& scheduler_;
  ProcessIds& process_ids_;
  Verdict& verdict_;
  std::uint32_t count_;
  std::chrono::milliseconds patience_;
  std::function<LateLauncher(const std::string& library)> start_launcher_;
  std::optional<LateLauncher> late_launcher_;
  Poller poller_;
  const ManagerSocket& manager_;
  PmiServer pmi_;
  OutputPump output_;
  FailureWatch failure_watch_;
  ImageWatch images_;
  RankProcesses processes_;
  std::map<std::uint32_t, WallClock::time_point> left_to_children_;  // since when; see is_left_to_a_child()
};

}  // namespace apenet
