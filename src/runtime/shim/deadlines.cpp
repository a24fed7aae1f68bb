#include "runtime/shim/deadlines.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/ordered_threads.hpp"

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

timespec host_deadline(clockid_t clock, std::int64_t remaining_ns) {
  timespec now{};
  ipc::host_call(SYS_clock_gettime, clock, &now);
  const std::int64_t ns = now.tv_nsec + remaining_ns % ns_per_s;
  return {.tv_sec = now.tv_sec + remaining_ns / ns_per_s + ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

LimitedWait::LimitedWait(ipc::Client& client, std::int64_t until_ps, Ender ender)
    : client_(client),
      until_ps_(until_ps),
      began_ns_(ipc::host_now_ns()),
      length_ns_(std::max<std::int64_t>(until_ps - now_ps(client), 0) / ps_per_ns),
      is_sleep_(ipc::is_single_threaded() && ender == Ender::own_thread && !is_leaving) {
  if (is_sleep_) return;
  pace_.emplace(&client);
  if (ipc::OrderedThread* const own = ordered_thread()) thread_order().go_outside(*own);
}

std::int64_t LimitedWait::left_ns() const {
  if (is_sleep_) return 0;
  return std::max<std::int64_t>(length_ns_ - (ipc::host_now_ns() - began_ns_), 0);
}

timespec LimitedWait::limit(clockid_t clock) const {
  return host_deadline(clock, left_ns());
}

timespec LimitedWait::left() const {
  const std::int64_t ns = left_ns();
  return {.tv_sec = ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

bool LimitedWait::ends(bool timed_out) {
  if (is_sleep_) {
    const std::int64_t left_ps = until_ps_ - now_ps(client_);
    if (timed_out && left_ps > 0) is_interrupted_ = sleep_ps(client_, left_ps).has_value();
    return !timed_out || left_ps <= 0;
  }
  pace_.reset();  // what follows may take real time that is not the wait's
  if (timed_out) {
    sleep_until(client_, until_ps_);
  } else if (ipc::OrderedThread* const own = ordered_thread()) {
    const OrderedAction action(*own);
  }
  return true;
}

bool LimitedWait::is_left() {
  return std::exchange(is_interrupted_, false);
}

}  // namespace apenet::shim
