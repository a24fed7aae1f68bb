#include "runtime/launch/cores.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds decision_interval = 25ms;
// Checking all threads may take a hundredth of the time.
constexpr int rest_after_check = 100;
constexpr auto others_interval = 500ms;

// The time that the ranks' threads have run or waited for a processor, summed up.
std::chrono::nanoseconds time_of_all(const std::vector<int>& process_ids) {
  std::chrono::nanoseconds sum{0};
  for (const int process_id : process_ids) {
    if (process_id == 0) continue;
    for (const int thread_id : threads_of(process_id)) sum += runnable_time(process_id, thread_id);
  }
  return sum;
}

// Slice of the simulator while ranks compute beside it. When it is woken on a core where one of them runs,
// the host lets it run before the rank's slice of some milliseconds has ended if its own is shorter.
constexpr std::chrono::nanoseconds prompt_slice = 100us;
constexpr std::chrono::nanoseconds usual_slice = 0ns;  // the host's own

// The first version of the kernel's struct sched_attr: its header clashes with <sched.h>, which has the
// structure in new versions only.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // for SCHED_OTHER: the time slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// Sets the calling thread's slice. Returns false, without any effect, on hosts before Linux 6.12.
bool set_time_slice(std::chrono::nanoseconds slice) {
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return false;
  if (attributes.policy != SCHED_OTHER || attributes.runtime_ns == 0) return false;
  attributes.runtime_ns = static_cast<std::uint64_t>(slice.count());
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

Cores::~Cores() {
  if (has_begun_) sched_setaffinity(0, sizeof allowed_, &allowed_);
  if (is_prompt_) set_time_slice(usual_slice);
}

void Cores::begin(const std::vector<int>& process_ids) {
  if (use_ == CoreUse::all || sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  has_begun_ = true;
  move_home();
  list_free_cores();
  move_to(one_core(), process_ids);
  taken_since_ = WallClock::now();
  next_decision_ = taken_since_ + decision_interval;
  next_check_of_others_ = taken_since_ + others_interval;
}

// The current core if no other run has claimed it, otherwise the next that is free. If all are taken, the
// run shares the current one.
void Cores::move_home() {
  const int here = sched_getcpu();
  home_ = here < 0 ? 0 : static_cast<std::size_t>(here);
  for (std::size_t i = 0; i < CPU_SETSIZE && !claim_; ++i) {
    const std::size_t core = (home_ + i) % CPU_SETSIZE;
    if (CPU_ISSET(core, &allowed_)) claim_ = CoreClaim::take(core);
  }
  if (claim_) home_ = claim_->core();
}

cpu_set_t Cores::one_core() const {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(home_, &cores);
  return cores;
}

cpu_set_t Cores::free_cores() const {
  cpu_set_t cores = allowed_;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores) && core != home_ && CoreClaim::is_taken(core)) CPU_CLR(core, &cores);
  }
  CPU_SET(home_, &cores);
  return cores;
}

void Cores::list_free_cores() {
  const cpu_set_t cores = free_cores();
  free_.clear();
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    const std::size_t core = (home_ + i) % CPU_SETSIZE;
    if (CPU_ISSET(core, &cores)) free_.push_back(core);
  }
}

void Cores::move_to(const cpu_set_t& cores, const std::vector<int>& process_ids) {
  if (CPU_EQUAL(&cores, &used_)) return;
  used_ = cores;
  sched_setaffinity(0, sizeof cores, &cores);
  for (const int process_id : process_ids) {
    if (process_id == 0) continue;
    // Threads that they start later inherit the affinity.
    for (const int thread_id : threads_of(process_id)) sched_setaffinity(thread_id, sizeof cores, &cores);
  }
}

// Overlapped ranks already run side by side: waiting for them does not count.
void Cores::note_round(std::size_t woken) {
  if (!has_begun_ || !overlapped_.empty()) return;
  ++taken_.rounds;
  taken_.wakes += woken;
  round_since_ = WallClock::now();
}

void Cores::note_all_wait() {
  if (!round_since_) return;
  close_round(WallClock::now());
  round_since_.reset();
}

void Cores::close_round(WallClock::time_point now) {
  if (!round_since_) return;
  taken_.ran += now - *round_since_;
  round_since_ = now;
}

void Cores::spread_overlapped(const SchedulerView& scheduler, ProcessIds& process_ids) {
  if (!has_begun_ || use_ != CoreUse::adaptive) return;
  std::erase_if(overlapped_, [&](std::uint32_t rank) {
    if (scheduler.ranks.is_overlapped(rank)) return false;
    // It sleeps, so it moves when it is woken.
    const auto process_id = static_cast<int>(process_ids.running(rank));
    if (process_id != 0) sched_setaffinity(process_id, sizeof used_, &used_);
    return true;
  });
  if (choice_.spread() != CoreChoice::Spread::one_core || free_.size() < 2) return;
  for (const std::uint32_t rank : scheduler.grants.last_woken()) {
    if (!scheduler.ranks.is_overlapped(rank) || overlapped_.contains(rank)) continue;
    spread(rank, static_cast<int>(process_ids.running(rank)));
  }
}

// An equal share of the ranks goes to each core but the home, which the simulator needs. The host's balancing
// may use that, too.
void Cores::spread(std::uint32_t rank, int process_id) {
  if (process_id == 0) return;
  if (!is_prompt_) is_prompt_ = set_time_slice(prompt_slice);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(free_[1 + rank % (free_.size() - 1)], &cores);
  sched_setaffinity(process_id, sizeof cores, &cores);
  for (const std::size_t core : free_) CPU_SET(core, &cores);
  sched_setaffinity(process_id, sizeof cores, &cores);
  overlapped_.insert(rank);
}

void Cores::adapt(const std::vector<int>& process_ids) {
  if (!has_begun_ || use_ != CoreUse::adaptive) return;
  const auto now = WallClock::now();
  if (now >= next_check_of_others_) {
    heed_others(process_ids);
    next_check_of_others_ = now + others_interval;
  }
  if (now < next_decision_) return;
  close_round(now);
  taken_.passed = now - taken_since_;
  decide(process_ids, now);
  taken_ = RoundsTaken{};
  taken_since_ = now;
}

void Cores::decide(const std::vector<int>& process_ids, WallClock::time_point now) {
  const auto cores = static_cast<unsigned>(CPU_COUNT(&allowed_));
  next_decision_ = now + decision_interval;
  if (cores < 2 || !choice_.may_change(taken_, cores)) {
    runnable_before_.reset();
    return;
  }
  const std::chrono::nanoseconds runnable = time_of_all(process_ids);
  const auto check_time = WallClock::now() - now;
  next_decision_ = now + std::max(decision_interval, rest_after_check * check_time);
  if (runnable_before_ && taken_.ran > 0ns) {
    const auto meanwhile = std::max(runnable - *runnable_before_, 0ns);  // less if a rank has ended
    const double mean = std::chrono::duration<double>(meanwhile) / taken_.ran;
    const auto chosen = choice_.decide(taken_, mean, cores);
    move_to(chosen == CoreChoice::Spread::one_core ? one_core() : free_cores(), process_ids);
  }
  runnable_before_ = runnable;
}

// Other runs begin and end. A run without a core of its own searches for one; a run on several cores leaves
// those that others have claimed meanwhile, and takes those that they have left.
void Cores::heed_others(const std::vector<int>& process_ids) {
  if (!claim_) move_home();
  list_free_cores();
  move_to(choice_.spread() == CoreChoice::Spread::one_core ? one_core() : free_cores(), process_ids);
}

}  // namespace apenet
