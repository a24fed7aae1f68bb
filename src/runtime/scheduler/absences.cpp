// Leaves out processes while they sleep in the host.
//
// The simulator cannot know what such a process waits for. If another rank supplies it, but only once that
// rank gets its turn, all would wait forever. Therefore real time decides that a process is asleep
// (launch/sleep_watch.hpp), and the others continue without it.
#include <algorithm>

#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

std::vector<std::uint32_t> Scheduler::held_up_by() const {
  std::vector<std::uint32_t> running;
  bool anybody_waits = false;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].left_out) continue;
    if (has_turn(rank)) {
      running.push_back(rank);
    } else {
      anybody_waits = anybody_waits || wait_of(rank) != ipc::Wait::finished;
    }
  }
  if (!started_ || !anybody_waits) running.clear();
  return running;
}

bool Scheduler::leave_out(const std::vector<std::uint32_t>& ranks,
                          const std::function<bool()>& still_asleep) {
  const auto can_be = [this](std::uint32_t rank) {
    std::uint32_t run = ipc::Run::may_run;
    return memory_.needs_no_help(rank) &&
           shared_.block(rank).turn.run.compare_exchange_strong(run, ipc::Run::left_out);
  };
  const auto first = ranks.begin();
  const auto last = std::find_if_not(first, ranks.end(), can_be);
  // From here on each of these processes asks for its turn before it touches its rings. A process that holds
  // its lock may have asked before.
  const bool may_be = last == ranks.end() && std::all_of(first, last, [this](std::uint32_t rank) {
                        return shared_.block(rank).lock.is_free();
                      });
  if (may_be && still_asleep()) {
    for (const std::uint32_t rank : ranks) processes_[rank].left_out = true;
    shared_.running().count.fetch_sub(static_cast<std::uint32_t>(ranks.size()));
    return true;
  }
  for (auto rank = first; rank != last; ++rank) {
    std::uint32_t run = ipc::Run::left_out;
    // A process that has come back meanwhile already waits, but did not decrement the count.
    if (!shared_.block(*rank).turn.run.compare_exchange_strong(run, ipc::Run::may_run))
      shared_.running().count.fetch_sub(1);
  }
  return false;
}

bool Scheduler::could_go_on() const {
  const std::size_t pending = simulation_.pending_count();
  if (pending > 0 && !machine_.is_quiet_until_faults(pending)) return true;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const ipc::Wait wait = wait_of(rank);
    const bool has_alarm = wait == ipc::Wait::for_event && shared_.block(rank).turn.deadline_ps != 0;
    if (has_alarm || wait == ipc::Wait::until || wait == ipc::Wait::flush || computes_until_ps(rank))
      return true;
    if (wait != ipc::Wait::finished && exchange_.has_requests(rank)) return true;
  }
  return false;
}

std::vector<std::uint32_t> Scheduler::left_out() const {
  std::vector<std::uint32_t> ranks;
  for (const std::uint32_t rank : absent_) {
    if (shared_.block(rank).turn.run.load() == ipc::Run::left_out) ranks.push_back(rank);
  }
  return ranks;
}

void Scheduler::notice_returns() {
  for (const std::uint32_t rank : absent_) {
    if (shared_.block(rank).turn.run.load() != ipc::Run::left_out) ran_.push_back(rank);
  }
}

intake::State Scheduler::state_of(std::uint32_t rank) {
  Process& process = processes_[rank];
  if (process.removed && !computes_until_ps(rank)) return exchange_.last_state(rank);
  if (!process.left_out) return exchange_.read_state(rank);
  if (shared_.block(rank).turn.run.load() != ipc::Run::left_out) {
    process.left_out = false;
    if (std::find(absent_.begin(), absent_.end(), rank) == absent_.end()) absent_.push_back(rank);
    return exchange_.read_state(rank);
  }
  absent_.push_back(rank);
  return exchange_.absent_state(rank);
}

// Returns the latest time at which the process acted, and could have told others about it in the host.
std::int64_t Scheduler::acted_ps(std::uint32_t rank) const {
  const Process& process = processes_[rank];
  const std::int64_t slept_from_ps = shared_.block(rank).clock.acted_ps.get();
  if (process.wait != ipc::Wait::until || slept_from_ps <= process.woken_ps) return process.clock_ps;
  return std::min(slept_from_ps, process.clock_ps);
}

// Whatever wakes an absent process was done by a process that has acted no later than passed_ps.
void Scheduler::place_absent() {
  if (absent_.empty()) return;
  std::int64_t passed_ps = simulation_.now().ps() - lookahead_ps_;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (std::find(absent_.begin(), absent_.end(), rank) == absent_.end())
      passed_ps = std::max(passed_ps, acted_ps(rank));
  }
  for (const std::uint32_t rank : absent_) {
    Process& process = processes_[rank];
    process.woken_ps = std::max({process.woken_ps, process.clock_ps, passed_ps});
    if (process.left_out) continue;
    exchange_.advance_clock(rank, passed_ps);
    process.clock_ps = std::max(process.clock_ps, passed_ps);
    process.deadline_ps = std::max(process.deadline_ps, passed_ps);
  }
  std::erase_if(absent_, [this](std::uint32_t rank) { return !processes_[rank].left_out; });
}

}  // namespace apenet
