// IdleWatch: all ranks wait and the network is empty. Is that for ever?
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/session_facts.hpp"
#include "runtime/launch/stall_watch.hpp"

namespace apenet {

// Between two releases of the ranks (Scheduler::release_idle) it is asked whether nothing will come of more.
// The host knows: where nothing of the ranks' can wake by itself, a moment is enough; where something may, it
// gets its time; where something works, there is no end. Wall time decides when to give up, nothing else.
class IdleWatch {
 public:
  using WallClock = std::chrono::steady_clock;

  explicit IdleWatch(const SessionOptions& options);

  // The ranks are idle; `activity` changes whenever one does anything. Returns for how long they have been.
  WallClock::duration note(std::uint64_t activity);
  // After note(). `pause` lets so many milliseconds pass in which no rank is woken.
  bool is_stuck(bool started, const std::vector<int>& rank_processes, const std::function<void(int)>& pause);
  // Counts a release; true: they bring nothing at once, and need not follow each other so fast.
  bool has_released_often() { return ++releases_ > 3; }
  // Lines about what waits outside MPI, for the report of a deadlock: equal ones together.
  [[nodiscard]] std::string describe_sleepers(const std::vector<int>& rank_processes) const;

 private:
  void notice_work(WallClock::time_point now);

  std::chrono::milliseconds deadlock_wait_;
  std::chrono::milliseconds stall_timeout_;
  std::chrono::milliseconds startup_wait_;
  std::chrono::milliseconds notice_;
  int error_fd_;
  std::optional<std::uint64_t> activity_;
  std::uint32_t releases_ = 0;
  StallWatch stalls_;
  WallClock::time_point idle_since_{};
  WallClock::time_point no_sleeper_since_{};  // and nothing waits for a time
  WallClock::time_point asleep_since_{};      // and nothing may wake by itself
  std::optional<WallClock::time_point> working_since_;
  bool told_ = false;
};

}  // namespace apenet
