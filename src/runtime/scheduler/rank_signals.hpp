// RankSignals: signals that ranks send each other, and those from outside that end a sleep.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/simulation.hpp"
#include "runtime/scheduler/lower_bounds.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// A signal reaches a rank when the lookahead has passed since it was sent: no earlier can it end a wait of
// the rank without a breach of what others know. The rank takes it at the first point at which its timers
// would end something. A rank that is blocked in the host, or has left, gets it from the host.
class RankSignals {
 public:
  RankSignals(SharedMemory& shared, const Simulation& simulation, RankTable& ranks, const LowerBounds& bounds,
              ProcessIds& process_ids);

  // Call in the order of the requests' times. Requires RequestVerb::signal.
  void send(const ipc::Request& request);
  // Ends the sleeps in which a handler of a signal from outside has run, at this time at the earliest.
  void end_interrupted(std::int64_t passed_ps);
  // Whether there may be one.
  [[nodiscard]] bool any_is_interrupted() const { return shared_.running().interrupted.load() != 0; }

 private:
  void end_wait(std::uint32_t rank, std::int64_t when_ps);

  SharedMemory& shared_;
  const Simulation& simulation_;
  RankTable& ranks_;
  const LowerBounds& bounds_;
  ProcessIds& process_ids_;
  std::vector<std::uint32_t> heads_;  // one for each rank's ring
};

}  // namespace apenet
