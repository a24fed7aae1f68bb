// LowerBounds: answers every question of the kind "not before which time".
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/shared_model.hpp"

namespace apenet {

// The field's LBTS (lower bound on the time stamp): no rank acts, and no event comes, before these times.
class LowerBounds {
 public:
  LowerBounds(SharedMemory& shared, SharedModel& model, const RankTable& ranks, const Exchange& exchange)
      : shared_(shared),
        model_(model),
        simulation_(model.simulation()),
        ranks_(ranks),
        exchange_(exchange),
        lookahead_ps_(model.machine().lookahead().ps()) {}

  // The ranks take no part in the model (SharedModel::open()).
  void set_outside(bool is_outside) { is_outside_ = is_outside; }

  // What a rank posts has no effect before this time after it.
  [[nodiscard]] std::int64_t lookahead_ps() const { return lookahead_ps_; }

  // When a rank that waits acts next; never_ps if only an event that does not exist yet can wake it.
  [[nodiscard]] static std::int64_t acts_ps(const Rank& rank) {
    if (rank.waits_for_time() || rank.computes()) return rank.deadline_ps;
    if (rank.state != RankState::awaiting_event) return never_ps;
    const std::int64_t first_ps = std::min(rank.acts_on_ps, rank.deadline_ps);
    return first_ps == never_ps ? never_ps : std::max(rank.clock_ps, first_ps);
  }
  [[nodiscard]] std::int64_t acts_ps(std::uint32_t rank) const { return acts_ps(ranks_[rank]); }

  // Lowers the time up to which the model may run while all ranks wait to the earliest action of any of these
  // plus the lookahead.
  void add_to_model_bound();
  // Call while the model runs, when the rank has got an event on which it acts.
  void lower_model_bound(std::uint32_t rank) { model_.lower_bound(acts_ps(rank) + lookahead_ps_); }

  // A rank's horizon: all events before it are known. The earliest action of any other rank plus the
  // lookahead, or the model's next event if that is earlier. Call find_horizons() when the model has stopped.
  void find_horizons();
  // The same where these ranks are about to act at their own clocks, and no others.
  void find_horizons_of_released(const std::vector<std::uint32_t>& released);
  [[nodiscard]] std::int64_t horizon_ps(std::uint32_t rank) const {
    const std::int64_t others_ps = rank == first_rank_ ? second_ps_ : first_ps_;
    return std::min(next_event_ps_, others_ps == never_ps ? never_ps : others_ps + lookahead_ps_);
  }
  // The part of this horizon that a rank gets when it is woken.
  [[nodiscard]] std::int64_t granted_horizon_ps(std::uint32_t rank, std::int64_t horizon_ps,
                                                bool any_is_suspended) const;
  // The run ends at this time, because a rank has failed: from now on no rank runs ahead of it, even if no
  // event can reach the rank any more.
  void end_at(std::int64_t failure_ps) { end_ps_ = failure_ps; }

  // The next three may be called while ranks run.
  //
  // Lower bound of the time at which each rank is woken next. For a rank that runs or has finished:
  // the time at which it was last woken.
  void earliest_wakes(std::vector<std::int64_t>& wakes_ps) const;
  // Whether a rank that waits, or the model, could go on if the step did not wait for the ranks that run.
  [[nodiscard]] bool any_could_go_on() const;
  // Whether no event can come to the ranks before one of them acts: the model has none, except faults that
  // affect no rank. Beside other jobs, nothing that these ranks have sent is under way.
  [[nodiscard]] bool nothing_comes() const {
    if (is_outside_ || !model_.is_alone()) return under_way_ == 0;
    const std::size_t pending = simulation_.pending_count();
    return pending == 0 || model_.machine().is_quiet_until_faults(pending);
  }
  void set_under_way(std::size_t requests) { under_way_ = requests; }

 private:
  [[nodiscard]] std::int64_t known_action_ps(std::uint32_t rank) const;
  void begin_horizons();
  void note_action(std::uint32_t rank, std::int64_t rank_acts_ps);

  SharedMemory& shared_;
  SharedModel& model_;
  const Simulation& simulation_;
  const RankTable& ranks_;
  const Exchange& exchange_;
  std::int64_t lookahead_ps_;
  bool is_outside_ = false;
  std::size_t under_way_ = 0;
  std::int64_t end_ps_ = never_ps;
  // The two earliest actions of all ranks. They suffice for all horizons.
  std::int64_t first_ps_ = never_ps;
  std::int64_t second_ps_ = never_ps;
  std::uint32_t first_rank_ = 0;
  std::int64_t next_event_ps_ = never_ps;
};

}  // namespace apenet
