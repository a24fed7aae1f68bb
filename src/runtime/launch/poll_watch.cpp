#include "runtime/launch/poll_watch.hpp"

#include <algorithm>
#include <cstdio>

namespace apenet {
namespace {

// A clock of the host read in each step would cost more than it tells.
constexpr std::uint32_t steps_between_checks = 64;
constexpr std::uint32_t least_steps = 1024;  // ranks that sleep for long take fewer

std::string in_seconds(std::int64_t ps) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", static_cast<double>(ps) * 1e-12);
  return text;
}

}  // namespace

std::int64_t PollWatch::latest_ps() const {
  std::int64_t latest_ps = view_.ranks.epoch_ps();
  for (std::uint32_t rank = 0; rank < view_.ranks.size(); ++rank)
    latest_ps = std::max(latest_ps, view_.ranks.clock_ps(rank));
  return latest_ps - view_.ranks.epoch_ps();
}

std::string PollWatch::check() {
  if (has_reported_ || !view_.ranks.started() || ++steps_ % steps_between_checks != 0) return {};
  const auto now = WallClock::now();
  if (const std::uint64_t activity = view_.ranks.noted_activity(); activity != activity_) {
    activity_ = activity;
    since_ = now;
    since_ps_ = latest_ps();
    steps_ = 0;
    return {};
  }
  if (steps_ < least_steps || now - since_ < notice_) return {};
  has_reported_ = true;
  return "apenet: ranks only poll: virtual time has passed from " + in_seconds(since_ps_) + " s to " +
         in_seconds(latest_ps()) +
         " s without any message. A rank may still give up or send, so the run goes on; --limit-virtual and "
         "--limit-wall end it\n";
}

}  // namespace apenet
