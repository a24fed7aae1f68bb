#include "runtime/observe/observation.hpp"

#include "machine/rails.hpp"
#include "network/network_trace.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {
namespace {

std::vector<std::string> link_names(const Machine& machine) {
  std::vector<std::string> names;
  for (LinkUse& use : machine.link_use()) names.push_back(std::move(use.name));
  return names;
}

std::vector<std::uint32_t> nodes_of(const Machine& machine) {
  std::vector<std::uint32_t> nodes;
  for (ProcessId process = 0; process < machine.process_count(); ++process)
    nodes.push_back(machine.node_of(process));
  return nodes;
}

}  // namespace

Observation::Observation(Simulation& simulation, const Machine& machine, const ObservationOptions& options)
    : simulation_(simulation) {
  for (std::uint8_t rail = 0; rail < rail_count(machine.description()); ++rail)
    first_links_.push_back(machine.first_link(rail));
  if (options.network_history) report_.emplace(link_names(machine));
  if (!options.trace_path.empty()) {
    trace_.emplace(options.trace_path, nodes_of(machine), link_names(machine), options.trace);
  }
  if (report_ || trace_) simulation_.attach_trace(this);
}

Observation::~Observation() {
  if (report_ || trace_ || further_ != nullptr) simulation_.attach_trace(nullptr);
}

void Observation::add(TraceSink& listener) {
  further_ = &listener;
  simulation_.attach_trace(this);
}

void Observation::record(const TraceRecord& seen) {
  if (further_ != nullptr) further_->record(seen);
  TraceRecord record = seen;
  // The listeners number the links of all rails together.
  if (record.kind == EventKind::link && record.what == static_cast<std::uint16_t>(NetworkTrace::crossed))
    record.place += first_links_[record.rail];
  if (record.kind == EventKind::process && record.what == static_cast<std::uint16_t>(ProcessTrace::began)) {
    if (report_) report_->begin(record.time);
    if (trace_) trace_->begin(record.time);
    return;
  }
  if (report_) report_->record(record);
  if (trace_) trace_->record(record);
}

std::optional<NetworkHistory> Observation::network_history() const {
  return report_ ? std::optional(report_->history()) : std::nullopt;
}

std::vector<std::string> Observation::finish() {
  std::vector<std::string> said;
  if (!trace_) return said;
  // Warnings do not name the file, so that equal runs have equal reports.
  if (!trace_->finish()) {
    said.emplace_back(
        "the trace is incomplete: its file could not be written completely (is the disk full?)");
  }
  if (trace_->dropped() > 0) {
    said.push_back("the trace is full: " + std::to_string(trace_->dropped()) + " events were left out");
  }
  return said;
}

}  // namespace apenet
