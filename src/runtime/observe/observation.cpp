#include "runtime/observe/observation.hpp"

#include "runtime/observe/process_trace.hpp"

namespace apenet {
namespace {

std::vector<std::string> link_names(const Machine& machine) {
  std::vector<std::string> names;
  for (LinkUse& use : machine.link_use()) names.push_back(std::move(use.name));
  return names;
}

}  // namespace

Observation::Observation(Simulation& simulation, const Machine& machine, const ObservationOptions& options)
    : simulation_(simulation), trace_path_(options.trace_path) {
  if (options.network_history) report_.emplace(link_names(machine));
  if (!trace_path_.empty()) trace_.emplace(trace_path_, machine.process_count(), link_names(machine));
  if (report_ || trace_) simulation_.attach_trace(this);
}

Observation::~Observation() {
  if (report_ || trace_) simulation_.attach_trace(nullptr);
}

void Observation::record(const TraceRecord& record) {
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

std::vector<std::string> Observation::warnings() const {
  if (!trace_ || trace_->left_out() == 0) return {};
  return {trace_path_ + " is full: " + std::to_string(trace_->left_out()) + " events were left out"};
}

}  // namespace apenet
