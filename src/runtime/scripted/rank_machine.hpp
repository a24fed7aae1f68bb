// RankMachine: a machine whose only processes are ranks with message engines.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/scripted/message_passing.hpp"
#include "runtime/scripted/scripted_machine.hpp"

namespace apenet {

// Totals of all ranks and of the machine.
struct RanksReport : RankTotals {
  std::vector<LinkUse> links;
  std::vector<PortUse> ports;
  FaultUse faults;
  std::optional<NetworkHistory> network;
  std::vector<std::string> warnings;
};

class RankMachine final : public ScriptedMachine {
 public:
  // Throws std::invalid_argument like Machine.
  RankMachine(const MachineDescription& description, std::vector<NodeId> node_of_rank,
              const ObservationOptions& observed = {})
      : ScriptedMachine(description, std::move(node_of_rank), observed) {
    machine_.fill_receive_rings();
  }

  // Runs from time zero, where `begin` starts the ranks, until no event is left. `ranks` takes what arrives.
  template <typename Begin>
  void run(CompletionSink& ranks, const Begin& begin) {
    machine_.set_sink(ranks);
    run_to_end(begin);
  }
  [[nodiscard]] RanksReport report(RankTotals totals);
};

}  // namespace apenet
