#include "runtime/scheduler/rank_table.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {

void RankTable::apply(std::uint32_t rank, RankInput input) {
  const RankState before = ranks_[rank].state;
  const auto state = next_state(before, input);
  if (!state)
    throw std::logic_error("rank " + std::to_string(rank) + " is " + std::string(name_of(before)) +
                           ", which '" + std::string(name_of(input)) + "' may not follow");
  enter(rank, *state);
}

void RankTable::apply_report(std::uint32_t rank, RankInput report) {
  const RankState before = ranks_[rank].state;
  const auto state = next_state(before, report);
  if (!state)
    throw RankError(rank, "wrote an invalid state: " + std::string(name_of(report)) +
                              ", which may not follow " + std::string(name_of(before)));
  enter(rank, *state);
}

void RankTable::enter(std::uint32_t rank, RankState state) {
  const bool finishes = state == RankState::finished && ranks_[rank].state != RankState::finished;
  ranks_[rank].state = state;
  if (!finishes) return;
  --alive_;
  ++activity_;
}

bool RankTable::has_grant(std::uint32_t rank) const {
  const ipc::Grant& grant = shared_.block(rank).grant;
  return ranks_[rank].state == RankState::running && grant.run.load() == ipc::Run::may_run &&
         grant.wait != ipc::Wait::finished;
}

RankState RankTable::state_now(std::uint32_t rank) const {
  const RankState state = ranks_[rank].state;
  // Asked before the reason is read, which the process writes first.
  if (state != RankState::running || has_grant(rank)) return state;
  const std::optional<RankInput> report = validation::input_of(shared_.block(rank).grant.wait);
  return report ? next_state(state, *report).value_or(state) : state;
}

bool RankTable::may_print(std::uint32_t rank) const {
  switch (ranks_[rank].state) {
    case RankState::running:
    case RankState::queued:
    case RankState::computing:
    case RankState::computing_ended:
    case RankState::ended:
      return true;
    default:
      return false;
  }
}

std::optional<std::int64_t> RankTable::computes_until_ps(std::uint32_t rank) const {
  const Rank& known = ranks_[rank];
  if (known.computes()) return known.deadline_ps;
  if (state_now(rank) != RankState::computing) return {};
  return std::clamp(shared_.block(rank).grant.deadline_ps, epoch_ps_, ipc::end_of_time_ps);
}

bool RankTable::is_in_call(std::uint32_t rank) const {
  const auto& calls = shared_.notes(rank).calls;
  return std::any_of(std::begin(calls), std::end(calls),
                     [](const ipc::CallNote& note) { return note.call.get() != ipc::MpiCall::none; });
}

std::vector<std::uint32_t> RankTable::suspended() const {
  std::vector<std::uint32_t> found;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (is_suspended(rank)) found.push_back(rank);
  }
  return found;
}

bool RankTable::all_are_suspended() const {
  const std::size_t count = suspended().size();
  return count > 0 && count == static_cast<std::size_t>(alive_);
}

std::vector<std::uint32_t> RankTable::waited_for() const {
  std::vector<std::uint32_t> running;
  bool anybody_waits = false;
  for (std::uint32_t rank = 0; started_ && rank < size(); ++rank) {
    if (has_grant(rank)) {
      running.push_back(rank);
      continue;
    }
    switch (state_now(rank)) {
      case RankState::suspended:  // a step has yet to read that it has come back
        anybody_waits = anybody_waits || !is_suspended(rank);
        break;
      case RankState::computing_ended:
      case RankState::ended:
      case RankState::finished:
        break;
      default:
        anybody_waits = true;
    }
  }
  if (!anybody_waits) running.clear();
  return running;
}

// An earlier value of the process's is below its last wake.
std::int64_t RankTable::resumed_ps(std::uint32_t rank) const {
  const std::int64_t resumed_ps = shared_.block(rank).grant.resumed_ps.load(std::memory_order_relaxed);
  return std::max(ranks_[rank].woken_ps, std::min(resumed_ps, ipc::end_of_time_ps));
}

std::int64_t RankTable::clock_ps(std::uint32_t rank) const {
  if (!started_) return before_time_ps;
  return std::clamp(shared_.block(rank).clock.shown_ps(), epoch_ps_, ipc::end_of_time_ps);
}

std::uint64_t RankTable::activity() const {
  std::uint64_t activity = activity_;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (ranks_[rank].state == RankState::polling) continue;
    const ipc::Block& block = shared_.block(rank);
    activity += block.progress.calls() + static_cast<std::uint64_t>(block.clock.now_ps());
  }
  return activity;
}

void RankTable::begin(std::int64_t epoch_ps) {
  started_ = true;
  epoch_ps_ = epoch_ps;
  ++activity_;
}

}  // namespace apenet
