#include "runtime/launch/poll_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

namespace apenet {
namespace {

// A clock of the host read in each step would cost more than it tells.
constexpr std::uint32_t steps_between_checks = 64;
constexpr std::uint32_t least_steps = 1024;  // ranks that sleep for long take fewer

// No collective of the ranks that fit on a host takes so many messages of each rank, unless it moves more in
// one.
constexpr std::uint64_t least_messages = 4096;
constexpr std::uint64_t most_bytes = 256;
constexpr std::string_view goes_on = "so the run goes on; --limit-virtual and --limit-wall end it\n";

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

std::uint64_t PollWatch::calls() const {
  std::uint64_t calls = 0;
  for (std::uint32_t rank = 0; rank < view_.ranks.size(); ++rank) calls += view_.ranks.calls(rank);
  return calls;
}

// What a rank sends outside of MPI's calls, by apelib, GASNet or libfabric itself, may be its work: nobody
// counts the calls of these.
bool PollWatch::all_are_in_calls() const {
  for (std::uint32_t rank = 0; rank < view_.ranks.size(); ++rank) {
    switch (view_.ranks.state_now(rank)) {
      case RankState::computing_ended:
      case RankState::ended:
      case RankState::finished:
        break;
      default:
        if (!view_.ranks.is_in_call(rank)) return false;
    }
  }
  return true;
}

std::string PollWatch::span_since(const Begin& begin) const {
  return "virtual time has passed from " + in_seconds(begin.time_ps) + " s to " + in_seconds(latest_ps());
}

std::string PollWatch::check() {
  if (has_reported_ || !view_.ranks.started() || ++steps_ % steps_between_checks != 0) return {};
  const auto now = WallClock::now();
  const RunTotals& totals = view_.delivery.totals();
  const Begin here{now, latest_ps(), steps_, totals.messages, totals.bytes};
  const auto restarts = [&here](Begin& begin, std::uint64_t& known, std::uint64_t found) {
    if (std::exchange(known, found) != found || begin.steps == 0) begin = here;
  };
  restarts(without_message_, activity_, view_.ranks.noted_activity());
  restarts(without_call_, calls_, calls());
  const auto lasts = [&](const Begin& begin) {
    return steps_ - begin.steps >= least_steps && now - begin.at >= notice_;
  };
  if (lasts(without_message_)) {
    has_reported_ = true;
    return "apenet: ranks only poll: " + span_since(without_message_) +
           " s without any message. A rank may still give up or send, " + std::string(goes_on);
  }
  const std::uint64_t messages = totals.messages - without_call_.messages;
  const std::uint64_t bytes = totals.bytes - without_call_.bytes;
  if (!lasts(without_call_) || messages < least_messages * view_.ranks.size() ||
      bytes > most_bytes * messages || !all_are_in_calls())
    return {};
  has_reported_ = true;
  return "apenet: ranks only poll, by messages: " + span_since(without_call_) + " s and " +
         std::to_string(messages) +
         " small messages have been sent, but no rank has begun another MPI call. They may wait for a lock "
         "that "
         "is never free. A rank may still act later, " +
         std::string(goes_on);
}

}  // namespace apenet
