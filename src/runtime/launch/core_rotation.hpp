// CoreRotation: while computation is recorded, gives one rank after the other exclusive use of a core.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/launch/core_claim.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// The rank on the exclusive core keeps its caches between its calls, as it would on a machine with a core for
// each rank. The others share the core of the simulator. There is no exclusive core on a host with one core,
// or if the others are on several cores.
//
// Wall time decides when the next rank comes: it changes what is measured, which is no result of the run.
class CoreRotation {
 public:
  // Create before the run chooses its core.
  CoreRotation();

  // Call while no process runs, after the run has chosen its core.
  void rotate(SharedMemory& shared, const std::vector<int>& process_ids);

 private:
  using WallClock = std::chrono::steady_clock;

  void choose_core();
  void move_in(SharedMemory& shared, const std::vector<int>& process_ids, std::uint32_t rank);

  cpu_set_t allowed_{};
  cpu_set_t others_{};  // where the others run
  bool has_chosen_ = false;
  std::optional<CoreClaim> claim_;
  std::optional<cpu_set_t> core_;
  std::optional<std::uint32_t> rank_;  // on the exclusive core
  WallClock::time_point warm_from_{};
  WallClock::time_point until_{};
};

}  // namespace apenet
