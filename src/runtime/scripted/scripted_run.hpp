// ScriptedRun: a machine and the scripted processes on it.
#pragma once

#include <vector>

#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/observation.hpp"
#include "runtime/scripted/scripted_process.hpp"

namespace apenet {

class ScriptedRun final : private CompletionSink {
 public:
  // Throws std::invalid_argument like Machine.
  ScriptedRun(const MachineDescription& description, const message::SoftwareCosts& software,
              std::vector<NodeId> node_of_process, const ObservationOptions& observed = {});

  [[nodiscard]] ScriptedProcess& process(ProcessId id) { return processes_[id]; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] Simulation& simulation() { return simulation_; }
  [[nodiscard]] Observation& observation() { return observation_; }

  // Sets the program of process `id`. Call at most once per process.
  void spawn(ProcessId id, Script script) { scripts_[id] = std::move(script); }

  // Runs from time zero until no event is left. Rethrows the exception of a script. Throws
  // std::runtime_error, which lists the waiting processes, if a script has not ended.
  void run();

 private:
  void complete(const Completion& completion) override {
    if (simulation_.is_traced()) trace_wait(completion);
    processes_[completion.process].complete(completion);
  }
  void prepare(ProcessId process) const override { prefetch(processes_[process]); }
  // Scripts have no memory: no bytes are moved.
  void land(ProcessId, std::uint64_t) override {}
  void trace_wait(const Completion& completion) const;

  Simulation simulation_;
  Machine machine_;
  Observation observation_;
  ScriptedProcess::Shared shared_;
  LargeObjects<ScriptedProcess> processes_;
  std::vector<Script> scripts_;
};

}  // namespace apenet
