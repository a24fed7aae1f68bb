// StartWatch: ranks that sleep in the host before virtual time begins, while others wait for them or sleep,
// too.
#pragma once

#include <chrono>

#include "runtime/launch/rank_server.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/launch/stall_watch.hpp"
#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

// Virtual time begins when every rank has passed MPI_Init or enabled its first endpoint. A rank that waits in
// the host before that, for one that has come there, would keep the run waiting without a word. It may also
// wait for something outside the run, so the notice has no other effect.
class StartWatch {
 public:
  StartWatch(const RankTable& ranks, const RankServer& server, const SessionOptions& options,
             SourceLines& lines);

  // Whether the next check is due. Checks are rare: each examines all processes of the run.
  [[nodiscard]] bool is_due() const { return !has_reported_ && WallClock::now() >= next_check_; }
  // Prints one notice once nothing of the run has worked during the stall timeout.
  void check();

 private:
  using WallClock = std::chrono::steady_clock;

  const RankTable& ranks_;
  const RankServer& server_;
  std::chrono::milliseconds patience_;
  int error_fd_;
  SourceLines& lines_;
  StallWatch stalls_;
  bool has_begun_ = false;
  bool has_reported_ = false;
  WallClock::time_point next_check_;
  WallClock::time_point blocked_since_;
};

}  // namespace apenet
