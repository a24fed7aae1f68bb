#include "runtime/scheduler/lower_bounds.hpp"

namespace apenet {

void LowerBounds::add_to_model_bound() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::int64_t rank_acts_ps = acts_ps(rank);
    if (rank_acts_ps != never_ps) model_.lower_bound(rank_acts_ps + lookahead_ps_);
  }
}

void LowerBounds::find_horizons() {
  begin_horizons();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) note_action(rank, acts_ps(rank));
}

void LowerBounds::find_horizons_of_released(const std::vector<std::uint32_t>& released) {
  begin_horizons();
  for (const std::uint32_t rank : released) note_action(rank, exchange_.clock_ps(rank));
}

void LowerBounds::begin_horizons() {
  first_ps_ = second_ps_ = never_ps;
  first_rank_ = 0;
  next_event_ps_ = is_outside_ ? never_ps : simulation_.next_time().ps();
}

void LowerBounds::note_action(std::uint32_t rank, std::int64_t rank_acts_ps) {
  if (rank_acts_ps < first_ps_) {
    second_ps_ = first_ps_;
    first_ps_ = rank_acts_ps;
    first_rank_ = rank;
  } else {
    second_ps_ = std::min(second_ps_, rank_acts_ps);
  }
}

std::int64_t LowerBounds::granted_horizon_ps(std::uint32_t rank, std::int64_t horizon_ps,
                                             bool any_is_suspended) const {
  const Rank& known = ranks_[rank];
  // The process does not know of events in the overflow.
  if (!known.overflow.empty()) horizon_ps = std::min(horizon_ps, known.overflow.front().event.time_ps);
  // The lookahead is what a rank gets beyond a rank that fails when its failure is not yet known.
  if (ranks_.started() && end_ps_ != never_ps) horizon_ps = std::min(horizon_ps, end_ps_ + lookahead_ps_);
  // A suspended rank may come back at any time, and is granted when the others wait.
  if (any_is_suspended) horizon_ps = std::min(horizon_ps, known.woken_ps + lookahead_ps_);
  return horizon_ps;
}

// The earliest time at which the rank acts as far as known; never_ps if only an event that does not exist yet
// can wake it.
std::int64_t LowerBounds::known_action_ps(std::uint32_t rank) const {
  const Rank& known = ranks_[rank];
  switch (known.state) {
    case RankState::awaiting_time:
    case RankState::polling:
      return std::max(known.woken_ps, known.deadline_ps);
    case RankState::awaiting_event:
      return acts_ps(known);
    case RankState::finished:
      return never_ps;
    case RankState::running: {
      // The report of a running rank is read and checked only when all wait.
      const bool needs_event = ranks_.state_now(rank) == RankState::awaiting_event &&
                               exchange_.says_empty(rank) && known.overflow.empty();
      const std::int64_t alarm_ps = shared_.block(rank).grant.deadline_ps;
      if (needs_event && alarm_ps > 0) return std::max(known.woken_ps, alarm_ps);
      return needs_event ? never_ps : known.woken_ps;
    }
    case RankState::queued:
    case RankState::computing:
    case RankState::computing_ended:
    case RankState::flushing:
    case RankState::starting:
    case RankState::suspended:
    case RankState::ended:
      break;
  }
  return known.woken_ps;
}

void LowerBounds::earliest_wakes(std::vector<std::int64_t>& wakes_ps) const {
  wakes_ps.resize(ranks_.size());
  if (!ranks_.started()) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
      wakes_ps[rank] = ranks_.state_now(rank) == RankState::starting ? 0 : before_time_ps;
    return;
  }
  // No event that does not exist yet can come before this time.
  std::int64_t new_events_ps = simulation_.next_time().ps();
  bool any_acts = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& known = ranks_[rank];
    wakes_ps[rank] = known_action_ps(rank);
    if (known.state == RankState::suspended) continue;  // it returns no earlier than others have acted
    std::int64_t posts_ps = wakes_ps[rank];
    if (known.state == RankState::running) posts_ps = known.woken_ps;
    if (known.computes()) posts_ps = known.deadline_ps;
    if (posts_ps == never_ps) continue;
    any_acts = true;
    new_events_ps = std::min(new_events_ps, posts_ps + lookahead_ps_);
  }
  // Nothing of this job is in progress, whatever the model has to do for others: those who sleep act at
  // present (Scheduler::wake_sleepers() and release_idle()).
  if (!any_acts && nothing_comes()) new_events_ps = std::min(new_events_ps, simulation_.now().ps());
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& known = ranks_[rank];
    if (known.state == RankState::finished) {
      wakes_ps[rank] = known.woken_ps;
    } else if (known.state == RankState::awaiting_event || known.state == RankState::running) {
      // Also one of which another thread sleeps: a new event may come before that thread wakes.
      wakes_ps[rank] = std::max(known.woken_ps, std::min(wakes_ps[rank], new_events_ps));
    }
    if (shared_.block(rank).clock.held()) wakes_ps[rank] = known.woken_ps;
  }
}

bool LowerBounds::any_could_go_on() const {
  if (!nothing_comes()) return true;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    switch (ranks_.state_now(rank)) {
      case RankState::awaiting_time:
      case RankState::polling:
      case RankState::flushing:
      case RankState::computing:
      case RankState::computing_ended:
        return true;
      case RankState::awaiting_event:
        if (shared_.block(rank).grant.deadline_ps != 0) return true;
        break;
      case RankState::ended:
      case RankState::finished:
        continue;
      default:
        break;
    }
    if (exchange_.has_requests(rank)) return true;
  }
  return false;
}

}  // namespace apenet
