// HaloWork: halo exchanges of scripted processes, for measuring how fast a whole machine is simulated.
#pragma once

#include <cstdint>

#include "machine/description.hpp"
#include "runtime/perf/packet_work.hpp"
#include "runtime/scripted/scripted_run.hpp"

namespace apenet {

struct HaloWorkOptions {
  std::uint32_t exchanges = 1;
  std::int64_t bytes = 4096;  // of each message
};

// One process a node. Each exchange: a message to each neighbour of the cube, and one from each; then the
// next. Everything is simulated: doorbell, DMA, packets, credits, contention, completions, software costs.
class HaloWork {
 public:
  // Throws std::invalid_argument as Machine does.
  HaloWork(const MachineDescription& description, const HaloWorkOptions& options);

  // Once: until every process has done its exchanges.
  WorkDone run();

 private:
  ScriptedRun run_;
  std::uint64_t messages_ = 0;
};

}  // namespace apenet
