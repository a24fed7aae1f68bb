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
  CardRun& run = run_.card_run();
  run.run();
  WorkDone done{.nodes = run.machine().node_count(),
                .hops = run.machine().link_crossings(),
                .events = run.simulation().event_count(),
                .virtual_time = run.simulation().now()};
  for (const Counter& counter : run.machine().counters()) {
    if (counter.name == "messages") done.messages = counter.value;
    if (counter.name == "packets") done.packets = counter.value;
  }
  return done;
}

}  // namespace apenet
