// From the description to the arrangement of a network: its topology and its routing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "network/description.hpp"
#include "network/routing.hpp"
#include "network/topology.hpp"

namespace apenet {

// All of them throw std::invalid_argument naming the key, its value and what was expected.

// Checks also that there are as many links as the topology has classes of them.
[[nodiscard]] Topology make_topology(const NetworkDescription& description);

// Cheaper than the topology, except for graphs. Requires a topology other than none.
[[nodiscard]] std::uint32_t count_network_nodes(const NetworkDescription& description);

// The topology is that of the description.
[[nodiscard]] std::unique_ptr<const Routing> make_routing(const NetworkDescription& description,
                                                          const Topology& topology);

// The refusal names the cycle.
void require_no_deadlock(const NetworkDescription& description, const Topology& topology,
                         const Routing& routing);

// As machine files write them.
[[nodiscard]] std::string name_of(NetworkDescription::Topology topology);
[[nodiscard]] std::string name_of(NetworkDescription::Routing routing);

}  // namespace apenet
