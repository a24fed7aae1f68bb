#include "runtime/perf/halo_work.hpp"

namespace apenet {

namespace {

WorkloadOptions options_of(const MachineDescription& description, const HaloWorkOptions& options) {
  WorkloadOptions halo;
  halo.bytes = options.bytes;
  halo.rounds = options.exchanges;
  halo.grid = description.network.topology.dims();
  return halo;
}

}  // namespace

HaloWork::HaloWork(const MachineDescription& description, const HaloWorkOptions& options)
    : run_(description, workload("halo"), options_of(description, options)) {}

WorkDone HaloWork::run() {
  const std::uint64_t messages = run_.run().messages;
  ScriptedRun& scripted = run_.scripted();
  std::uint64_t packets = 0;
  for (const Counter& counter : scripted.machine().counters()) {
    if (counter.name == "packets") packets = counter.value;
  }
  return {.nodes = scripted.machine().node_count(),
          .messages = messages,
          .packets = packets,
          .hops = scripted.machine().link_crossings(),
          .events = scripted.simulation().event_count(),
          .virtual_time = scripted.simulation().now()};
}

}  // namespace apenet
