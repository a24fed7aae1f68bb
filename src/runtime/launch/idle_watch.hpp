// IdleWatch: decides whether ranks that all wait, with an empty network, are deadlocked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/session_options.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/launch/stall_watch.hpp"

namespace apenet {

// Asked between two releases of the ranks (Scheduler::release_idle) whether another release can help. The
// answer depends on what the host shows: if no thread of the ranks can wake by itself, deadlock_wait is
// enough; if one may wake, it is given stall_timeout; while one works, the run is never called stuck. Wall
// time decides only when to give up.
class IdleWatch {
 public:
  using WallClock = std::chrono::steady_clock;

  explicit IdleWatch(const SessionOptions& options);

  // Call when the ranks are idle. `activity` changes whenever a rank does anything. Returns how long the
  // ranks have been idle.
  WallClock::duration note(std::uint64_t activity);
  // Questions about what the threads of the run wait for. Expensive.
  struct Questions {
    // Whether only threads of the run can end all these waits.
    std::function<bool()> only_run_can_act;
    // Describes what a suspended rank waits for, if something outside the run can end the wait;
    // empty if there is none. Asked only before the run would be called stuck.
    std::function<std::string()> outside_wait;
    // Ranks that do not wait in the simulation, because they sleep in the host.
    std::vector<std::uint32_t> suspended;
  };
  // Call after note(). `pause` waits for the given number of milliseconds without waking any rank.
  bool is_stuck(bool started, const std::vector<int>& rank_processes, const std::function<void(int)>& pause,
                const Questions& questions);
  // Counts a release. Returns true if the last releases had no effect, so that the caller may slow them down.
  bool has_released_often() { return ++releases_ > 3; }
  // Returns lines that describe what waits outside MPI, for a deadlock report. Equal lines are merged.
  // suspended: ranks that sleep in the host.
  [[nodiscard]] std::string describe_sleepers(const std::vector<int>& rank_processes,
                                              const std::vector<std::uint32_t>& suspended,
                                              SourceLines& lines) const;

 private:
  // How long a condition has held, and how many checks have confirmed it. Time alone proves nothing: a
  // simulator that gets no processor does not check.
  struct Stretch {
    WallClock::time_point since{};
    std::uint32_t checks = 0;
    void restart(WallClock::time_point now) { *this = {now, 0}; }
    [[nodiscard]] bool exceeds(WallClock::duration least, WallClock::time_point now) const;
  };
  void notice_work(WallClock::time_point now);
  void notice_outside(const std::string& wait);
  [[nodiscard]] bool only_run_can_act(WallClock::time_point now, const Questions& questions);

  std::chrono::milliseconds deadlock_wait_;
  std::chrono::milliseconds stall_timeout_;
  std::chrono::milliseconds startup_wait_;
  std::chrono::milliseconds notice_;
  int error_fd_;
  std::optional<std::uint64_t> activity_;
  std::uint32_t releases_ = 0;
  StallWatch stalls_;
  Stretch idle_;
  Stretch no_sleeper_;  // as idle_, and no thread is in a wait with a time limit
  Stretch blocked_;     // as no_sleeper_, and no thread can wake by itself
  std::optional<WallClock::time_point> working_since_;
  WallClock::time_point next_question_{};
  bool has_reported_ = false;
  bool has_reported_outside_ = false;
};

}  // namespace apenet
