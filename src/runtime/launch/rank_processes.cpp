#include "runtime/launch/rank_processes.hpp"

#include <poll.h>
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
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {

RankProcesses::RankProcesses(const std::vector<RankProcess>& ranks, int supervisor_fd, Poller& poller,
                             ProcessTree& tree, OnEnd on_end, OnNotice on_notice)
    : count_(ranks.size()),
      supervisor_fd_(supervisor_fd),
      processes_(2 * ranks.size()),
      poller_(poller),
      tree_(tree),
      on_end_(std::move(on_end)),
      on_notice_(std::move(on_notice)) {
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
  if (process.pidfd < 0) reap(index);
  poller_.add(process.pidfd, Poller::Source::child, index);
}

// Only its parent gets the status of a process: this one, the supervisor, which tells it, or another one of
// the run, with which it stays.
void RankProcesses::reap(std::size_t index) {
  Process& process = processes_[index];
  int status = 0;
  if (waitpid(process.id, &status, WNOHANG) != process.id) {
    if (supervisor_fd_ >= 0 && tree_.is_orphan(process.id)) {
      if (process.pidfd >= 0) close(process.pidfd);
      process.pidfd = -1;  // a notice will come
      return;
    }
    // The supervisor has reported it before it was gone.
    if (supervisor_fd_ >= 0) read_notices();
    const auto reaped = reaped_statuses_.find(process.id);
    status = reaped != reaped_statuses_.end() ? reaped->second : 0;
  }
  note_end(index, status);
}

void RankProcesses::note_end(std::size_t index, int wait_status, const std::string& name) {
  Process& process = processes_[index];
  if (process.has_ended()) return;
  process.name = name;
  process.end = WIFSIGNALED(wait_status)
                    ? End{.how = RankReport::End::killed, .status = WTERMSIG(wait_status)}
                    : End{.how = RankReport::End::exited, .status = WEXITSTATUS(wait_status)};
  if (process.pidfd >= 0) close(process.pidfd);
  process.pidfd = -1;
  unreported_.push_back(index);
}

void RankProcesses::report_ends() {
  while (!unreported_.empty()) {
    const std::size_t index = unreported_.front();
    unreported_.pop_front();
    on_end_(static_cast<std::uint32_t>(index % count_));
  }
}

void RankProcesses::attach(std::uint32_t rank, int process_id, bool runs) {
  const std::size_t index = count_ + rank;
  if (process_id == 0 || processes_[index].id != 0 || processes_[rank].id == process_id) return;
  if (runs) {
    reaped_statuses_.erase(process_id);  // left by another process that had this id before
    watch(index, process_id);
  } else {
    processes_[index].id = process_id;
    reap(index);
  }
  report_ends();
}

RankProcesses::End RankProcesses::end_of_rank(std::uint32_t rank) const {
  const End& leader = processes_[rank].end;
  const End& attached = processes_[count_ + rank].end;
  if (processes_[rank].id == 0 || leader.how == RankReport::End::running) return attached;
  const bool has_succeeded = leader.how == RankReport::End::exited && leader.status == 0;
  return has_succeeded && attached.how != RankReport::End::running ? attached : leader;
}

void RankProcesses::end_with_leader(std::uint32_t rank) {
  Process& leader = processes_[rank];
  const int pidfd = processes_[count_ + rank].pidfd;
  if (leader.end.how != RankReport::End::killed || pidfd < 0) return;
  // Not one that has ended already, whose end has not been heard yet.
  pollfd ended{pidfd, POLLIN, 0};
  if (poll(&ended, 1, 0) != 0) return;
  if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) == 0)
    leader.end.wrapper = leader.name.empty() ? "the process" : "'" + leader.name + "'";
}

void RankProcesses::hear_child(std::size_t index) {
  reap(index);
  report_ends();
}

std::optional<std::uint32_t> RankProcesses::leader_of(int process_id) const {
  for (std::size_t rank = 0; rank < count_; ++rank) {
    if (processes_[rank].id == process_id) return static_cast<std::uint32_t>(rank);
  }
  return std::nullopt;
}

// Returns false if the supervisor has ended.
bool RankProcesses::read_notices() {
  for (;;) {
    supervisor::Notice notice;
    const ssize_t size = recv(supervisor_fd_, &notice, sizeof notice, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return true;
    if (size != static_cast<ssize_t>(sizeof notice)) return false;
    if (notice.what != supervisor::Notice::What::ended) continue;
    reaped_statuses_[notice.process_id] = notice.status;
    if (!is_killed_) on_notice_(notice, leader_of(notice.process_id));
    for (std::size_t index = 0; index < processes_.size(); ++index) {
      if (processes_[index].id == notice.process_id)
        note_end(index, notice.status, validation::text(notice.name));
    }
  }
}

bool RankProcesses::hear_supervisor() {
  const bool lives = supervisor_fd_ >= 0 && read_notices();
  report_ends();
  if (lives) return true;
  poller_.remove(supervisor_fd_);
  supervisor_fd_ = -1;
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
  // All are stopped meanwhile: one that waits in the host for what another has, such as a lock, would act
  // once more when that one ends.
  for (const int signal : {SIGSTOP, SIGTERM, SIGCONT}) signal_to(processes_, signal);
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
