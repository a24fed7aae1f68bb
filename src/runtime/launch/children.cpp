#include "runtime/launch/children.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "runtime/warden/notice.hpp"

namespace apenet {

Children::~Children() {
  for (const Child& child : children_) {
    if (child.pidfd >= 0) close(child.pidfd);
  }
}

int Children::watch(std::size_t index, int process_id) {
  if (warden_fd_ < 0) return watch_foreign(index, process_id);
  children_[index].process_id = process_id;
  return -1;
}

int Children::watch_foreign(std::size_t index, int process_id) {
  Child& child = children_[index];
  child.process_id = process_id;
  child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (child.pidfd < 0) reap(index);
  return child.pidfd;
}

int Children::watch_without_warden(std::size_t index) {
  const Child& child = children_[index];
  if (child.process_id == 0 || child.ended || child.pidfd >= 0) return -1;
  return watch_foreign(index, child.process_id);
}

void Children::reap(std::size_t index) {
  Child& child = children_[index];
  int status = 0;  // stays 0 for a process that is not our child: only its parent gets the status
  if (waitpid(child.process_id, &status, WNOHANG) != child.process_id) status = 0;
  note_end(child, status);
}

void Children::note_end(Child& child, int wait_status) {
  if (child.ended) return;
  child.end = WIFSIGNALED(wait_status) ? RankReport::End::killed : RankReport::End::exited;
  child.status = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
  child.ended = true;
  if (child.pidfd >= 0) close(child.pidfd);
  child.pidfd = -1;
}

void Children::tell_end(std::size_t index, int status) {
  note_end(children_[index], status > 128 ? status - 128 : status << 8);
}

std::vector<std::size_t> Children::hear_warden() {
  std::vector<std::size_t> ends;
  while (warden_fd_ >= 0) {
    warden::Notice notice;
    const ssize_t size = recv(warden_fd_, &notice, sizeof notice, MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size != static_cast<ssize_t>(sizeof notice)) {
      warden_fd_ = -1;
      break;
    }
    if (notice.what != warden::Notice::What::ended) continue;
    for (std::size_t index = 0; index < children_.size(); ++index) {
      Child& child = children_[index];
      if (child.process_id != notice.process_id || child.ended) continue;
      note_end(child, notice.status);
      ends.push_back(index);
    }
  }
  return ends;
}

bool Children::ended_all(std::size_t count) const {
  return std::all_of(children_.begin(), children_.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const Child& child) { return child.ended; });
}

std::size_t Children::alive() const {
  return static_cast<std::size_t>(std::count_if(children_.begin(), children_.end(), [](const Child& child) {
    return child.process_id != 0 && !child.ended;
  }));
}

void Children::signal_all(int signal) const {
  for (const Child& child : children_) {
    if (child.process_id == 0) continue;
    // Signal the whole group, so that processes started by the rank receive it too. A group outlives its
    // leader.
    if (kill(-child.process_id, signal) != 0 && !child.ended) kill(child.process_id, signal);
  }
}

void Children::kill_all() {
  is_killed_ = true;
  if (warden_fd_ >= 0) {
    shutdown(warden_fd_, SHUT_WR);
  } else {
    signal_all(SIGKILL);
  }
}

}  // namespace apenet
