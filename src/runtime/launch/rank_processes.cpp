#include "runtime/launch/rank_processes.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "runtime/launch/host_thread.hpp"
#include "runtime/supervisor/notice.hpp"

namespace apenet {

RankProcesses::RankProcesses(const std::vector<RankProcess>& ranks, int supervisor_fd, Poller& poller,
                             ProcessTree& tree, std::function<void(std::uint32_t rank)> on_end)
    : count_(ranks.size()),
      supervisor_fd_(supervisor_fd),
      processes_(2 * ranks.size()),
      poller_(poller),
      tree_(tree),
      on_end_(std::move(on_end)) {
  for (std::size_t rank = 0; rank < count_; ++rank) watch_started(rank, ranks[rank].process_id);
  poller_.add(supervisor_fd, Poller::Source::supervisor);
}

RankProcesses::~RankProcesses() {
  for (const Process& process : processes_) {
    if (process.pidfd >= 0) close(process.pidfd);
  }
}

// Watches a process that the caller or its supervisor started. The supervisor reports the ends of its own.
void RankProcesses::watch_started(std::size_t index, int process_id) {
  if (process_id == 0) return;
  if (supervisor_fd_ < 0) {
    watch(index, process_id);
  } else {
    processes_[index].id = process_id;
  }
}

void RankProcesses::watch(std::size_t index, int process_id) {
  Process& process = processes_[index];
  process.id = process_id;
  process.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (process.pidfd < 0) reap(process);
  poller_.add(process.pidfd, Poller::Source::child, index);
}

void RankProcesses::reap(Process& process) {
  int status = 0;  // stays 0 for a process that is not our child: only its parent gets the status
  if (waitpid(process.id, &status, WNOHANG) != process.id) status = 0;
  note_end(process, status);
}

void RankProcesses::note_end(Process& process, int wait_status) {
  if (process.has_ended()) return;
  process.end = WIFSIGNALED(wait_status) ? End{RankReport::End::killed, WTERMSIG(wait_status)}
                                         : End{RankReport::End::exited, WEXITSTATUS(wait_status)};
  if (process.pidfd >= 0) close(process.pidfd);
  process.pidfd = -1;
}

void RankProcesses::tell_rank(std::size_t index) {
  on_end_(static_cast<std::uint32_t>(index % count_));
}

void RankProcesses::attach(std::uint32_t rank, int process_id, bool runs) {
  const std::size_t index = count_ + rank;
  if (process_id == 0 || processes_[index].id != 0 || processes_[rank].id == process_id) return;
  if (runs) {
    watch(index, process_id);
  } else {
    processes_[index].id = process_id;
    note_end(processes_[index], 0);
  }
  if (processes_[index].has_ended()) tell_rank(index);
}

void RankProcesses::hear_child(std::size_t index) {
  reap(processes_[index]);
  tell_rank(index);
}

bool RankProcesses::hear_supervisor() {
  const int fd = supervisor_fd_;
  std::vector<std::size_t> ends;
  while (supervisor_fd_ >= 0) {
    supervisor::Notice notice;
    const ssize_t size = recv(supervisor_fd_, &notice, sizeof notice, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size != static_cast<ssize_t>(sizeof notice)) {
      supervisor_fd_ = -1;
      break;
    }
    if (notice.what != supervisor::Notice::What::ended) continue;
    for (std::size_t index = 0; index < processes_.size(); ++index) {
      Process& process = processes_[index];
      if (process.id != notice.process_id || process.has_ended()) continue;
      note_end(process, notice.status);
      ends.push_back(index);
    }
  }
  for (const std::size_t index : ends) tell_rank(index);
  if (supervisor_fd_ >= 0) return true;
  poller_.remove(fd);
  if (is_killed_) return true;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const Process& process = processes_[index];
    if (process.id != 0 && !process.has_ended() && process.pidfd < 0) watch(index, process.id);
  }
  return false;
}

// The groups of processes that have ended, but have left members of their group. The number of any other may
// be another's by now.
std::set<int> RankProcesses::groups_left_behind() const {
  std::set<int> ended;
  for (const Process& process : processes_) {
    if (process.id != 0 && process.has_ended()) ended.insert(process.id);
  }
  // Without a supervisor, nothing shows to which run a process belongs that has lost its parent.
  if (supervisor_fd_ < 0) return ended;
  std::set<int> groups;
  for (const HostProcess& process : ended.empty() ? std::vector<HostProcess>{} : host_processes()) {
    const int group = process.group_id;
    if (ended.contains(group) && !groups.contains(group) && tree_.holds(process.process_id))
      groups.insert(group);
  }
  return groups;
}

// Signals whole groups, so that processes started by the ranks receive it too.
void RankProcesses::signal_to(std::span<const Process> processes, int signal) const {
  const std::set<int> left_behind = groups_left_behind();
  for (const Process& process : processes) {
    if (process.id == 0 || (process.has_ended() && !left_behind.contains(process.id))) continue;
    if (kill(-process.id, signal) != 0 && !process.has_ended()) kill(process.id, signal);
  }
}

void RankProcesses::terminate_ranks() const {
  signal_to(processes_, SIGTERM);
}

// The supervisor closes its channel when no process is left.
void RankProcesses::kill_all() {
  is_killed_ = true;
  if (supervisor_fd_ >= 0) {
    shutdown(supervisor_fd_, SHUT_WR);
  } else {
    signal_to(processes_, SIGKILL);
  }
}

bool RankProcesses::any_alive() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.id != 0 && !process.has_ended(); });
}

bool RankProcesses::all_leaders_ended() const {
  return std::all_of(processes_.begin(), processes_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [](const Process& process) { return process.has_ended(); });
}

// A script may end after its MPI process, or before it if it left the MPI process in the background.
bool RankProcesses::has_ended(std::uint32_t rank, int process_id) const {
  const bool is_leader = process_id == 0 || processes_[rank].id == process_id;
  return processes_[is_leader ? rank : count_ + rank].has_ended();
}

}  // namespace apenet
