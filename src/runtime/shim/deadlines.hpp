// Deadlines of the program's waits, on its virtual clocks and on the host's.
#pragma once

#include <cstdint>
#include <ctime>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {

// What the host's functions accept. What they refuse is theirs to refuse.
[[nodiscard]] inline bool is_valid(const timespec* time) {
  return !is_null(time) && time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < ns_per_s;
}

// Of a valid time; what lies beyond the end of virtual time ends there.
[[nodiscard]] std::int64_t to_ps(const timespec& time);
[[nodiscard]] timespec to_timespec(std::int64_t ps);

// A deadline on one of the two virtual clocks, counted from the begin of virtual time; "for ever" is 46 days.
// Which clock a condition variable or a timer uses cannot be asked; the bases lie years apart, so the nearer
// one is meant.
[[nodiscard]] std::int64_t deadline_ps(const timespec& deadline);

// The same deadline on the host's clock.
[[nodiscard]] timespec host_deadline(ipc::Client& client, clockid_t clock, std::int64_t virtual_ps);

// The process sleeps until then, if that lies ahead.
void sleep_until(ipc::Client& client, std::int64_t virtual_ps);

// wait(deadline on the host's clock), whose result says whether it has timed out. The wait is made for real,
// as long as it would last; if it runs out, the process's clock moves to the deadline.
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

}  // namespace apenet::shim
