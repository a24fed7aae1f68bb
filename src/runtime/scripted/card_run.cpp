#include "runtime/scripted/card_run.hpp"

#include <stdexcept>
#include <string>
#include <utility>

#include "machine/message_costs.hpp"

namespace apenet {

namespace {

// A put to an agreed buffer needs no copy. Only where the library writes sends itself is it also an
// alternative for those that the card could carry.
std::int64_t send_limit(const Machine& machine, const message::SoftwareCosts& software) {
  const NicCapabilities& card = machine.capabilities();
  return card.send_packet_bytes > 0 ? cpu_send_limit(machine, software, 0) : card.max_send_bytes;
}

}  // namespace

CardRun::CardRun(const MachineDescription& description, const message::SoftwareCosts& software,
                 std::vector<NodeId> node_of_process, const ObservationOptions& observed)
    : ScriptedMachine(description, std::move(node_of_process), observed),
      shared_{.machine = machine_,
              .software = software,
              .send_limit_bytes = send_limit(machine_, software),
              .simulation = simulation_},
      processes_(machine_.process_count()),
      scripts_(machine_.process_count()) {
  machine_.set_sink(*this);
  for (ProcessId id = 0; id < machine_.process_count(); ++id) processes_.emplace_back(id, shared_);
}

void CardRun::trace_wait_for(const Completion& completion) const {
  const CardProcess& process = processes_[completion.process];
  if (!process.is_waiting_for(completion) || completion.time <= process.clock()) return;
  simulation_.trace(
      process_record(ProcessTrace::waited, process.clock(), completion.time, completion.process));
}

void CardRun::run() {
  run_to_end([this] {
    for (Script& script : scripts_) {
      if (!script.is_done()) script.start();
    }
  });
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
