// HostWork: whether processes get anywhere in the host, for those that end them when they do not.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace apenet {

// Patience counted in the processes' own CPU time, so a busy host does not shorten it.
class HostWork {
 public:
  // True when these process groups have used so much CPU time since the first call, or when none of them has
  // used any, nor wanted to, for blocked_patience. Looks some ten times a second, however often it is asked.
  bool is_hopeless(const std::vector<int>& groups, std::chrono::milliseconds cpu_patience);

 private:
  using WallClock = std::chrono::steady_clock;
  bool begun_ = false;
  WallClock::time_point next_look_{};
  WallClock::time_point moved_at_{};
  std::int64_t cpu_ticks_ = 0;   // when last seen
  std::int64_t used_ticks_ = 0;  // since the first call
};

}  // namespace apenet
