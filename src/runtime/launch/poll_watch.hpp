// PollWatch: finds that ranks only poll while nothing is under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "runtime/launch/session_options.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Such ranks may wait for ever (a circle of MPI_Test, MPI_Comm_accept to which nobody connects), and virtual
// time passes, so that the run is no deadlock. Nor can it be ended: a program may give up by a clock, or
// count its polls and then send. One notice says so.
class PollWatch {
 public:
  PollWatch(const SchedulerView& view, const SessionOptions& options)
      : view_(view), notice_(options.busy_notice_ms) {}

  // Call after each step, before the ranks that it has woken act. Returns the notice when it is due, once.
  [[nodiscard]] std::string check();

 private:
  using WallClock = std::chrono::steady_clock;

  [[nodiscard]] std::int64_t latest_ps() const;

  SchedulerView view_;
  std::chrono::milliseconds notice_;
  std::uint32_t steps_ = 0;  // since a message was under way
  std::uint64_t activity_ = 0;
  std::int64_t since_ps_ = 0;
  WallClock::time_point since_{};
  bool has_reported_ = false;
};

}  // namespace apenet
