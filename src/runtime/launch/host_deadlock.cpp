#include "runtime/launch/host_deadlock.hpp"

#include <algorithm>

#include "runtime/launch/wait_text.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto before_deadlock_checks = 300ms;  // shorter waits are not examined
constexpr auto deadlock_check_interval = 50ms;
constexpr std::uint32_t least_deadlock_checks = 8;  // a loaded host delays them
constexpr auto between_examinations = 5s;

bool is_awake(char state) {
  return state == 'R' || state == 'D';
}

}  // namespace

std::vector<int> HostDeadlock::rank_processes() const {
  std::vector<int> processes = server_.process_ids().all_running();
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    if (processes[rank] == 0) processes[rank] = server_.processes().leader_id(rank);
  }
  return processes;
}

// StalledRanks decides whether the others go on without the ranks that sleep. It cannot if it does not know
// the process of one of them, which a rank hides that claims none.
bool HostDeadlock::others_may_go_on() const {
  const std::vector<std::uint32_t> ranks = ranks_.waited_for();
  return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [this](std::uint32_t rank) {
    return server_.process_ids().running(rank) != 0;
  });
}

bool HostDeadlock::is_stuck() {
  const auto now = WallClock::now();
  if (!since_) {
    since_ = now;
    next_check_ = now + std::min<WallClock::duration>(before_deadlock_checks, patience_);
    threads_.clear();
    library_threads_ = {};
  }
  if (now < next_check_) return false;
  next_check_ = now + deadlock_check_interval;
  if (others_may_go_on()) return false;
  const std::vector<int> processes = rank_processes();
  const auto before = threads_;
  if (!check(processes)) threads_.clear();
  if (threads_.empty() || threads_ != before) {
    blocked_since_ = now;
    next_examination_ = now;
    checks_ = 0;
    return false;
  }
  if (++checks_ < least_deadlock_checks || now - blocked_since_ < patience_ || now < next_examination_)
    return false;
  next_examination_ = now + between_examinations;
  const WaitEnd end = end_of_waits(processes);
  if (end > WaitEnd::unlikely) return false;
  if (end == WaitEnd::unlikely && now - blocked_since_ < unlikely_patience_) {
    next_examination_ = std::min(next_examination_, blocked_since_ + unlikely_patience_);
    return false;
  }
  const auto examined = threads_;
  return check(processes) && threads_ == examined;
}

bool HostDeadlock::check(const std::vector<int>& processes) {
  threads_.clear();
  // First the ranks alone: mostly one of them computes.
  for (const int process_id : processes) {
    const auto state = process_id == 0 ? std::nullopt : thread_state(process_id, process_id);
    if (state && is_awake(state->state)) return false;
  }
  std::vector<int> with_launcher = processes;
  with_launcher.push_back(server_.launcher_id());
  family_ = families(with_launcher);
  for (const auto& [process_id, rank] : family_) {
    for (const int thread_id : threads_of(process_id)) {
      const auto pulse = pulse_of(process_id, thread_id);
      if (!pulse) return false;
      if (pulse->state == 'Z' || pulse->state == 'X') continue;
      if (is_awake(pulse->state)) return false;
      if (rank < processes.size() && !library_threads_.contains(process_id, thread_id))
        threads_.emplace(ThreadKey(process_id, thread_id), *pulse);
    }
  }
  return !threads_.empty();
}

// Open MPI's thread for its process manager ends the wait after 2 s without an answer, as after one.
bool HostDeadlock::awaits_library(int process_id) {
  const std::uint32_t rank = family_.at(process_id);
  if (rank >= ranks_.size() || !ranks_.is_leaving(rank)) return false;
  const std::vector<int> threads = threads_of(process_id);
  return std::any_of(threads.begin(), threads.end(),
                     [&](int thread_id) { return library_threads_.contains(process_id, thread_id); });
}

WaitEnd HostDeadlock::end_of_waits(const std::vector<int>& processes) {
  HostWaits waits(processes, family_, server_.wait_queries());
  WaitEnd end = WaitEnd::inside;
  for (const auto& [thread, pulse] : threads_) {
    const auto [process_id, thread_id] = thread;
    // What is stopped may become a rank.
    if (waits.has_timer(process_id) || (pulse.state == 'T' && !ranks_.started())) return WaitEnd::outside;
    if (awaits_library(process_id)) end = std::max(end, WaitEnd::unlikely);
    end = std::max(end, waits.end_of(process_id, thread_id));
    if (end > WaitEnd::unlikely) return end;
  }
  return end;
}

std::string HostDeadlock::describe(SourceLines& lines) const {
  const std::vector<int> processes = rank_processes();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < processes.size(); ++rank) {
    switch (ranks_.state_now(rank)) {
      case RankState::awaiting_event:
      case RankState::awaiting_time:
      case RankState::polling:
      case RankState::flushing:
      case RankState::starting:
        break;
      case RankState::computing:
        if (!ranks_.is_overlapped(rank)) break;
        [[fallthrough]];
      default:
        ranks.push_back(rank);
    }
  }
  return describe_threads(ranks, processes, family_, lines);
}

}  // namespace apenet
