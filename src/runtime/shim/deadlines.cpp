#include "runtime/shim/deadlines.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "runtime/ipc/host_call.hpp"

namespace apenet::shim {

std::int64_t to_ps(const timespec& time) {
  constexpr std::int64_t most_s = ipc::end_of_time_ps / ps_per_s;
  return std::min<std::int64_t>(time.tv_sec, most_s) * ps_per_s + time.tv_nsec * ps_per_ns;
}

timespec to_timespec(std::int64_t ps) {
  return {.tv_sec = ps / ps_per_s, .tv_nsec = ps % ps_per_s / ps_per_ns};
}

std::int64_t deadline_ps(const timespec& deadline) {
  const std::int64_t from_realtime = deadline.tv_sec - realtime_base_s;
  const std::int64_t from_monotonic = deadline.tv_sec - monotonic_base_s;
  const std::int64_t base =
      std::abs(from_realtime) < std::abs(from_monotonic) ? realtime_base_s : monotonic_base_s;
  if (deadline.tv_sec < base) return 0;
  return to_ps({.tv_sec = deadline.tv_sec - base, .tv_nsec = deadline.tv_nsec});
}

EarlyDeadline::EarlyDeadline(const timespec* deadline) : deadline_(deadline) {
  constexpr std::int64_t most_s = std::numeric_limits<std::int64_t>::max() / 2;
  if (!is_valid(deadline) || deadline->tv_sec <= monotonic_base_s || deadline->tv_sec > most_s) return;
  shifted_ = {.tv_sec = deadline->tv_sec + early_shift_s(), .tv_nsec = deadline->tv_nsec};
  deadline_ = &shifted_;
}

timespec host_deadline(ipc::Client& client, clockid_t clock, std::int64_t virtual_ps) {
  timespec now{};
  ipc::host_call(SYS_clock_gettime, clock, &now);
  const std::int64_t remaining_ps = std::max<std::int64_t>(virtual_ps - now_ps(client), 0);
  const std::int64_t ns = now.tv_nsec + remaining_ps % ps_per_s / ps_per_ns;
  return {.tv_sec = now.tv_sec + remaining_ps / ps_per_s + ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

}  // namespace apenet::shim
