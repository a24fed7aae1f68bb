// Converts deadlines between the program's virtual clocks and the host's clocks.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {

// Whether the host's functions accept the time. Invalid times are passed on, and the host reports the error.
[[nodiscard]] inline bool is_valid(const timespec* time) {
  return !is_null(time) && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < ns_per_s;
}

// Requires a valid time. Times after the end of virtual time are clamped to it.
[[nodiscard]] std::int64_t to_ps(const timespec& time);
[[nodiscard]] timespec to_timespec(std::int64_t ps);

// Converts a deadline on one of the two virtual clocks to the time since virtual time began, clamped as by
// to_ps(). The clock that a condition variable or timer uses cannot be queried; the bases lie years
// apart, so the nearer base is the right one.
[[nodiscard]] std::int64_t deadline_ps(const timespec& deadline);

// A deadline of a process that has yet to begin virtual time, on the host's clock. Dates are larger than any
// other time of the host's.
class EarlyDeadline {
 public:
  explicit EarlyDeadline(const timespec* deadline);
  EarlyDeadline(const EarlyDeadline&) = delete;
  EarlyDeadline& operator=(const EarlyDeadline&) = delete;
  [[nodiscard]] const timespec* get() const { return deadline_; }

 private:
  const timespec* deadline_;
  timespec shifted_{};
};

// The time on the host's clock after this one has passed.
[[nodiscard]] timespec host_deadline(clockid_t clock, std::int64_t remaining_ns);

// A wait in the host with a time limit, which takes as long there as it would in virtual time. If it times
// out, the thread's clock advances to the limit. In a process with several threads, a wait for one of them
// also ends when the process's clock has passed the limit, or when none of them can act before it
// (docs/internals/threads.md). In a process with one thread, such a wait is a sleep between two tries.
class LimitedWait {
 public:
  enum class Ender : std::uint8_t {
    own_thread,  // only a thread of this process
    thread,      // also one of a process with which this one shares memory
    outside,
  };
  // condition: at which the thread waits, or nullptr.
  LimitedWait(ipc::Client& client, std::int64_t until_ps, Ender ender, pthread_cond_t* condition = nullptr);
  // Until when the host is to wait next, on its clock.
  [[nodiscard]] timespec next(clockid_t clock);
  // The same as a duration.
  [[nodiscard]] timespec left();
  // Call when the host's wait has ended. Returns whether the whole wait has ended.
  [[nodiscard]] bool ends(bool timed_out);
  // Call between two parts. Whether the whole wait has ended, because a signal has come between them.
  [[nodiscard]] bool is_left();
  // Whether the limit ended it.
  [[nodiscard]] bool timed_out() const { return timed_out_; }

 private:
  [[nodiscard]] std::int64_t left_ns();

  ipc::Client& client_;
  std::optional<HostPace> pace_;
  std::int64_t until_ps_;
  std::int64_t began_ns_;
  std::int64_t length_ns_;  // in the host
  std::uint32_t signals_;   // of timers that had been sent
  ipc::ThreadClock* clock_ = nullptr;
  Ender ender_;
  bool is_sleep_ = false;
  bool is_interrupted_ = false;  // that sleep
  bool is_last_try_ = false;
  bool is_in_parts_ = false;
  bool timed_out_ = false;
};

// Calls wait(deadline on the host's clock), in parts if it waits for another thread, which leaves a trace
// when it ends a wait. A condition leaves none: the wait for one is not divided. interrupted: the result if a
// handler has run between two parts, for a wait that a signal ends.
template <typename Result, typename Wait>
Result wait_until(ipc::Client& client, const timespec& deadline, clockid_t host_clock, Result timed_out,
                  Wait wait, LimitedWait::Ender ender = LimitedWait::Ender::own_thread,
                  pthread_cond_t* condition = nullptr, std::optional<Result> interrupted = {}) {
  if (!is_valid(&deadline)) return wait(&deadline);
  LimitedWait limited(client, deadline_ps(deadline), ender, condition);
  for (;;) {
    const timespec host = limited.next(host_clock);
    const Result result = wait(&host);
    if (limited.ends(result == timed_out)) return limited.timed_out() ? timed_out : result;
    if (interrupted && limited.is_left()) return *interrupted;
  }
}

// Calls wait(), a wait of `duration_ps` for something outside the process. If is_timeout(result), the
// thread's clock advances to its end.
template <typename Wait, typename IsTimeout>
auto wait_for(ipc::Client& client, std::int64_t duration_ps, IsTimeout is_timeout, Wait wait) {
  const std::int64_t from_ps = now_ps(client);
  const std::int64_t until_ps = from_ps + std::min(duration_ps, ipc::end_of_time_ps - from_ps);
  LimitedWait limited(client, until_ps, LimitedWait::Ender::outside);
  const auto result = wait();
  const int error = errno;
  static_cast<void>(limited.ends(is_timeout(result)));
  errno = error;
  return result;
}

}  // namespace apenet::shim
