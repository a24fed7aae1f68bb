#include "runtime/launch/cores.hpp"

#include <algorithm>

#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds decision_interval = 25ms;
// Looking at all threads may take a hundredth of the time.
constexpr int rest_after_look = 100;
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

}  // namespace

Cores::~Cores() {
  if (has_begun_) sched_setaffinity(0, sizeof allowed_, &allowed_);
}

void Cores::begin(const std::vector<int>& process_ids) {
  if (use_ == CoreUse::all || sched_getaffinity(0, sizeof allowed_, &allowed_) != 0) return;
  has_begun_ = true;
  settle_at_home();
  move_to(one_core(), process_ids);
  taken_since_ = WallClock::now();
  next_decision_ = taken_since_ + decision_interval;
  next_look_at_others_ = taken_since_ + others_interval;
}

// The current core if no other run has claimed it, otherwise the next that is free. If all are taken, the
// run shares the current one.
void Cores::settle_at_home() {
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

void Cores::note_turn(std::size_t woken) {
  if (!has_begun_) return;
  ++taken_.turns;
  taken_.wakes += woken;
  turn_since_ = WallClock::now();
}

void Cores::note_all_wait() {
  if (!turn_since_) return;
  close_turn(WallClock::now());
  turn_since_.reset();
}

void Cores::close_turn(WallClock::time_point now) {
  if (!turn_since_) return;
  taken_.ran += now - *turn_since_;
  turn_since_ = now;
}

void Cores::adapt(const std::vector<int>& process_ids) {
  if (!has_begun_ || use_ != CoreUse::adaptive) return;
  const auto now = WallClock::now();
  if (now >= next_look_at_others_) {
    heed_others(process_ids);
    next_look_at_others_ = now + others_interval;
  }
  if (now < next_decision_) return;
  close_turn(now);
  taken_.passed = now - taken_since_;
  decide(process_ids, now);
  taken_ = TurnsTaken{};
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
  const auto looked = WallClock::now() - now;
  next_decision_ = now + std::max(decision_interval, rest_after_look * looked);
  if (runnable_before_ && taken_.ran > 0ns) {
    const auto meanwhile = std::max(runnable - *runnable_before_, 0ns);  // less if a rank has ended
    const double mean = std::chrono::duration<double>(meanwhile) / taken_.ran;
    const auto place = choice_.decide(taken_, mean, cores);
    move_to(place == CoreChoice::Place::one_core ? one_core() : free_cores(), process_ids);
  }
  runnable_before_ = runnable;
}

// Other runs begin and end. A run without a core of its own looks for one; a run on several cores leaves
// those that others have claimed meanwhile, and takes those that they have left.
void Cores::heed_others(const std::vector<int>& process_ids) {
  if (!claim_) settle_at_home();
  move_to(choice_.place() == CoreChoice::Place::one_core ? one_core() : free_cores(), process_ids);
}

}  // namespace apenet
