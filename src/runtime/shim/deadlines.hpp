// Converts deadlines between the program's virtual clocks and the host's clocks.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

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

// The same deadline on the host's clock.
[[nodiscard]] timespec host_deadline(ipc::Client& client, clockid_t clock, std::int64_t virtual_ps);

// Calls wait(deadline on the host's clock). The wait takes as long in the host as it would in virtual time.
// If it returns `timed_out`, the process's clock advances to the deadline.
template <typename Result, typename Wait>
Result wait_until(ipc::Client& client, const timespec& deadline, clockid_t host_clock, Result timed_out,
                  Wait wait) {
  if (!is_valid(&deadline)) return wait(&deadline);
  const std::int64_t until_ps = deadline_ps(deadline);
  const timespec host = host_deadline(client, host_clock, until_ps);
  const Result result = wait(&host);
  if (result == timed_out) sleep_until(client, until_ps);
  return result;
}

// Calls wait() for a wait of `duration_ps`, which takes as long in the host. If is_timeout(result), the
// process's clock advances to its end; another thread may have advanced it meanwhile.
template <typename Wait, typename IsTimeout>
auto wait_for(ipc::Client& client, std::int64_t duration_ps, IsTimeout is_timeout, Wait wait) {
  const std::int64_t from_ps = now_ps(client);
  const std::int64_t until_ps = from_ps + std::min(duration_ps, ipc::end_of_time_ps - from_ps);
  const auto result = wait();
  if (!is_timeout(result)) return result;
  const int error = errno;
  sleep_until(client, until_ps);
  errno = error;
  return result;
}

}  // namespace apenet::shim
