#include "runtime/launch/idle_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/launch/host_thread.hpp"
#include "runtime/scheduler/rank_names.hpp"

namespace apenet {
namespace {

using namespace std::chrono_literals;

constexpr auto before_watching = 100ms;   // shorter waits are not examined
constexpr int look_ms = 20;               // interval between the two looks at the threads
constexpr std::uint32_t least_looks = 8;  // before the run is called stuck: a loaded host delays the looks
constexpr int sleep_factor = 10;          // multiple of the stall timeout, for a single timed wait

}  // namespace

bool IdleWatch::Stretch::exceeds(WallClock::duration least, WallClock::time_point now) const {
  return looks >= least_looks && now - since > least;
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
    for (Stretch* stretch : {&idle_, &no_sleeper_, &asleep_}) stretch->restart(now);
  }
  return now - idle_.since;
}

bool IdleWatch::is_stuck(bool started, const std::vector<int>& rank_processes,
                         const std::function<void(int)>& pause) {
  const auto idle = WallClock::now() - idle_.since;
  if (!started) return idle > startup_wait_;
  if (idle < std::min<WallClock::duration>(before_watching, deadlock_wait_)) return false;
  stalls_.begin(rank_processes);
  pause(look_ms);
  const StallWatch::Finding finding = stalls_.end();
  const auto now = WallClock::now();
  for (Stretch* stretch : {&idle_, &no_sleeper_, &asleep_}) ++stretch->looks;
  if (finding == StallWatch::Finding::works) {
    idle_.restart(now);
    notice_work(now);
  }
  // A thread that could wake, and is gone now, may have woken another one. Each finding therefore restarts
  // the timers of the conditions that it contradicts.
  if (finding <= StallWatch::Finding::sleeps) no_sleeper_.restart(now);
  if (finding <= StallWatch::Finding::may_wake) asleep_.restart(now);
  return asleep_.exceeds(deadlock_wait_, now) || no_sleeper_.exceeds(stall_timeout_, now) ||
         idle_.exceeds(stall_timeout_ * sleep_factor, now);
}

// Prints one notice if all ranks wait in MPI while another thread or process of the run still works.
void IdleWatch::notice_work(WallClock::time_point now) {
  if (!working_since_) working_since_ = now;
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - *working_since_);
  if (told_ || passed < notice_) return;
  told_ = true;
  const StallWatch::Thread& thread = stalls_.threads().front();
  dprintf(error_fd_,
          "apenet: all ranks have waited in MPI for %.1f s; '%s' of rank %u still works, and the run waits "
          "for it\n",
          static_cast<double>(passed.count()) * 1e-3, thread.name.c_str(), thread.rank);
}

std::string IdleWatch::describe_sleepers(const std::vector<int>& rank_processes,
                                         const std::vector<std::uint32_t>& left_out) const {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> lines;
  const auto add = [&lines](std::string text, std::uint32_t rank) {
    const auto same =
        std::find_if(lines.begin(), lines.end(), [&text](const auto& line) { return line.first == text; });
    if (same == lines.end()) {
      lines.emplace_back(std::move(text), std::vector{rank});
    } else {
      same->second.push_back(rank);
    }
  };
  for (const StallWatch::Thread& thread : stalls_.threads()) {
    const bool is_own = thread.process_id == rank_processes[thread.rank];
    std::string text = (is_own ? ", a thread: " : ", process '" + thread.name + "': ") +
                       describe_wait(thread.process_id, thread.thread_id, rank_processes);
    add(std::move(text), thread.rank);
  }
  // A rank that waits for a thread or for shared memory has no thread in this list.
  for (const std::uint32_t rank : left_out) {
    const auto& threads = stalls_.threads();
    if (std::any_of(threads.begin(), threads.end(),
                    [rank](const auto& thread) { return thread.rank == rank; }))
      continue;
    add(", a thread: " + describe_work(rank_processes, rank), rank);
  }
  std::string all;
  for (auto& [text, ranks] : lines) {
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    all += "  " + name_ranks(ranks) + text + "\n";
  }
  return all;
}

}  // namespace apenet
