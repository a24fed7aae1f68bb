// HostWork: decides whether processes still make progress in the host or should be ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace apenet {

// Measures patience in the processes' own CPU time, so a busy host does not shorten it.
class HostWork {
 public:
  // Returns true if these process groups have used cpu_patience of CPU time since the first call, or if for
  // blocked_patience none of them used or requested any. A stopped process (SIGSTOP, a breakpoint) is waited
  // for, and one that strace or a debugger traces gets more CPU time. Reads /proc at most ten times a second,
  // however often it is called.
  bool is_hopeless(const std::vector<int>& groups, std::chrono::milliseconds cpu_patience);

 private:
  using WallClock = std::chrono::steady_clock;
  bool begun_ = false;
  WallClock::time_point next_check_{};
  WallClock::time_point moved_at_{};
  std::int64_t cpu_ticks_ = 0;   // at the last check
  std::int64_t used_ticks_ = 0;  // since the first call
};

}  // namespace apenet
