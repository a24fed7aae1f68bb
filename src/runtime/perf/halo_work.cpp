#include "runtime/perf/halo_work.hpp"

#include <array>
#include <numeric>
#include <vector>

#include "network/topology/cube.hpp"

namespace apenet {

namespace {

struct Neighbours {
  std::array<ProcessId, 2 * CubeShape::max_dimensions> ids{};
  std::size_t count = 0;
};

Neighbours neighbours_of(const CubeShape& shape, NodeId node) {
  Neighbours neighbours;
  std::vector<std::uint32_t> at = shape.coordinates(node);
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::uint32_t extent = shape.dims()[d];
    if (extent == 1) continue;
    const std::uint32_t here = at[d];
    for (const std::uint32_t step : {1U, extent - 1}) {
      at[d] = (here + step) % extent;
      neighbours.ids[neighbours.count++] = shape.node(at);
    }
    at[d] = here;
  }
  return neighbours;
}

Script exchange_halos(ScriptedProcess& process, Neighbours neighbours, HaloWorkOptions options) {
  for (std::uint32_t i = 0; i < options.exchanges; ++i) {
    for (std::size_t n = 0; n < neighbours.count; ++n) process.send(neighbours.ids[n], options.bytes);
    for (std::size_t n = 0; n < neighbours.count; ++n) co_await process.arrival_from(neighbours.ids[n]);
  }
}

std::vector<NodeId> one_process_a_node(const NetworkDescription& network) {
  std::vector<NodeId> nodes(CubeShape(network.topology.dims()).node_count());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  return nodes;
}

}  // namespace

HaloWork::HaloWork(const MachineDescription& description, const HaloWorkOptions& options)
    : run_(description, description.card_software, one_process_a_node(description.network)) {
  const CubeShape shape(description.network.topology.dims());
  for (ProcessId id = 0; id < shape.node_count(); ++id) {
    const Neighbours neighbours = neighbours_of(shape, id);
    messages_ += options.exchanges * neighbours.count;
    run_.spawn(id, exchange_halos(run_.process(id), neighbours, options));
  }
}

WorkDone HaloWork::run() {
  run_.run();
  std::uint64_t packets = 0;
  for (const Counter& counter : run_.machine().counters()) {
    if (counter.name == "packets") packets = counter.value;
  }
  return {.nodes = run_.machine().node_count(),
          .messages = messages_,
          .packets = packets,
          .hops = run_.machine().link_crossings(),
          .events = run_.simulation().event_count(),
          .virtual_time = run_.simulation().now()};
}

}  // namespace apenet
