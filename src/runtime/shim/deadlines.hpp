// Converts deadlines between the program's virtual clocks and the host's clocks.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <optional>

#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {

// Whether the host's functions accept the time. Invalid times are passed on, and the host reports the error.
[[nodiscard]] inline bool is_valid(const timespec* time) {
  return ipc::is_readable(time, sizeof *time) && time->tv_sec >= 0 && time->tv_nsec >= 0 &&
         time->tv_nsec < ns_per_s;
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
// out, the thread's clock advances to the limit. Other threads do not wait for this one meanwhile. In a
// process with one thread, a wait for one of its threads is a sleep between two tries.
class LimitedWait {
 public:
  enum class Ender : std::uint8_t {
    own_thread,  // only a thread of this process
    outside,     // also another process
  };
  LimitedWait(ipc::Client& client, std::int64_t until_ps, Ender ender);
  // Until when the host is to wait, on its clock.
  [[nodiscard]] timespec limit(clockid_t clock) const;
  // The same as a duration.
  [[nodiscard]] timespec left() const;
  // Call when the host's wait has ended. Returns whether the whole wait has ended.
  [[nodiscard]] bool ends(bool timed_out);
  // Call between two tries. Whether the whole wait has ended, because a signal has come between them.
  [[nodiscard]] bool is_left();

 private:
  [[nodiscard]] std::int64_t left_ns() const;

  ipc::Client& client_;
  std::optional<HostPace> pace_;
  std::int64_t until_ps_;
  std::int64_t began_ns_;
  std::int64_t length_ns_;  // in the host
  bool is_sleep_;
  bool is_interrupted_ = false;  // that sleep
};

// Calls wait(deadline on the host's clock), in several tries. interrupted: the result if a handler of a
// signal has run between two, for a wait that a signal ends.
template <typename Result, typename Wait>
Result wait_until(ipc::Client& client, const timespec& deadline, clockid_t host_clock, Result timed_out,
                  Wait wait, LimitedWait::Ender ender = LimitedWait::Ender::own_thread,
                  std::optional<Result> interrupted = {}) {
  if (!is_valid(&deadline)) return wait(&deadline);
  LimitedWait limited(client, deadline_ps(deadline), ender);
  for (;;) {
    const timespec host = limited.limit(host_clock);
    const Result result = wait(&host);
    if (limited.ends(result == timed_out)) return result;
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
