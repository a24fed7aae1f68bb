#include "runtime/scripted/rank_machine.hpp"

namespace apenet {

RanksReport RankMachine::report(RankTotals totals) {
  RanksReport report;
  static_cast<RankTotals&>(report) = std::move(totals);
  report.links = machine_.link_use();
  report.ports = machine_.port_use();
  report.faults = machine_.fault_use();
  report.network = observation_.network_history();
  report.warnings = machine_.warnings();
  for (std::string& warning : observation_.finish()) report.warnings.push_back(std::move(warning));
  return report;
}

}  // namespace apenet
