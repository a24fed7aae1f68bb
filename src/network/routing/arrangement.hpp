// Creates topology and routing, the arrangement of a network, from the description.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "network/description.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Every routing that a machine file can name, and those that suit a topology.
[[nodiscard]] std::vector<std::string_view> routing_names();
[[nodiscard]] std::vector<std::string> routings_of(const TopologyKind& topology);

// All functions throw std::invalid_argument, which names key, value and what was expected.

// Also checks that there is one link description per link class of the topology.
[[nodiscard]] Topology make_topology(const NetworkDescription& description);

// Requires the topology created from the same description.
[[nodiscard]] std::unique_ptr<const Routing> make_routing(const NetworkDescription& description,
                                                          const Topology& topology);

// Dimension order on a topology whose kind is_direct.
[[nodiscard]] std::unique_ptr<const Routing> make_dimension_order(const TopologyDescription& topology);

// Throws if the routing can deadlock; the error names the cycle.
void require_no_deadlock(const NetworkDescription& description, const Topology& topology,
                         const Routing& routing);

// Number of lanes of the card's channels: channels c and d take the same virtual channels of every link if c
// and d agree modulo this. 1: all channels share them, or a class has more lanes than another.
[[nodiscard]] std::uint32_t count_lanes(const NetworkDescription& description);

// Properties of a network that are shown before it runs.
struct ArrangementTraits {
  std::uint32_t nodes = 0;
  std::uint32_t routers = 0;
  std::uint32_t ports_per_router = 0;  // ports of the largest router, including unused ones
  std::uint32_t cables = 0;
  std::uint32_t channel_classes = 0;
  bool is_free_of_deadlock = false;
  std::string proof;  // how freedom from deadlock was shown, or the cycle
};
[[nodiscard]] ArrangementTraits inspect_arrangement(const NetworkDescription& description);

}  // namespace apenet
