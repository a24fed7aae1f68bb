#include "runtime/launch/drain.hpp"

#include <algorithm>

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds startup_patience_per_rank = 1s;  // for ranks that are still starting up

}  // namespace

Drain::Next Drain::next(VirtualInstant first, bool all_wait) {
  if (all_wait && !is_idle_ && acts_until(first)) {
    work_ = HostWork{};  // the ranks make progress, so their patience starts anew
    return Next::step;
  }
  std::vector<std::uint32_t> unfinished;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (!is_quiescent(rank)) unfinished.push_back(rank);
  }
  return wait_for(std::move(unfinished));
}

Drain::Next Drain::next_after_last_step() {
  std::vector<std::uint32_t> unfinished;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const bool may_print = has_left(rank) || scheduler_.ranks.is_overlapped(rank);
    if (!server_.ended(rank) && may_print) unfinished.push_back(rank);
  }
  return wait_for(std::move(unfinished));
}

bool Drain::acts_until(VirtualInstant first) {
  scheduler_.bounds.earliest_wakes(wakes_ps_);
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    if (const auto until_ps = scheduler_.ranks.computes_until_ps(rank)) {
      if (VirtualInstant{*until_ps, rank} <= first) return true;
      continue;
    }
    if (server_.ended(rank) || has_left(rank)) continue;
    if (VirtualInstant{wakes_ps_[rank], rank} <= first) return true;
  }
  return false;
}

bool Drain::all_act_after(std::int64_t time_ps) {
  constexpr std::uint32_t last_rank = UINT32_MAX;
  bool any_is_left = false;
  for (std::uint32_t rank = 0; rank < count_; ++rank) {
    const bool is_left = scheduler_.ranks.computes_until_ps(rank) || !(server_.ended(rank) || has_left(rank));
    any_is_left = any_is_left || is_left;
  }
  return any_is_left && !acts_until({time_ps, last_rank});
}

bool Drain::is_quiescent(std::uint32_t rank) const {
  if (server_.ended(rank)) return true;
  if (has_left(rank)) return false;
  switch (scheduler_.ranks.state_now(rank)) {
    case RankState::running:
    case RankState::queued:
      return server_.waits_for_others(rank) || server_.is_kept_in_init(rank);
    case RankState::suspended:
      return !scheduler_.ranks.is_suspended(rank) || server_.waits_for_others(rank);
    case RankState::computing:
      return !scheduler_.ranks.is_overlapped(rank) || server_.waits_for_others(rank);
    default:
      return true;
  }
}

// It has finished, or its process has ended.
bool Drain::has_left(std::uint32_t rank) const {
  switch (scheduler_.ranks.state_now(rank)) {
    case RankState::computing_ended:
    case RankState::ended:
    case RankState::finished:
      return true;
    default:
      return false;
  }
}

Drain::Next Drain::wait_for(std::vector<std::uint32_t> unfinished) {
  if (unfinished.empty()) return Next::stop;
  std::vector<int> groups;
  for (const std::uint32_t rank : unfinished) groups.push_back(server_.group_of(rank));
  const auto patience =
      scheduler_.ranks.started()
          ? cpu_patience_
          : std::max(cpu_patience_, startup_patience_per_rank * static_cast<int>(unfinished.size()));
  if (!work_.is_hopeless(groups, patience)) return Next::wait;
  if (given_up_.empty()) given_up_ = std::move(unfinished);
  return Next::stop;
}

}  // namespace apenet
