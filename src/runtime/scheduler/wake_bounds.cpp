// Bounds of the times at which processes will be woken, while some of them run.
#include <algorithm>

#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Returns the earliest time at which the process acts as far as known; never_ps if only an event that does
// not exist yet can wake it.
std::int64_t Scheduler::known_action_ps(std::uint32_t rank) const {
  const Process& process = processes_[rank];
  switch (process.wait) {
    case ipc::Wait::until:
      return std::max(process.woken_ps, process.deadline_ps);
    case ipc::Wait::for_event:
      return process.acts_ps();
    case ipc::Wait::finished:
      return never_ps;
    case ipc::Wait::running: {
      // The state of a running process is read only when all wait.
      const bool needs_event =
          wait_of(rank) == ipc::Wait::for_event && exchange_.says_empty(rank) && process.overflow.empty();
      const std::int64_t alarm_ps = shared_.block(rank).turn.deadline_ps;
      if (needs_event && alarm_ps > 0) return std::max(process.woken_ps, alarm_ps);
      return needs_event ? never_ps : process.woken_ps;
    }
    case ipc::Wait::computes:
    case ipc::Wait::flush:
    case ipc::Wait::start:
    case ipc::Wait::away:
      break;
  }
  return process.woken_ps;
}

// An earlier value of the process's is below its last wake.
std::int64_t Scheduler::resumed_ps(std::uint32_t rank) const {
  const std::int64_t resumed_ps = shared_.block(rank).turn.resumed_ps.load(std::memory_order_relaxed);
  return std::max(processes_[rank].woken_ps, std::min(resumed_ps, ipc::end_of_time_ps));
}

std::int64_t Scheduler::clock_ps(std::uint32_t rank) const {
  if (!started_) return before_time_ps;
  return std::clamp(shared_.block(rank).clock.shown_ps(), epoch_ps_, ipc::end_of_time_ps);
}

std::optional<std::int64_t> Scheduler::computes_until_ps(std::uint32_t rank) const {
  const ipc::Turn& turn = shared_.block(rank).turn;
  if (!is_out(rank) || turn.run.load() == ipc::Run::may_run || turn.wait != ipc::Wait::computes) return {};
  return std::clamp(turn.deadline_ps, epoch_ps_, ipc::end_of_time_ps);
}

void Scheduler::earliest_wakes(std::vector<std::int64_t>& wakes_ps) const {
  wakes_ps.resize(processes_.size());
  if (!started_) {
    for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
      wakes_ps[rank] = wait_of(rank) == ipc::Wait::start ? 0 : before_time_ps;
    }
    return;
  }
  // No event that does not exist yet can come before this time.
  std::int64_t new_events_ps = simulation_.next_time().ps();
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const Process& process = processes_[rank];
    wakes_ps[rank] = known_action_ps(rank);
    if (process.wait == ipc::Wait::away) continue;  // it returns no earlier than others have acted
    std::int64_t posts_ps = wakes_ps[rank];
    if (process.wait == ipc::Wait::running) posts_ps = process.woken_ps;
    if (process.wait == ipc::Wait::computes) posts_ps = process.deadline_ps;
    if (posts_ps != never_ps) new_events_ps = std::min(new_events_ps, posts_ps + lookahead_ps_);
  }
  // Nothing is in progress: see release_idle().
  if (new_events_ps == never_ps) new_events_ps = simulation_.now().ps();
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const Process& process = processes_[rank];
    if (process.wait == ipc::Wait::finished) {
      wakes_ps[rank] = process.woken_ps;
    } else if (wakes_ps[rank] == never_ps) {
      wakes_ps[rank] = std::max(process.woken_ps, new_events_ps);
    }
    if (shared_.block(rank).clock.held()) wakes_ps[rank] = process.woken_ps;
  }
}

}  // namespace apenet
