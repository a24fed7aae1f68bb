// From the description to the arrangement of a network: its topology and its routing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "network/description.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

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

// What people want to know of a network before it runs.
struct ArrangementFacts {
  std::uint32_t nodes = 0;
  std::uint32_t routers = 0;
  std::uint32_t ports_per_router = 0;  // of the largest, unused ones included
  std::uint32_t cables = 0;
  std::uint32_t channel_classes = 0;
  bool is_free_of_deadlock = false;
  std::string proof;  // how that was shown, or the cycle
};
[[nodiscard]] ArrangementFacts inspect_arrangement(const NetworkDescription& description);

// As machine files write them.
[[nodiscard]] std::string name_of(NetworkDescription::Topology topology);
[[nodiscard]] std::string name_of(NetworkDescription::Routing routing);

}  // namespace apenet
