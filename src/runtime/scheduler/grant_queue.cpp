#include "runtime/scheduler/grant_queue.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/ipc/futex.hpp"
#include "runtime/scheduler/lower_bounds.hpp"

namespace apenet {

// Every rank begins with the grant.
GrantQueue::GrantQueue(SharedMemory& shared, const Machine& machine, ProcessId first_process,
                       RankTable& ranks, bool one_at_a_time)
    : shared_(shared),
      machine_(machine),
      first_process_(first_process),
      ranks_(ranks),
      one_at_a_time_(one_at_a_time) {
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) changed_.push_back(rank);
}

bool GrantQueue::all_wait() const {
  return std::none_of(changed_.begin(), changed_.end(),
                      [this](std::uint32_t rank) { return ranks_.has_grant(rank); });
}

void GrantQueue::take_changed(std::vector<std::uint32_t>& ranks) {
  woken_.clear();
  ranks.clear();
  ranks.swap(changed_);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

// Counts the ranks that run at once before any of them is granted: it may run and wait again at once.
void GrantQueue::wake(std::vector<std::uint32_t>& ranks, const std::function<void(std::uint32_t)>& prepare) {
  woken_.clear();
  woken_.swap(ranks);
  choose_queued();
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < woken_.size(); ++i) {
    if (!is_queued_[i] && ranks_[woken_[i]].state != RankState::computing_ended) ++count;
  }
  shared_.running().count.store(count);
  for (std::size_t i = 0; i < woken_.size(); ++i) {
    const std::uint32_t rank = woken_[i];
    prepare(rank);
    ranks_.apply(rank, is_queued_[i] ? RankInput::queue : RankInput::grant);
    const bool has_ended = ranks_[rank].state == RankState::ended;
    shared_.block(rank).grant.wait = has_ended ? ipc::Wait::finished : ipc::Wait::running;
    changed_.push_back(rank);
    if (is_queued_[i]) {
      queue_.push_back(rank);
    } else {
      grant(rank);
    }
  }
}

// Orders the ranks if it matters, and says which of them have to wait for a grant.
void GrantQueue::choose_queued() {
  is_queued_.assign(woken_.size(), false);
  if (!ranks_.started()) return;
  const auto shares = [this](std::uint32_t rank) { return ranks_[rank].shares_memory; };
  const bool any_shares = std::any_of(woken_.begin(), woken_.end(), shares);
  if (!any_shares && !one_at_a_time_) return;
  if (any_shares) {
    std::stable_sort(woken_.begin(), woken_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return LowerBounds::acts_ps(ranks_[a]) < LowerBounds::acts_ps(ranks_[b]);
    });
  }
  std::set<NodeId> nodes;  // on which a rank that shares memory runs
  for (std::size_t i = 0; i < woken_.size(); ++i) {
    const bool node_is_busy =
        any_shares && shares(woken_[i]) && !nodes.insert(machine_.node_of(first_process_ + woken_[i])).second;
    is_queued_[i] = node_is_busy || (one_at_a_time_ && i > 0);
  }
}

bool GrantQueue::grant_next() {
  while (!queue_.empty()) {
    const std::uint32_t rank = queue_.front();
    queue_.pop_front();
    if (ranks_[rank].state != RankState::queued) continue;  // its process has ended
    ranks_.apply(rank, RankInput::grant);
    shared_.running().count.fetch_add(1);
    grant(rank);
    return true;
  }
  return false;
}

void GrantQueue::grant(std::uint32_t rank) {
  std::atomic<std::uint32_t>& run = shared_.block(rank).grant.run;
  run.store(ipc::Run::may_run);
  ipc::futex_wake(run);
}

void GrantQueue::recover() {
  // Do not recover at first sight: a process that has just begun to wait may still decrement the count.
  const bool stuck = all_wait() && shared_.running().count.load() != 0;
  const std::uint64_t activity = ranks_.noted_activity();
  if (stuck && std::exchange(stuck_at_, activity) == activity) shared_.running().count.store(0);
  if (!stuck) stuck_at_.reset();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    std::atomic<std::uint32_t>& run = shared_.block(rank).grant.run;
    if (run.load() == ipc::Run::may_run) ipc::futex_wake(run);
  }
}

}  // namespace apenet
