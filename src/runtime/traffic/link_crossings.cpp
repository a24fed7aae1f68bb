#include <cstdint>

#include "kernel/random.hpp"
#include "network/flit/timing.hpp"
#include "network/topology/cube.hpp"
#include "runtime/traffic/traffic.hpp"
#include "runtime/traffic/traffic_options.hpp"
#include "runtime/traffic/traffic_pattern.hpp"

namespace apenet {

double count_link_crossings(const NetworkDescription& network, const TrafficOptions& options) {
  require_options(network, options);
  const std::uint32_t nodes = network.topology.node_count();
  const std::vector<NodeId>& members = options.partition.nodes;
  const auto count = members.empty() ? nodes : static_cast<std::uint32_t>(members.size());
  const auto node_of = [&](NodeId number) { return members.empty() ? number : members[number]; };
  const TrafficPattern pattern(options.pattern, traffic_shape(network, nodes, options.partition),
                               options.seed);
  const NodeDistances distances(network.topology);
  constexpr std::uint32_t samples = 10'000;
  SplitMix64 random(options.seed, nodes);
  double links = 0;
  for (std::uint32_t i = 0; i < samples; ++i) {
    const auto source = static_cast<NodeId>(random.next() % count);
    const NodeId target = pattern.destination(source, static_cast<std::uint32_t>(random.next() >> 32U));
    links += distances.at_least(node_of(source), node_of(target));
  }
  const FlitTiming timing = make_flit_clock(network);
  const std::int64_t flit_cycles =
      timing.links.empty() ? timing.local.flit_cycles : timing.links[0].flit_cycles;
  const double cycles =
      static_cast<double>(options.warmup_cycles) + static_cast<double>(options.measure_cycles);
  const double flits = count * options.load * cycles / static_cast<double>(flit_cycles);
  const bool is_flit_engine = network.engine == NetworkDescription::Engine::flit;
  return links / samples * (is_flit_engine ? flits : flits / options.packet_flits);
}

}  // namespace apenet
