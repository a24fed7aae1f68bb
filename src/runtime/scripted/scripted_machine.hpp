// ScriptedMachine: a machine whose users are in the simulator, and what observes it: ranks with a message
// engine (RankMachine: GOAL, ranks in Python), or processes that use their cards directly (CardRun: the tests
// of cards, and workloads at the layer of the card).
#pragma once

#include <utility>
#include <vector>

#include "kernel/simulation.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {

class ScriptedMachine {
 public:
  ScriptedMachine(const ScriptedMachine&) = delete;
  ScriptedMachine& operator=(const ScriptedMachine&) = delete;

  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] Simulation& simulation() { return simulation_; }
  [[nodiscard]] Observation& observation() { return observation_; }

 protected:
  // Throws std::invalid_argument like Machine.
  ScriptedMachine(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                  const ObservationOptions& observed)
      : simulation_(description.seed),
        machine_(simulation_, description, std::move(node_of_rank)),
        observation_(simulation_, machine_, observed) {}
  ~ScriptedMachine() = default;

  // Runs from time zero, where start() begins the ranks, until no event is left.
  template <typename Start>
  void run_to_end(const Start& start) {
    simulation_.trace(process_record(ProcessTrace::began, Time::zero()));
    machine_.begin(Time::zero());
    start();
    machine_.run_to_end();
  }

  Simulation simulation_;
  Machine machine_;
  Observation observation_;
};

}  // namespace apenet
