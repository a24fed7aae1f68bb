// ProcessIds: which process of the host stands for each rank.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/scheduler/mapping.hpp"

namespace apenet {

// Also of a process that nobody has waited for yet.
bool has_ended(std::uint32_t process_id);

// A process writes its own number into its block, and the simulator later signals, watches and reads the
// process of that number: so it is read once, and taken only if that process has mapped this simulation.
class ProcessIds {
 public:
  explicit ProcessIds(Mapping& mapping) : mapping_(mapping), known_(mapping.header().process_count) {}

  // 0: nobody has claimed the rank yet, who has ended before it was asked for, or was refused. Throws
  // RankError when it is refused, once.
  std::uint32_t of(std::uint32_t rank);

 private:
  struct Known {
    std::uint32_t process_id = 0;
    bool refused = false;
  };
  Mapping& mapping_;
  std::vector<Known> known_;
};

}  // namespace apenet
