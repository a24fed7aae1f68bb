#include "runtime/scheduler/suspension.hpp"

#include <algorithm>

namespace apenet {

bool Suspension::suspend(const std::vector<std::uint32_t>& ranks,
                         const std::function<bool()>& still_blocked) {
  const auto can_be = [this](std::uint32_t rank) {
    std::uint32_t run = ipc::Run::may_run;
    return memory_.needs_no_help(rank) &&
           shared_.block(rank).grant.run.compare_exchange_strong(run, ipc::Run::suspended);
  };
  const auto first = ranks.begin();
  const auto last = std::find_if_not(first, ranks.end(), can_be);
  // From here on each of these processes waits for a grant before it touches its rings. A process that holds
  // its lock may have begun to wait before.
  const bool may_be = last == ranks.end() && std::all_of(first, last, [this](std::uint32_t rank) {
                        return shared_.block(rank).lock.is_free();
                      });
  if (may_be && still_blocked()) {
    for (const std::uint32_t rank : ranks) ranks_.apply(rank, RankInput::suspend);
    grants_.drop_running(static_cast<std::uint32_t>(ranks.size()));
    count_ += ranks.size();
    return true;
  }
  for (auto rank = first; rank != last; ++rank) {
    std::uint32_t run = ipc::Run::suspended;
    // A process that has come back meanwhile already waits, but did not decrement the count.
    if (!shared_.block(*rank).grant.run.compare_exchange_strong(run, ipc::Run::may_run))
      grants_.drop_running(1);
  }
  return false;
}

void Suspension::note_returns() {
  for (std::uint32_t rank = 0; any() && rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state == RankState::suspended && !ranks_.is_suspended(rank)) grants_.note_changed(rank);
  }
}

// The latest time at which the rank acted, and could have told others about it in the host.
std::int64_t Suspension::acted_ps(std::uint32_t rank) const {
  const Rank& known = ranks_[rank];
  const std::int64_t slept_from_ps = shared_.block(rank).clock.acted_ps.get();
  if (!known.waits_for_time() || slept_from_ps <= known.woken_ps) return known.clock_ps;
  return std::min(slept_from_ps, known.clock_ps);
}

bool Suspension::has_returned(std::uint32_t rank) const {
  return std::find(returned_.begin(), returned_.end(), rank) != returned_.end();
}

std::int64_t Suspension::latest_acted_ps(std::int64_t passed_ps) const {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state != RankState::suspended && !has_returned(rank))
      passed_ps = std::max(passed_ps, acted_ps(rank));
  }
  return passed_ps;
}

// Whatever wakes a suspended process was done by a rank that has acted no later than passed_ps.
void Suspension::place(std::int64_t passed_ps) {
  if (!any() && returned_.empty()) return;
  passed_ps = latest_acted_ps(passed_ps);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const bool returns = has_returned(rank);
    if (ranks_[rank].state != RankState::suspended && !returns) continue;
    Rank& known = ranks_.at(rank);
    known.woken_ps = std::max({known.woken_ps, known.clock_ps, passed_ps});
    if (!returns) continue;
    exchange_.advance_clock(rank, passed_ps);
    known.clock_ps = std::max(known.clock_ps, passed_ps);
    known.deadline_ps = std::max(known.deadline_ps, passed_ps);
  }
  returned_.clear();
}

}  // namespace apenet
