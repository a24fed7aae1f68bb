// Runs workloads on processes that use the card directly, counts what they cost the host, and writes them as
// traces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/time.hpp"
#include "machine/machine.hpp"
#include "machine/message_work.hpp"
#include "runtime/scripted/card_run.hpp"
#include "runtime/scripted/workload.hpp"

namespace apenet {

struct WorkloadOptions : WorkloadParameters {
  std::string algorithm;      // empty: the workload's default
  std::vector<NodeId> nodes;  // node of each process; empty: process p runs on node p
};

struct WorkloadResult {
  Time time;                   // per round: the latest end / rounds
  std::vector<Time> finish;    // per process
  std::uint64_t messages = 0;  // posted to the cards
  std::uint64_t payload_bytes = 0;
  std::vector<LinkUse> links;
  std::vector<std::string> warnings;  // Machine::warnings()
};

// The streams of a workload with these options. Throws std::invalid_argument, which names the invalid option.
class WorkloadStreams {
 public:
  WorkloadStreams(const Workload& workload, const WorkloadOptions& options,
                  const MachineDescription& description);

  [[nodiscard]] const WorkloadShape& shape() const { return *shape_; }
  [[nodiscard]] const WorkloadPattern& pattern() const { return *pattern_; }
  // All rounds of a process.
  [[nodiscard]] WorkloadStream of(ProcessId process) const {
    return pattern_->rounds(process, shape_->rounds);
  }
  // The operations of the process, as its part of a GOAL trace (docs/reference/goal.md). An operation
  // requires the messages that the process has waited for before it.
  [[nodiscard]] std::string goal_of(ProcessId process) const;

 private:
  std::unique_ptr<const WorkloadShape> shape_;  // the pattern refers to it
  std::unique_ptr<const WorkloadPattern> pattern_;
};

// The work of all messages of one run, to which its host time is proportional. All rounds count like the
// first one. Of a very large machine only the processes that come first are asked, and the others count like
// them. Throws like WorkloadRun.
[[nodiscard]] PacketHops count_packet_hops(const MachineDescription& description, const Workload& workload,
                                           const WorkloadOptions& options);

// A run with description.card_software.
class WorkloadRun {
 public:
  // Throws std::invalid_argument, which names the invalid option.
  WorkloadRun(const MachineDescription& description, const Workload& workload,
              const WorkloadOptions& options);

  // Call once.
  WorkloadResult run();
  [[nodiscard]] CardRun& card_run() { return run_; }

 private:
  WorkloadStreams streams_;
  CardRun run_;
};

[[nodiscard]] WorkloadResult run_workload(const MachineDescription& description, const Workload& workload,
                                          const WorkloadOptions& options);

}  // namespace apenet
