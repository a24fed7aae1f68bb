// Observation: the optional listeners of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/trace.hpp"
#include "machine/machine.hpp"
#include "runtime/observe/chrome_trace.hpp"
#include "runtime/observe/network_report.hpp"

namespace apenet {

struct ObservationOptions {
  bool network_history = false;
  std::string trace_path;  // empty: no trace
  ChromeTrace::Options trace{};
};

// Attached to the simulation for its lifetime. If no option is set, the simulation records nothing.
class Observation final : public TraceSink {
 public:
  // Throws std::invalid_argument if the trace file cannot be written.
  Observation(Simulation& simulation, const Machine& machine, const ObservationOptions& options);
  ~Observation();
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  // A further listener, which must outlive the simulation's run. Its times are those of the simulation.
  void add(TraceSink& listener);

  // Passes the record to the listeners. ProcessTrace::began sets their time to zero.
  void record(const TraceRecord& record) override;

  [[nodiscard]] std::optional<NetworkHistory> network_history() const;
  // Completes the trace. Returns warnings about what is missing from it.
  [[nodiscard]] std::vector<std::string> finish();

 private:
  Simulation& simulation_;
  std::vector<std::uint32_t> first_links_;  // per rail: the number of its first link
  std::optional<NetworkReport> report_;
  std::optional<ChromeTrace> trace_;
  TraceSink* further_ = nullptr;
};

}  // namespace apenet
