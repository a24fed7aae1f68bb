// The checks of TrafficOptions, and the network on which they are measured.
#pragma once

#include <cstdint>
#include <vector>

#include "network/description.hpp"
#include "network/flit/timing.hpp"
#include "runtime/traffic/traffic.hpp"

namespace apenet {

// Throws std::invalid_argument, which names the option.
void require_options(const NetworkDescription& network, const TrafficOptions& options);

// Returns the cycle in which the measurement ends. Throws std::invalid_argument if virtual time ends before.
std::int64_t require_end(const FlitTiming& timing, const TrafficOptions& options);

// Sinks are unbounded. A source's FIFO holds two packets, so that one can follow the other without a gap.
NetworkParameters network_parameters(const NetworkDescription& network, std::uint32_t packet_bytes);

// Nodes in each dimension, as TrafficPattern takes them.
std::vector<std::uint32_t> traffic_shape(const NetworkDescription& network, std::uint32_t node_count,
                                         const TrafficNodes& partition);

}  // namespace apenet
