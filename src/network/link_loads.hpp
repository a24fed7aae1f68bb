// LinkLoads: what a set of flows puts on each link of a network, without simulating it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "network/description.hpp"

namespace apenet {

struct Flow {
  NodeId from = 0;
  NodeId to = 0;
  std::int64_t bytes = 0;
};

struct LinkLoads {
  std::vector<double> hops;   // links that a packet of each flow crosses, on average
  std::vector<double> bytes;  // one for each link, ordered by router, then by port
  std::string busiest;        // the first link with the highest load; empty without links
};

// Follows the described routing from router to router. Where it leaves a choice, each step gets an equal
// share of the flow. The escape step of an adaptive routing gets none, because only blocked packets take it.
// Throws std::invalid_argument for a routing with waypoints and for a destination that cannot be reached;
// requires nodes of the network.
[[nodiscard]] LinkLoads link_loads(const NetworkDescription& description, std::span<const Flow> flows);

// The smallest number of links between the routers of two nodes, for all pairs: row-major by the first node.
// Throws std::invalid_argument for a network that cannot be built or is not connected.
[[nodiscard]] std::vector<std::int64_t> hop_counts(const NetworkDescription& description);

}  // namespace apenet
