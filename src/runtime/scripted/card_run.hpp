// ScriptedRun: a machine and the processes that drive its cards by scripts.
#pragma once

#include <vector>

#include "kernel/large_array.hpp"
#include "runtime/scripted/scripted_machine.hpp"
#include "runtime/scripted/scripted_process.hpp"

namespace apenet {

class ScriptedRun final : public ScriptedMachine {
 public:
  // Throws std::invalid_argument like Machine.
  ScriptedRun(const MachineDescription& description, const message::SoftwareCosts& software,
              std::vector<NodeId> node_of_process, const ObservationOptions& observed = {});

  [[nodiscard]] ScriptedProcess& process(ProcessId id) { return processes_[id]; }

  // Sets the program of process `id`. Call at most once per process.
  void spawn(ProcessId id, Script script) { scripts_[id] = std::move(script); }

  // Runs from time zero until no event is left. Rethrows the exception of a script. Throws
  // std::runtime_error, which lists the waiting processes, if a script has not ended.
  void run();

 private:
  void complete(const Completion& completion) override {
    if (simulation_.is_traced()) trace_wait_for(completion);
    processes_[completion.process].complete(completion);
  }
  void prepare(ProcessId process) const override { prefetch(processes_[process]); }
  void trace_wait_for(const Completion& completion) const;

  ScriptedProcess::Shared shared_;
  LargeObjects<ScriptedProcess> processes_;
  std::vector<Script> scripts_;
};

}  // namespace apenet
