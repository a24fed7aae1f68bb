// ProcessIds: the host process of each rank.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// Returns true also for a zombie, which nobody has waited for yet.
bool has_ended(std::uint32_t process_id);

// A process writes its own id into its block, and the simulator later signals, watches and reads the process
// with that id. Therefore the id is read once, and accepted only if that process has mapped this simulation.
class ProcessIds {
 public:
  explicit ProcessIds(SharedMemory& shared) : shared_(shared), known_(shared.header().process_count) {}

  // Returns 0 if no process has claimed the rank, if the process ended before this was called, or if its id
  // was refused. Throws RankError the first time an id is refused.
  std::uint32_t of(std::uint32_t rank);
  // As of(), for every rank.
  std::vector<int> all();

 private:
  struct Known {
    std::uint32_t process_id = 0;
    bool refused = false;
  };
  SharedMemory& shared_;
  std::vector<Known> known_;
};

}  // namespace apenet
