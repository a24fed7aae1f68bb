// Stage: while computation is recorded, gives one rank after the other a core that nothing else of the run
// uses.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/launch/core_claim.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// The rank on the stage keeps its caches between its calls, as it would on a machine with a core for each
// rank. The others share the core of the simulator. There is no stage on a host with one core, or if the
// others are on several cores.
//
// Wall time decides when the next rank comes: it changes what is measured, which is no result of the run.
class Stage {
 public:
  // Create before the run chooses its core.
  Stage();

  // Call while no process runs, after the run has chosen its core.
  void turn(SharedMemory& shared, const std::vector<int>& process_ids);

 private:
  using WallClock = std::chrono::steady_clock;

  void build();
  void bring(SharedMemory& shared, const std::vector<int>& process_ids, std::uint32_t rank);

  cpu_set_t allowed_{};
  cpu_set_t others_{};  // where the others run
  bool is_built_ = false;
  std::optional<CoreClaim> claim_;
  std::optional<cpu_set_t> stage_;
  std::optional<std::uint32_t> rank_;  // on the stage
  WallClock::time_point warm_from_{};
  WallClock::time_point until_{};
};

}  // namespace apenet
