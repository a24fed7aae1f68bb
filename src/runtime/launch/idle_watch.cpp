#include "runtime/launch/idle_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/wait_text.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto before_watching = 100ms;  // shorter waits are not examined
constexpr auto between_questions = 2s;
constexpr int check_ms = 20;               // interval between the two checks of the threads
constexpr std::uint32_t least_checks = 8;  // before the run is called stuck: a loaded host delays the checks
constexpr int sleep_factor = 10;           // multiple of the stall timeout, for a single timed wait

}  // namespace

bool IdleWatch::Stretch::exceeds(WallClock::duration least, WallClock::time_point now) const {
  return checks >= least_checks && now - since > least;
}

IdleWatch::IdleWatch(const SessionOptions& options)
    : deadlock_wait_(options.deadlock_wait_ms),
      stall_timeout_(options.stall_timeout_ms),
      startup_wait_(options.startup_wait_ms),
      notice_(options.busy_notice_ms),
      error_fd_(options.error_fd) {}

IdleWatch::WallClock::duration IdleWatch::note(std::uint64_t activity) {
  const auto now = WallClock::now();
  if (activity_ != activity) {
    activity_ = activity;
    releases_ = 0;
    working_since_.reset();
    stalls_.forget();
    for (Stretch* stretch : {&idle_, &no_sleeper_, &blocked_}) stretch->restart(now);
  }
  return now - idle_.since;
}

bool IdleWatch::is_stuck(bool started, const std::vector<int>& rank_processes,
                         const std::function<void(int)>& pause, const Questions& questions) {
  const auto idle = WallClock::now() - idle_.since;
  if (!started) return idle > startup_wait_;
  if (idle < std::min<WallClock::duration>(before_watching, deadlock_wait_)) return false;
  stalls_.begin(rank_processes, questions.suspended);
  pause(check_ms);
  const StallWatch::Finding finding = stalls_.end();
  const auto now = WallClock::now();
  for (Stretch* stretch : {&idle_, &no_sleeper_, &blocked_}) ++stretch->checks;
  if (finding == StallWatch::Finding::works) {
    idle_.restart(now);
    notice_work(now);
  }
  // A thread that could wake, and is gone now, may have woken another one. Each finding therefore restarts
  // the timers of the conditions that it contradicts.
  if (finding <= StallWatch::Finding::sleeps) no_sleeper_.restart(now);
  if (finding <= StallWatch::Finding::may_wake) blocked_.restart(now);
  const bool is_stuck = blocked_.exceeds(deadlock_wait_, now) || no_sleeper_.exceeds(stall_timeout_, now) ||
                        idle_.exceeds(stall_timeout_ * sleep_factor, now) || only_run_can_act(now, questions);
  if (!is_stuck) return false;
  const std::string wait = questions.outside_wait();
  if (wait.empty()) return true;
  notice_outside(wait);
  for (Stretch* stretch : {&idle_, &no_sleeper_, &blocked_}) stretch->restart(now);
  return false;
}

// Threads that wait in pipes, for processes or locks may be as unable to wake as those that wait in futexes.
bool IdleWatch::only_run_can_act(WallClock::time_point now, const Questions& questions) {
  if (!no_sleeper_.exceeds(deadlock_wait_, now) || now < next_question_) return false;
  next_question_ = now + between_questions;
  return questions.only_run_can_act();
}

// Such a rank is not in MPI, so the others may go on when the wait ends.
void IdleWatch::notice_outside(const std::string& wait) {
  if (std::exchange(has_reported_outside_, true)) return;
  dprintf(
      error_fd_,
      "apenet: all other ranks wait in MPI, and %s, which something outside the run may end: the run waits\n",
      wait.c_str());
}

// Prints one notice if all ranks wait in MPI while another thread or process of the run still works.
void IdleWatch::notice_work(WallClock::time_point now) {
  if (!working_since_) working_since_ = now;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - *working_since_);
  if (has_reported_ || passed < notice_) return;
  has_reported_ = true;
  const StallWatch::Thread& thread = stalls_.threads().front();
  dprintf(error_fd_,
          "apenet: all ranks have waited in MPI for %.1f s; '%s' of rank %u still works, and the run waits "
          "for it\n",
          static_cast<double>(passed.count()) * 1e-3, thread.name.c_str(), thread.rank);
}

std::string IdleWatch::describe_sleepers(const std::vector<int>& rank_processes,
                                         const std::vector<std::uint32_t>& suspended,
                                         SourceLines& lines) const {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> found;
  for (const StallWatch::Thread& thread : stalls_.threads()) {
    const bool is_suspended = std::find(suspended.begin(), suspended.end(), thread.rank) != suspended.end();
    if (is_suspended || is_library_thread(thread.process_id, thread.thread_id).value_or(false)) continue;
    const bool is_own = thread.process_id == rank_processes[thread.rank];
    std::string text = (is_own ? ", a thread: " : ", process '" + thread.name + "': ") +
                       describe_wait(thread.process_id, thread.thread_id, rank_processes, lines);
    const auto same =
        std::find_if(found.begin(), found.end(), [&text](const auto& line) { return line.first == text; });
    if (same == found.end()) {
      found.emplace_back(std::move(text), std::vector{thread.rank});
    } else {
      same->second.push_back(thread.rank);
    }
  }
  std::string all;
  for (auto& [text, ranks] : found) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    all += "  " + name_ranks(ranks) + text + "\n";
  }
  return all + describe_threads(suspended, rank_processes, families(rank_processes), lines);
}

}  // namespace apenet
