// SleepWatch: whether ranks that hold up all others are asleep in the host.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/launch/host_thread.hpp"

namespace apenet {

// A rank that does not come to the simulator may wait, in a socket, a pipe or shared memory, for another
// rank, which waits for its turn in the simulation. Nobody but the host knows, and it knows only that the
// rank sleeps: so this is decided by real time, with care. It is asleep when each of its threads is in such a
// wait and has not run for `patience`, at no look has any thread of the run's processes run or waited for a
// disk, and none that a rank has started sleeps for a time.
class SleepWatch {
 public:
  using WallClock = std::chrono::steady_clock;

  // Looks at all processes of the run, every look_interval at most: true when these ranks are all asleep. A
  // process id 0 is not known; launcher_id: of what started the ranks, or 0.
  bool are_asleep(const std::vector<std::uint32_t>& ranks, const std::vector<int>& rank_processes,
                  int launcher_id);
  // None of their threads has run since that said so, or they have slept again for a while.
  bool still_asleep(const std::vector<std::uint32_t>& ranks);
  // The others have gone on without these ranks.
  void note_left_out(const std::vector<std::uint32_t>& ranks);
  // What that means for the run, one line for each thing that ranks waited for.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  struct Rank {
    int process_id = 0;
    std::map<int, Pulse> threads;
    std::string waits_for;            // of the first thread that waits for what threads of others do
    bool may_wake_by_itself = false;  // one of its threads has a time limit, or it has started a process
    WallClock::time_point since{};    // when all this was so first
    std::uint32_t looks = 0;
  };
  [[nodiscard]] static bool look(int process_id, Rank& rank);
  [[nodiscard]] bool something_works(std::vector<int> rank_processes, int launcher_id);
  [[nodiscard]] bool has_slept(std::uint32_t number, const Rank& rank, WallClock::time_point now) const;

  std::map<std::uint32_t, Rank> ranks_;
  std::map<std::uint32_t, std::string> left_out_;  // for what they waited
  WallClock::time_point next_look_{};
};

}  // namespace apenet
