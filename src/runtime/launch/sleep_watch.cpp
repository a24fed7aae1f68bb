#include "runtime/launch/sleep_watch.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <iterator>

#include "runtime/ipc/old_calls.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto sleep_check_interval = 20ms;
constexpr auto patience = 100ms;
// Once ranks have been suspended, the run may already not repeat, so a shorter wait is enough.
constexpr auto patience_again = 20ms;
constexpr int limited_factor = 10;  // multiplies both if a rank may wake by itself
constexpr std::uint32_t least_sleep_checks = 3;
constexpr auto pause = 2ms;  // before a suspended rank that has run is checked again

// Returns what the rank waits for if another rank may supply it, depending on who else can.
std::string meeting_to_prove(const SystemCall& call) {
  switch (call.number) {
    case SYS_wait4:
    case SYS_waitid:
      return "a process that it has started";
    case SYS_flock:
    case SYS_fcntl:
      return "a lock on a file";
    case SYS_semop:
    case SYS_semtimedop:
      return "a semaphore";
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return "a message queue";
    case ipc::old_call::pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return "a signal";
    case SYS_futex_waitv:
      return "shared memory";
    case SYS_read:
    case SYS_readv:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_sendfile:
      return "a file";
    default:
      return {};
  }
}

}  // namespace

// Returns false if a thread is awake or waits for something that no other rank can supply.
bool SleepWatch::check(int process_id, Rank& rank) {
  rank = Rank{};
  rank.process_id = process_id;
  for (const int thread_id : threads_of(process_id)) {
    const auto pulse = pulse_of(process_id, thread_id);
    if (!pulse) return false;
    if (pulse->state == 'Z' || pulse->state == 'X') continue;
    const SystemCall call = system_call(process_id, thread_id);
    std::string waits_for = meeting_point(process_id, thread_id, call);
    if (waits_for.empty()) {
      waits_for = meeting_to_prove(call);
      rank.needs_proof = true;
    }
    if (pulse->state != 'S' || waits_for.empty()) return false;
    rank.may_wake_by_itself = rank.may_wake_by_itself || has_time_limit(call);
    // A thread that waits for another thread of its process also waits in a futex, so a wait of another kind
    // is preferred, unless it is one of the MPI library's own.
    if (rank.waits_for.empty() ||
        (!waits_for_thread(call) && !library_threads_.contains(process_id, thread_id)))
      rank.waits_for = waits_for;
    rank.threads.emplace(thread_id, *pulse);
  }
  return !rank.threads.empty();
}

bool SleepWatch::are_blocked(const std::vector<std::uint32_t>& ranks, const std::vector<int>& rank_processes,
                             int launcher_id) {
  const auto now = WallClock::now();
  if (now < next_check_) return false;
  next_check_ = now + sleep_check_interval;
  const bool all_sleep = std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t number) {
    Rank seen;
    if (rank_processes[number] == 0 || !check(rank_processes[number], seen)) return false;
    Rank& known = ranks_[number];
    if (known.threads != seen.threads) {
      known = std::move(seen);
      known.since = now;
    }
    ++known.checks;
    return true;
  });
  if (!all_sleep || something_works(rank_processes, launcher_id)) {
    for (const std::uint32_t number : ranks) ranks_.erase(number);
    return false;
  }
  if (!std::all_of(ranks.begin(), ranks.end(),
                   [&](std::uint32_t number) { return has_slept(number, ranks_[number], now); }))
    return false;
  std::vector<std::uint32_t> unproven;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(unproven),
               [this](std::uint32_t number) { return ranks_[number].needs_proof; });
  if (unproven.empty()) return true;
  if (now < next_proof_) return false;
  next_proof_ = now + patience * limited_factor;
  return wait_for_others(unproven, rank_processes, launcher_id);
}

bool SleepWatch::wait_for_others(const std::vector<std::uint32_t>& ranks,
                                 const std::vector<int>& rank_processes, int launcher_id) {
  const auto last = std::exchange(proven_, {});
  std::vector<int> all = rank_processes;
  all.push_back(launcher_id);
  const std::map<int, std::uint32_t> family = families(all);
  HostWaits waits(rank_processes, family, queries_);
  for (const auto& [process_id, number] : family) {
    if (std::find(ranks.begin(), ranks.end(), number) == ranks.end()) continue;
    for (const int thread_id : threads_of(process_id)) {
      const auto pulse = pulse_of(process_id, thread_id);
      if (pulse && pulse->state == 'Z') continue;
      const bool is_stopped = pulse && (pulse->state == 'T' || pulse->state == 't');
      const bool is_inside = pulse && (pulse->state == 'S' || is_stopped) &&
                             (waits.end_by_others(process_id, thread_id) <= WaitEnd::unlikely ||
                              library_threads_.contains(process_id, thread_id));
      if (!is_inside) return false;
      proven_.emplace(std::pair(process_id, thread_id), *pulse);
    }
  }
  return proven_ == last;
}

// Checks all processes of the run. If a sleeping rank has started a process and that process sleeps for a
// limited time, the rank waits for it, so it counts as working.
bool SleepWatch::something_works(std::vector<int> rank_processes, int launcher_id) {
  const std::size_t count = rank_processes.size();
  rank_processes.push_back(launcher_id);
  for (const auto& [process_id, number] : families(rank_processes)) {
    const auto known = ranks_.find(number);
    const bool is_started = number < count && process_id != rank_processes[number] && known != ranks_.end();
    if (is_started) known->second.may_wake_by_itself = true;
    for (const int thread_id : threads_of(process_id)) {
      const auto pulse = pulse_of(process_id, thread_id);
      if (pulse && (pulse->state == 'R' || pulse->state == 'D')) return true;
      if (is_started && has_time_limit(system_call(process_id, thread_id))) return true;
    }
  }
  return false;
}

bool SleepWatch::has_slept(std::uint32_t number, const Rank& rank, WallClock::time_point now) const {
  const auto least = suspended_.contains(number) ? patience_again : patience;
  return rank.checks >= least_sleep_checks &&
         now - rank.since >= least * (rank.may_wake_by_itself ? limited_factor : 1);
}

bool SleepWatch::still_blocked(const std::vector<std::uint32_t>& ranks) {
  const auto now = WallClock::now();
  return std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t number) {
    Rank& rank = ranks_[number];
    const bool has_rested = std::all_of(rank.threads.begin(), rank.threads.end(), [&](const auto& thread) {
      return pulse_of(rank.process_id, thread.first) == thread.second;
    });
    if (has_rested && !rank.threads.empty()) return now - rank.since >= pause;
    if (!check(rank.process_id, rank)) rank.threads.clear();
    rank.since = now;
    return false;
  });
}

void SleepWatch::note_suspended(const std::vector<std::uint32_t>& ranks) {
  for (const std::uint32_t number : ranks) suspended_.emplace(number, ranks_[number].waits_for);
}

std::vector<std::string> SleepWatch::warnings() const {
  std::map<std::string, std::vector<std::uint32_t>> ranks;
  for (const auto& [number, waits_for] : suspended_) ranks[waits_for].push_back(number);
  std::vector<std::string> lines;
  for (const auto& [waits_for, numbers] : ranks)
    lines.push_back(name_ranks(numbers) + " waited in the host (" + waits_for +
                    ") while others continued: the times of this run may not repeat");
  return lines;
}

}  // namespace apenet
