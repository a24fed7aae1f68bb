// Cores: the cores on which the processes of a run execute.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "runtime/launch/core_choice.hpp"
#include "runtime/launch/core_claim.hpp"
#include "runtime/launch/session_options.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Keeps the ranks and the simulator on one core where switches between them dominate, because a
// switch costs several times as much across cores, and lets ranks that compute run side by side. An
// overlapped rank (ipc::Run::overlapped) leaves the core for that time only. The core
// is one that no other run has claimed; several cores are all but those that others have claimed. All of this
// changes the speed of a run, never its results. The destructor restores the calling thread's affinity.
class Cores {
 public:
  explicit Cores(CoreUse use) : use_(use) {}
  ~Cores();
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;

  // Call from the simulator's thread when virtual time begins. process_ids: of the ranks; 0 means none.
  void begin(const std::vector<int>& process_ids);
  // Call when `woken` ranks have been granted, and when all ranks wait again.
  void note_round(std::size_t woken);
  void note_all_wait();
  // Call when no rank has a grant. Spreads those of the ranks woken last that are overlapped, and takes back
  // those that no longer are.
  void spread_overlapped(const SchedulerView& scheduler, ProcessIds& process_ids);
  // Moves the processes if that pays. Call some fifty times a second.
  void adapt(const std::vector<int>& process_ids);

 private:
  using WallClock = std::chrono::steady_clock;

  void move_home();
  [[nodiscard]] cpu_set_t one_core() const;
  [[nodiscard]] cpu_set_t free_cores() const;
  void list_free_cores();
  void decide(const std::vector<int>& process_ids, WallClock::time_point now);
  void heed_others(const std::vector<int>& process_ids);
  void move_to(const cpu_set_t& cores, const std::vector<int>& process_ids);
  void close_round(WallClock::time_point now);
  void spread(std::uint32_t rank, int process_id);

  CoreUse use_;
  bool has_begun_ = false;
  bool is_prompt_ = false;  // the simulator's time slice is short
  cpu_set_t allowed_{};     // affinity of the simulator's thread before the run
  cpu_set_t used_{};
  std::size_t home_ = 0;
  std::optional<CoreClaim> claim_;      // claim of the common core
  std::vector<std::size_t> free_;       // the cores of free_cores() when it was last asked, from the home on
  std::set<std::uint32_t> overlapped_;  // the ranks that have left the home
  CoreChoice choice_;
  RoundsTaken taken_;
  std::optional<WallClock::time_point> round_since_;
  std::optional<std::chrono::nanoseconds> runnable_before_;  // nothing: not measured when taken_ began
  WallClock::time_point taken_since_{};
  WallClock::time_point next_decision_{};
  WallClock::time_point next_check_of_others_{};
};

}  // namespace apenet
