#include "runtime/traffic/traffic_options.hpp"

#include <string>

#include "kernel/refuse.hpp"

namespace apenet {

void require_options(const NetworkDescription& network, const TrafficOptions& options) {
  if (!(options.load > 0) || options.load > network.injection_fifos) {
    const std::string most = std::to_string(network.injection_fifos);
    refuse_value("load", std::to_string(options.load),
                 "more than 0 and at most " + (most == "1" ? "1 flit" : most + " flits") +
                     " per node and flit time, 1 for each of router.injection_fifos");
  }
  if (options.measures_queued && network.injection_fifos > 1) {
    refuse_value("measure_queued", "true",
                 "false where router.injection_fifos is " + std::to_string(network.injection_fifos) +
                     ": a node then has no queue of its own");
  }
  constexpr std::uint32_t max_flits = 65535;
  if (options.packet_flits < 1 || options.packet_flits > max_flits) {
    refuse_value("packet_flits", std::to_string(options.packet_flits), "1 to 65535 flits");
  }
  constexpr std::int64_t max_cycles = 1'000'000'000;
  const auto require_cycles = [&](const char* key, std::int64_t cycles, std::int64_t least) {
    if (cycles < least || cycles > max_cycles) {
      refuse_value(key, std::to_string(cycles), std::to_string(least) + " to 1000000000 cycles");
    }
  };
  require_cycles("warmup_cycles", options.warmup_cycles, 0);
  require_cycles("measure_cycles", options.measure_cycles, 1);
  require_cycles("drain_cycles", options.drain_cycles, 0);
}

std::int64_t require_end(const FlitTiming& timing, const TrafficOptions& options) {
  const std::int64_t measured = options.warmup_cycles + options.measure_cycles;
  if (timing.time(measured + options.drain_cycles) >= end_of_time) {
    refuse_value("measure_cycles", std::to_string(options.measure_cycles),
                 "warm-up, measurement and drain to end within 104 days of virtual time, at " +
                     std::to_string(timing.clock.frequency_hz) + " cycles per second");
  }
  return measured;
}

NetworkParameters network_parameters(const NetworkDescription& network, std::uint32_t packet_bytes) {
  NetworkParameters parameters;
  parameters.description = network;
  parameters.max_packet_wire_bytes = packet_bytes;
  parameters.needs_order = false;
  NetworkDescription& description = parameters.description;
  description.injection_buffer_bytes = std::int64_t{2} * packet_bytes;
  constexpr std::int64_t endless = 0x7fffffff;
  description.ejection_buffer_bytes = endless;
  return parameters;
}

std::vector<std::uint32_t> traffic_shape(const NetworkDescription& network, std::uint32_t node_count,
                                         const TrafficNodes& partition) {
  if (!partition.extents.empty()) return partition.extents;
  if (!partition.nodes.empty()) return {static_cast<std::uint32_t>(partition.nodes.size())};
  std::vector<std::uint32_t> dims = network.topology.dims();
  std::uint64_t nodes = 1;
  for (const std::uint32_t size : dims) nodes *= size;
  if (!dims.empty() && nodes == node_count) return dims;
  return {node_count};
}

}  // namespace apenet
