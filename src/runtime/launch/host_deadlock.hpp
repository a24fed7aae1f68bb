// HostDeadlock: detects ranks that sleep in the host, each for another one, for ever.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"
#include "runtime/launch/rank_server.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/launch/source_lines.hpp"
#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

// For the scheduler such ranks run, so IdleWatch is never asked: a lone rank that joins a thread that waits
// for ever, ranks that read from each other's pipes, before virtual time, in it, or after MPI_Finalize.
// Nothing can happen any more if no thread of the run has run for a while, and only such threads can end each
// wait (HostWaits). What waits for time, or for anything outside the run, is waited for without limit; what
// only somebody unknown could end, as with a signal, gets the stall timeout.
class HostDeadlock {
 public:
  HostDeadlock(const RankTable& ranks, const RankServer& server, const SessionOptions& options)
      : ranks_(ranks),
        server_(server),
        patience_(options.deadlock_wait_ms),
        unlikely_patience_(options.stall_timeout_ms) {}

  // Call when the scheduler can take a step.
  void note_progress() { since_.reset(); }
  // Call while it cannot. Returns true once nothing can happen any more.
  [[nodiscard]] bool is_stuck();
  // Lines for the report: what each thread waits for.
  [[nodiscard]] std::string describe(SourceLines& lines) const;

 private:
  using WallClock = std::chrono::steady_clock;
  using ThreadKey = std::pair<int, int>;  // process, thread

  [[nodiscard]] std::vector<int> rank_processes() const;
  [[nodiscard]] bool others_may_go_on() const;
  // Returns false if a thread is awake.
  [[nodiscard]] bool check(const std::vector<int>& processes);
  // Whether a thread of the MPI library may yet end the wait of the process in MPI_Finalize.
  [[nodiscard]] bool awaits_library(int process_id);
  // Who can end the waits of all threads.
  [[nodiscard]] WaitEnd end_of_waits(const std::vector<int>& processes);

  const RankTable& ranks_;
  const RankServer& server_;
  std::chrono::milliseconds patience_;
  std::chrono::milliseconds unlikely_patience_;
  std::optional<WallClock::time_point> since_;  // no step has been possible
  WallClock::time_point next_check_{};
  WallClock::time_point blocked_since_{};
  std::uint32_t checks_ = 0;
  WallClock::time_point next_examination_{};
  std::map<int, std::uint32_t> family_;
  std::map<ThreadKey, Pulse> threads_;  // all that sleep, except for the MPI library's own
  LibraryThreads library_threads_;
};

}  // namespace apenet
