#include "runtime/shim/deadlines.hpp"

#include <sys/single_threaded.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/own_threads.hpp"

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

LimitedWait::LimitedWait(ipc::Client& client, std::int64_t until_ps, Ender ender, pthread_cond_t* condition)
    : client_(client),
      until_ps_(until_ps),
      began_ns_(ipc::host_now_ns()),
      length_ns_(std::max<std::int64_t>(until_ps - now_ps(client), 0) / ps_per_ns),
      signals_(VirtualTimers::of_process().sent_signals()),
      ender_(ender) {
  const bool leaves = client.progress().leaves();
  is_sleep_ = __libc_single_threaded != 0 && ender == Ender::own_thread && !leaves;
  if (is_sleep_) return;
  pace_.emplace(&client);
  if (__libc_single_threaded != 0 || leaves) return;
  clock_ = client.begin_host_wait(until_ps, ender == Ender::outside, condition);
  is_in_parts_ = clock_ != nullptr && ender != Ender::outside && condition == nullptr;
}

// The parts grow with the wait, and cost little of it.
std::int64_t LimitedWait::left_ns() {
  constexpr std::int64_t shortest_ns = 100'000;
  constexpr std::int64_t longest_ns = 20'000'000;
  if (is_sleep_ || is_last_try_) return 0;
  const std::int64_t passed_ns = ipc::host_now_ns() - began_ns_;
  const std::int64_t left_ns = std::max<std::int64_t>(length_ns_ - passed_ns, 0);
  if (clock_ == nullptr || ender_ == Ender::outside) return left_ns;
  if (client_.rank_time_ps() >= until_ps_) return 0;
  return is_in_parts_ ? std::min(left_ns, std::clamp(passed_ns / 4, shortest_ns, longest_ns)) : left_ns;
}

timespec LimitedWait::next(clockid_t clock) {
  return host_deadline(clock, left_ns());
}

timespec LimitedWait::left() {
  const std::int64_t ns = left_ns();
  return {.tv_sec = ns / ns_per_s, .tv_nsec = ns % ns_per_s};
}

bool LimitedWait::ends(bool timed_out) {
  if (is_sleep_) {
    const std::int64_t left_ps = until_ps_ - now_ps(client_);
    timed_out_ = timed_out && left_ps <= 0;
    if (timed_out && left_ps > 0) is_interrupted_ = sleep_ps(client_, left_ps).has_value();
    return !timed_out || left_ps <= 0;
  }
  if (clock_ == nullptr) {
    pace_.reset();  // what follows may take real time that is not the wait's
    timed_out_ = timed_out;
    if (timed_out) sleep_until(client_, until_ps_);
    return true;
  }
  const bool is_over = is_last_try_ || (ender_ != Ender::outside && client_.rank_time_ps() >= until_ps_) ||
                       ipc::host_now_ns() - began_ns_ >= length_ns_;
  if (timed_out && is_in_parts_ && !is_over) {
    // Another thread may have acted since this part has ended.
    is_last_try_ = ender_ == Ender::own_thread && client_.is_first_to_act(*clock_);
    return false;
  }
  pace_.reset();
  timed_out_ = timed_out || (clock_->is_rung != 0 && client_.rank_time_ps() >= until_ps_);
  client_.end_host_wait(*clock_, until_ps_, timed_out_);
  return true;
}

bool LimitedWait::is_left() {
  if (is_sleep_) return std::exchange(is_interrupted_, false);
  if (!VirtualTimers::of_process().has_interrupted(signals_)) return false;
  client_.end_host_wait(*clock_, until_ps_, false);
  return true;
}

}  // namespace apenet::shim
