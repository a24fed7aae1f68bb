// PollWatch: finds that ranks only poll.
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
//
// A library may also poll by messages. Open MPI repeats an atomic of the target's memory inside MPI_Win_lock
// until the lock is free.
class PollWatch {
 public:
  PollWatch(const SchedulerView& view, const SessionOptions& options)
      : view_(view), notice_(options.busy_notice_ms) {}

  // Call after each step, before the ranks that it has woken act. Returns the notice when it is due, once.
  [[nodiscard]] std::string check();

 private:
  using WallClock = std::chrono::steady_clock;

  // Where a row of steps began.
  struct Begin {
    WallClock::time_point at{};
    std::int64_t time_ps = 0;
    std::uint64_t steps = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] std::int64_t latest_ps() const;
  // The sum over all ranks of the program's calls.
  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] bool all_are_in_calls() const;
  [[nodiscard]] std::string span_since(const Begin& begin) const;

  SchedulerView view_;
  std::chrono::milliseconds notice_;
  std::uint64_t steps_ = 0;
  std::uint64_t activity_ = 0;
  Begin without_message_;
  std::uint64_t calls_ = 0;
  Begin without_call_;
  bool has_reported_ = false;
};

}  // namespace apenet
