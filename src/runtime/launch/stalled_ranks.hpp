// StalledRanks: handles the ranks that stall all others because they run on in the host.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/launch/rank_server.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/launch/sleep_watch.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Prints one notice if a rank keeps the run waiting for long; the notice has no other effect. Suspends the
// ranks that are blocked in the host: ranks that communicate there would wait for each other forever if one
// of them waits for a grant. For the same reason suspends the ranks that share memory and have run for a long
// time: they may spin there, which nobody can tell from computing.
class StalledRanks {
 public:
  StalledRanks(Scheduler& scheduler, const RankServer& server, const SessionOptions& options,
               SourceLines& lines)
      : scheduler_(scheduler),
        view_(scheduler.view()),
        server_(server),
        lines_(lines),
        notice_(options.busy_notice_ms),
        spin_patience_(options.stall_timeout_ms),
        error_fd_(options.error_fd),
        sleep_(server.wait_queries()) {}
  StalledRanks(const StalledRanks&) = delete;
  StalledRanks& operator=(const StalledRanks&) = delete;

  // Call when no rank runs any more.
  void note_all_wait() { busy_since_.reset(); }
  // Call when ranks run and none of them has begun to wait for a while.
  void note_busy();
  // Has an effect only after note_busy().
  void suspend_sleepers();
  // Has an effect only after note_busy().
  void suspend_spinners();
  // Whether the next step has to wait for a suspended rank. A suspended rank that has woken counts as
  // running.
  [[nodiscard]] bool waits_for_suspended();
  // Whether only threads of the run can end what its threads wait for.
  [[nodiscard]] bool only_run_can_act(const std::vector<int>& rank_processes) const;
  // "rank 0 waits for a connection to ...": of a rank that has been suspended, if something outside the run
  // can end its wait; empty if there is none.
  [[nodiscard]] std::string outside_wait(const std::vector<int>& rank_processes);
  // Warnings for the report of the run.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  using WallClock = std::chrono::steady_clock;

  // What the rank does in the host.
  [[nodiscard]] std::string describe_busy(std::uint32_t rank, const std::vector<int>& processes);

  Scheduler& scheduler_;
  SchedulerView view_;
  const RankServer& server_;
  SourceLines& lines_;
  std::chrono::milliseconds notice_;
  std::chrono::milliseconds spin_patience_;
  int error_fd_;
  SleepWatch sleep_;
  std::optional<WallClock::time_point> busy_since_;
  std::vector<std::uint32_t> calls_before_;  // one for each rank, read when that began
  bool has_reported_ = false;
  std::set<std::uint32_t> spinners_;   // suspended while they ran
  std::set<std::uint32_t> have_spun_;  // all that were
};

}  // namespace apenet
