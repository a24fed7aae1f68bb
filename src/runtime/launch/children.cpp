#include "runtime/launch/children.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace apenet {

Children::~Children() {
  for (const Child& child : children_) {
    if (child.pidfd >= 0) close(child.pidfd);
  }
}

int Children::watch(std::size_t index, int process_id) {
  Child& child = children_[index];
  child.process_id = process_id;
  child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process_id, 0));
  if (child.pidfd < 0) reap(index);
  return child.pidfd;
}

void Children::reap(std::size_t index) {
  Child& child = children_[index];
  if (child.ended) return;
  int status = 0;
  if (waitpid(child.process_id, &status, WNOHANG) == child.process_id) {
    child.end = WIFSIGNALED(status) ? RankReport::End::killed : RankReport::End::exited;
    child.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  } else {
    child.end = RankReport::End::exited;  // somebody else's child: its parent has the status
  }
  child.ended = true;
  if (child.pidfd >= 0) close(child.pidfd);
  child.pidfd = -1;
}

std::size_t Children::alive() const {
  return static_cast<std::size_t>(std::count_if(children_.begin(), children_.end(), [](const Child& child) {
    return child.process_id != 0 && !child.ended;
  }));
}

void Children::signal_all(int signal) const {
  for (const Child& child : children_) {
    if (child.process_id == 0) continue;
    // The group, so that what a rank has started goes with it; the group outlives its leader.
    if (kill(-child.process_id, signal) != 0 && !child.ended) kill(child.process_id, signal);
  }
}

}  // namespace apenet
