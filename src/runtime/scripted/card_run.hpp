// CardRun: a machine and the processes that use its cards directly.
#pragma once

#include <vector>

#include "kernel/large_array.hpp"
#include "runtime/scripted/card_process.hpp"
#include "runtime/scripted/scripted_machine.hpp"

namespace apenet {

class CardRun final : public ScriptedMachine, private CompletionSink {
 public:
  // Throws std::invalid_argument like Machine.
  CardRun(const MachineDescription& description, const message::SoftwareCosts& software,
          std::vector<NodeId> node_of_process, const ObservationOptions& observed = {});

  [[nodiscard]] CardProcess& process(ProcessId id) { return processes_[id]; }

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
  // The processes have no memory: no bytes are moved.
  void deliver_payload(ProcessId /*source*/, std::uint64_t /*message*/) override {}
  void prepare(ProcessId process) const override { prefetch(processes_[process]); }
  void trace_wait_for(const Completion& completion) const;

  CardProcess::Shared shared_;
  LargeObjects<CardProcess> processes_;
  std::vector<Script> scripts_;
};

}  // namespace apenet
