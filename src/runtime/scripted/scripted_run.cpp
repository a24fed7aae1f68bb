#include "runtime/scripted/scripted_run.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace apenet {

ScriptedRun::ScriptedRun(const MachineDescription& description, const SoftwareDescription& software,
                         std::vector<NodeId> node_of_process)
    : simulation_(description.seed),
      machine_(simulation_, description, std::move(node_of_process)),
      scripts_(machine_.process_count()) {
  for (ProcessId id = 0; id < machine_.process_count(); ++id) processes_.emplace_back(id, machine_, software);
  machine_.set_sink(*this);
}

void ScriptedRun::run() {
  for (Script& script : scripts_) {
    if (!script.is_done()) script.start();
  }
  simulation_.run();
  std::string stuck;
  for (ProcessId id = 0; id < scripts_.size(); ++id) {
    scripts_[id].rethrow();
    if (scripts_[id].is_done()) continue;
    stuck += (stuck.empty() ? "process " : "; process ") + std::to_string(id) + " at " +
             std::to_string(processes_[id].clock().ps()) + " ps waits for " + processes_[id].waits_for();
  }
  if (!stuck.empty()) throw std::runtime_error("deadlock: " + stuck);
}

}  // namespace apenet
