// SleepWatch: detects that the ranks that stall all others are blocked in the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"

namespace apenet {

// A rank that does not return to the simulator may wait in a socket, a pipe or shared memory for another
// rank, which itself waits for a grant. The host only shows that the rank sleeps, so real
// time has to decide. A rank is blocked if each of its threads is in such a wait and has not run for
// `patience`, no thread of the run was found running or waiting for a disk, and no process started by the
// rank sleeps for a limited time.
class SleepWatch {
 public:
  using WallClock = std::chrono::steady_clock;

  explicit SleepWatch(HostWaits::Queries queries) : queries_(std::move(queries)) {}

  // Checks all processes of the run, at most once per interval. Returns true if all these ranks are
  // blocked. A process id of 0 means unknown. launcher_id: the process that started the ranks, or 0.
  bool are_blocked(const std::vector<std::uint32_t>& ranks, const std::vector<int>& rank_processes,
                   int launcher_id);
  // Returns true if none of their threads has run since are_blocked() returned true, or if they have slept
  // again for `rest`.
  bool still_blocked(const std::vector<std::uint32_t>& ranks);
  // Call when the other ranks have continued without these.
  void note_suspended(const std::vector<std::uint32_t>& ranks);
  // Warnings for the report of the run, one for each kind of wait.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Rank {
    int process_id = 0;
    std::map<int, Pulse> threads;
    std::string waits_for;            // the kind of wait, preferably one that only another rank can end
    bool may_wake_by_itself = false;  // a thread has a time limit, or the rank has started a process
    bool needs_proof = false;         // the kind of wait does not tell that only another rank can end it
    WallClock::time_point since{};    // the threads have not run since then
    std::uint32_t checks = 0;
  };
  [[nodiscard]] bool check(int process_id, Rank& rank);
  [[nodiscard]] bool something_works(std::vector<int> rank_processes, int launcher_id);
  [[nodiscard]] bool has_slept(std::uint32_t number, const Rank& rank, WallClock::time_point now) const;
  // Whether nobody outside the run is known who could end the waits of these ranks and of the processes that
  // they started, and none of them has run since the last call.
  [[nodiscard]] bool wait_for_others(const std::vector<std::uint32_t>& ranks,
                                     const std::vector<int>& rank_processes, int launcher_id);

  HostWaits::Queries queries_;
  std::map<std::uint32_t, Rank> ranks_;
  std::map<std::uint32_t, std::string> suspended_;  // what each rank waited for
  WallClock::time_point next_check_{};
  WallClock::time_point next_proof_{};
  std::map<std::pair<int, int>, Pulse> proven_;  // by process and thread
  LibraryThreads library_threads_;
};

}  // namespace apenet
