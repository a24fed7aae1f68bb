// StoppedWatch: ranks that a signal has stopped before virtual time begins, or after it has ended.
#pragma once

#include <chrono>
#include <set>

#include "runtime/launch/rank_server.hpp"
#include "runtime/launch/session_options.hpp"

namespace apenet {

// Whoever has stopped a rank may let it go on, so the run waits for it. Meanwhile StalledRanks names a
// stopped rank that others wait for in virtual time; before and after, nothing else would.
class StoppedWatch {
 public:
  StoppedWatch(const RankServer& server, const SessionOptions& options)
      : server_(server), patience_(options.busy_notice_ms / 2), error_fd_(options.error_fd) {}

  // Call often. Prints one notice once ranks have been found stopped twice, half of busy_notice_ms apart.
  void check();

 private:
  using WallClock = std::chrono::steady_clock;

  [[nodiscard]] std::set<std::uint32_t> stopped() const;

  const RankServer& server_;
  std::chrono::milliseconds patience_;
  int error_fd_;
  std::set<std::uint32_t> before_;  // those of the last check
  WallClock::time_point next_check_ = WallClock::now() + patience_;
  bool has_reported_ = false;
};

}  // namespace apenet
