// HaloWork: the workload `halo`, to measure how fast a whole machine is simulated.
#pragma once

#include <cstdint>

#include "machine/description.hpp"
#include "runtime/scripted/workload_run.hpp"

namespace apenet {

// The exact work of a measured run, identical on every host.
struct WorkDone {
  std::uint64_t nodes = 0;
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;
  std::uint64_t hops = 0;  // links crossed by packets
  std::uint64_t events = 0;
  Time virtual_time;
};

struct HaloWorkOptions {
  std::uint32_t exchanges = 1;
  std::int64_t bytes = 4096;  // per message
};

// One process per node. In each exchange, every process sends a message to each neighbour in the cube and
// receives one from each. Everything is simulated: doorbell, DMA, packets, credits, contention, completions,
// software costs.
class HaloWork {
 public:
  // Throws std::invalid_argument like Machine.
  HaloWork(const MachineDescription& description, const HaloWorkOptions& options);

  // Runs until every process has finished its exchanges. Call once.
  WorkDone run();

 private:
  WorkloadRun run_;
};

}  // namespace apenet
