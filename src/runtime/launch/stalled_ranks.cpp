#include "runtime/launch/stalled_ranks.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/outside_waits.hpp"
#include "runtime/launch/wait_text.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

constexpr int shorter_factor = 10;

}  // namespace

void StalledRanks::note_busy() {
  const auto now = WallClock::now();
  if (!busy_since_) {
    busy_since_ = now;
    calls_before_.resize(view_.ranks.size());
    for (std::uint32_t rank = 0; rank < calls_before_.size(); ++rank)
      calls_before_[rank] = view_.ranks.calls(rank);
  }
  if (has_reported_ || now - *busy_since_ < notice_) return;
  const std::vector<int> processes = server_.process_ids().all_running();
  std::vector<std::uint32_t> busy;
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    if (view_.ranks.has_grant(rank)) busy.push_back(rank);
  }
  if (busy.empty()) return;
  const auto waits_outside = [this](std::uint32_t rank) {
    return !waits_outside_for(view_.ranks, rank).empty();
  };
  has_reported_ = true;
  if (const auto rank = std::find_if(busy.begin(), busy.end(), waits_outside); rank != busy.end()) {
    const std::string_view what = waits_outside_for(view_.ranks, *rank);
    dprintf(error_fd_, "apenet: rank %u sleeps in real time, waiting for %.*s; virtual time waits for it\n",
            *rank, static_cast<int>(what.size()), what.data());
    return;
  }
  for (const std::uint32_t rank : busy) {
    const std::string given_up = gave_up_outside(view_.ranks, rank);
    if (given_up.empty()) continue;
    dprintf(error_fd_,
            "apenet: rank %u has slept in real time, waiting for %s, and goes on in virtual time alone\n",
            rank, given_up.c_str());
    return;
  }
  const std::string more =
      busy.size() > 1 ? " (as have " + std::to_string(busy.size() - 1) + " more)" : std::string{};
  dprintf(error_fd_,
          "apenet: rank %u has been busy in the host for %.1f s%s: it %s; virtual time waits for it\n",
          busy.front(), std::chrono::duration<double>(now - *busy_since_).count(), more.c_str(),
          describe_busy(busy.front(), processes).c_str());
}

// A rank that polls does not return to the simulator either.
std::string StalledRanks::describe_busy(std::uint32_t rank, const std::vector<int>& processes) {
  constexpr std::uint32_t least_polls = 1000;
  if (view_.ranks.calls(rank) - calls_before_[rank] >= least_polls)
    return "calls MPI again and again, and finds nothing";
  return describe_work(processes, rank, lines_);
}

void StalledRanks::suspend_sleepers() {
  if (!busy_since_) return;
  const std::vector<std::uint32_t> ranks = view_.ranks.waited_for();
  const int launcher_id = server_.launcher_id();
  if (ranks.empty() || !sleep_.are_blocked(ranks, server_.process_ids().all_running(), launcher_id)) return;
  if (scheduler_.suspend(ranks, [&] { return sleep_.still_blocked(ranks); })) sleep_.note_suspended(ranks);
}

void StalledRanks::suspend_spinners() {
  // Once ranks have been suspended, the run may already not repeat, so a shorter wait is enough.
  const auto patience = have_spun_.empty() ? spin_patience_ : spin_patience_ / shorter_factor;
  if (!busy_since_ || WallClock::now() - *busy_since_ < patience) return;
  const std::vector<std::uint32_t> ranks = view_.ranks.waited_for();
  const auto shares = [this](std::uint32_t rank) {
    return view_.ranks[rank].shares_memory && waits_outside_for(view_.ranks, rank).empty();
  };
  if (ranks.empty() || !std::all_of(ranks.begin(), ranks.end(), shares)) return;
  if (view_.grants.any_is_queued()) {
    scheduler_.grant_next();
    have_spun_.insert(ranks.begin(), ranks.end());
  } else if (view_.bounds.any_could_go_on() && scheduler_.suspend(ranks, [] { return true; })) {
    spinners_.insert(ranks.begin(), ranks.end());
    have_spun_.insert(ranks.begin(), ranks.end());
  }
}

bool StalledRanks::waits_for_suspended() {
  std::vector<std::uint32_t> ranks = view_.ranks.suspended();
  if (ranks.empty()) spinners_.clear();
  if (ranks.empty() || view_.ranks.all_are_suspended()) return !ranks.empty();
  std::set<std::uint32_t> still_spin;
  std::erase_if(ranks, [&](std::uint32_t rank) {
    if (spinners_.contains(rank)) still_spin.insert(rank);
    return spinners_.contains(rank);
  });
  spinners_ = std::move(still_spin);
  return !ranks.empty() && !sleep_.still_blocked(ranks);
}

bool StalledRanks::only_run_can_act(const std::vector<int>& rank_processes) const {
  std::vector<int> with_launcher = rank_processes;
  with_launcher.push_back(server_.launcher_id());
  const std::map<int, std::uint32_t> family = families(with_launcher);
  HostWaits waits(rank_processes, family, server_.wait_queries());
  return std::all_of(family.begin(), family.end(), [&](const auto& member) {
    const auto [process_id, rank] = member;
    if (rank >= rank_processes.size()) return true;
    if (waits.has_timer(process_id)) return false;
    const std::vector<int> threads = threads_of(process_id);
    return std::all_of(threads.begin(), threads.end(), [&](int thread_id) {
      const auto state = thread_state(process_id, thread_id);
      if (state && (state->state == 'Z' || state->state == 'X')) return true;
      return waits.end_of(process_id, thread_id) == WaitEnd::inside ||
             is_library_thread(process_id, thread_id).value_or(false);
    });
  });
}

std::string StalledRanks::outside_wait(const std::vector<int>& rank_processes) {
  const std::vector<std::uint32_t> ranks = view_.ranks.suspended();
  if (ranks.empty()) return {};
  std::vector<int> with_launcher = rank_processes;
  with_launcher.push_back(server_.launcher_id());
  const std::map<int, std::uint32_t> family = families(with_launcher);
  HostWaits waits(rank_processes, family, server_.wait_queries());
  for (const auto& [process_id, rank] : family) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    for (const int thread_id : threads_of(process_id)) {
      const bool may_go_on =
          waits.end_of(process_id, thread_id) == WaitEnd::outside || waits.has_timer(process_id);
      if (!may_go_on || is_library_thread(process_id, thread_id).value_or(false)) continue;
      return "rank " + std::to_string(rank) + " " +
             describe_wait(process_id, thread_id, rank_processes, lines_);
    }
  }
  return {};
}

std::vector<std::string> StalledRanks::warnings() const {
  std::vector<std::string> lines = sleep_.warnings();
  if (have_spun_.empty()) return lines;
  lines.push_back("others ran beside " + name_ranks({have_spun_.begin(), have_spun_.end()}) +
                  ", which may have spun in a shared window: the times of this run may not repeat");
  return lines;
}

}  // namespace apenet
