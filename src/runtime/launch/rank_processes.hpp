// RankProcesses: the processes of a run, to which ranks they belong, how they end and how they are killed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/launch/poller.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/scheduler/process_tree.hpp"
#include "runtime/supervisor/notice.hpp"

namespace apenet {

// A rank has its leader, the process started for it, and its MPI process. They differ if the leader is a
// script.
//
// Detects process ends independently of the pipes: by pidfd for the caller's own children, by notices of the
// supervisor for the processes it started. For processes started by others (a rank's script) only the end is
// detected; their exit status goes to their parent.
class RankProcesses {
 public:
  // How a process has ended: its exit status, or the signal that killed it.
  struct End {
    RankReport::End how = RankReport::End::running;
    int status = 0;
    // Set if the rank's MPI process was killed because its leader, of this name, had been killed.
    std::string wrapper{};
  };

  using OnEnd = std::function<void(std::uint32_t rank)>;
  using OnNotice =
      std::function<void(const supervisor::Notice& notice, std::optional<std::uint32_t> leader_of)>;

  // on_end: called with the rank whenever one of its processes has ended. on_notice: called first for each
  // process that the supervisor has waited for, with the rank that it was started for. supervisor_fd: the
  // channel to the supervisor that started all processes, or -1 for none; the caller keeps ownership. Signals
  // no processes that are not of the tree.
  RankProcesses(const std::vector<RankProcess>& ranks, int supervisor_fd, Poller& poller, ProcessTree& tree,
                OnEnd on_end, OnNotice on_notice);
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Watches the rank's MPI process, once it is known, or notes that it has ended if it does not run any more.
  void attach(std::uint32_t rank, int process_id, bool runs);
  // Serves Poller::Source::child.
  void hear_child(std::size_t index);
  // Serves Poller::Source::supervisor. Returns false if the supervisor has ended before the run was killed.
  bool hear_supervisor();
  // Kills the rank's MPI process if a signal has ended its leader before it: for the user, that ended the
  // rank. A leader that exits first leaves its program running on purpose, as a daemon does.
  void end_with_leader(std::uint32_t rank);
  // Sends SIGTERM to every process group of the ranks.
  void terminate_ranks() const;
  // Kills all remaining processes of the run, also those that ranks have left running.
  void kill_all();

  [[nodiscard]] bool any_alive() const;
  // No process of the run is left, as far as the supervisor knows.
  [[nodiscard]] bool all_gone() const { return !any_alive() && supervisor_fd_ < 0; }
  [[nodiscard]] bool all_leaders_ended() const;
  // A supervisor has started them, so that orphans of the ranks are known.
  [[nodiscard]] bool has_supervisor() const { return supervisor_fd_ >= 0; }
  // How the rank has ended: a program that its leader has left behind, without an error of its own, counts.
  [[nodiscard]] End end_of_rank(std::uint32_t rank) const;
  // The rank has no leader that runs.
  [[nodiscard]] bool is_leaderless(std::uint32_t rank) const {
    return processes_[rank].id == 0 || processes_[rank].has_ended();
  }
  // The MPI process is a child of another process, which gets its status.
  [[nodiscard]] bool is_behind_leader(std::uint32_t rank) const { return processes_[count_ + rank].id != 0; }
  // `process_id`: of the rank's MPI process, or 0 if it has none.
  [[nodiscard]] bool has_ended(std::uint32_t rank, int process_id) const;
  [[nodiscard]] const End& end_of_leader(std::uint32_t rank) const { return processes_[rank].end; }
  // 0 if unknown.
  [[nodiscard]] int leader_id(std::uint32_t rank) const { return processes_[rank].id; }

 private:
  struct Process {
    int id = 0;
    int pidfd = -1;
    End end;
    std::string name{};  // name of its last program, once it has ended and the supervisor has reported it
    [[nodiscard]] bool has_ended() const { return end.how != RankReport::End::running; }
  };
  void watch_started(std::size_t index, int process_id);
  void watch(std::size_t index, int process_id);
  void reap(std::size_t index);
  void note_end(std::size_t index, int wait_status, const std::string& name = {});
  [[nodiscard]] std::set<int> groups_left_behind() const;
  void signal_to(std::span<const Process> processes, int signal) const;
  // The rank for which it was started.
  [[nodiscard]] std::optional<std::uint32_t> leader_of(int process_id) const;
  bool read_notices();
  void report_ends();

  std::size_t count_;
  int supervisor_fd_;
  bool is_killed_ = false;
  // [0, n): the leaders; [n, 2n): the MPI processes that are not leaders.
  std::vector<Process> processes_;
  std::deque<std::size_t> unreported_;  // have ended, but on_end_ has not been called yet
  std::map<int, int> reaped_statuses_;  // statuses of all that the supervisor has reaped, by process id
  Poller& poller_;
  ProcessTree& tree_;
  OnEnd on_end_;
  OnNotice on_notice_;
};

}  // namespace apenet
