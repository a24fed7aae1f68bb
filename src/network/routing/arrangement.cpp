#include "network/routing/arrangement.hpp"

#include <algorithm>
#include <array>

#include "kernel/refuse.hpp"
#include "network/routing/adaptive_routing.hpp"
#include "network/routing/bubble.hpp"
#include "network/routing/deadlock.hpp"
#include "network/routing/destination_mod.hpp"
#include "network/routing/table_routing.hpp"
#include "network/routing/twisted_order.hpp"
#include "network/routing/up_down.hpp"
#include "network/routing/valiant.hpp"

namespace apenet {

namespace {

using Made = std::unique_ptr<const Routing>;

template <typename OfTopology>
Made make_own(const NetworkDescription& network, const Topology& /*topology*/) {
  return std::make_unique<OfTopology>(network.topology);
}

Made make_dimension_order_of(const NetworkDescription& network, const Topology& /*topology*/) {
  return make_dimension_order(network.topology);
}

// Routes around faults have no such limit: the test of the routing proves them, and a run does not check
// them.
Made make_up_down_of_all(const NetworkDescription& network, const Topology& topology) {
  constexpr std::uint64_t most_routes = 1U << 26U;
  const std::uint64_t routes = std::uint64_t{topology.router_count()} * topology.endpoint_count();
  if (routes > most_routes) {
    refuse_value("network.routing", network.routing,
                 "a machine of at most " + std::to_string(most_routes) +
                     " routes (routers times nodes), each of which the check for deadlocks follows, not " +
                     std::to_string(routes));
  }
  return make_up_down(topology, suggested_roots(topology), [](PortRef) { return true; });
}

Made make_table(const NetworkDescription& network, const Topology& topology) {
  return read_table(network.table, topology, network.topology.dims());
}

struct RegisteredRouting {
  std::string_view name;  // network.routing
  Made (*make)(const NetworkDescription& network, const Topology& topology);
  bool fits_all = false;  // every topology; otherwise those with this name in TopologyKind::routings
};

// One line registers a routing: what is not here does not exist.
constexpr std::array registered_routings = {
    RegisteredRouting{"dimension-order", &make_dimension_order_of},
    RegisteredRouting{"dimension-order-entry-class", &make_own<DimensionOrderEntryRouting>},
    RegisteredRouting{"dimension-order-bubble", &make_own<BubbleOrderRouting>},
    RegisteredRouting{"minimal-adaptive", &make_own<MinimalAdaptiveRouting>},
    RegisteredRouting{"minimal-adaptive-bubble", &make_own<BubbleAdaptiveRouting>},
    RegisteredRouting{"valiant", &make_own<ValiantRouting>},
    RegisteredRouting{"destination-mod", &make_own<DestinationModRouting>},
    RegisteredRouting{"random-up", &make_own<RandomUpRouting>},
    RegisteredRouting{"up-down", &make_up_down_of_all, true},
    RegisteredRouting{"table", &make_table, true},
};

bool fits(const RegisteredRouting& routing, const TopologyKind& topology) {
  const std::vector<std::string>& own = topology.routings;
  return (routing.fits_all && topology.has_routers) ||
         std::find(own.begin(), own.end(), routing.name) != own.end();
}

}  // namespace

std::unique_ptr<const Routing> make_dimension_order(const TopologyDescription& topology) {
  if (topology.as<TwistedTorusDescription>() != nullptr)
    return std::make_unique<TwistedOrderRouting>(topology);
  return std::make_unique<DimensionOrderRouting>(topology);
}

std::vector<std::string_view> routing_names() {
  std::vector<std::string_view> names;
  for (const RegisteredRouting& routing : registered_routings) names.push_back(routing.name);
  return names;
}

std::vector<std::string> routings_of(const TopologyKind& topology) {
  std::vector<std::string> names;
  for (const RegisteredRouting& routing : registered_routings) {
    if (fits(routing, topology)) names.emplace_back(routing.name);
  }
  return names;
}

Topology make_topology(const NetworkDescription& description) {
  Topology topology = description.topology.make();
  const std::size_t expected = description.topology.link_classes().size();
  if (description.links.size() != expected) {
    refuse_value("network.links", std::to_string(description.links.size()) + " entries",
                 std::to_string(expected) + ": one for each link class of the topology");
  }
  return topology;
}

std::unique_ptr<const Routing> make_routing(const NetworkDescription& description, const Topology& topology) {
  const TopologyKind kind = description.topology.kind();
  for (const RegisteredRouting& routing : registered_routings) {
    if (routing.name != description.routing) continue;
    if (fits(routing, kind)) return routing.make(description, topology);
    std::string fitting;
    for (const TopologyDescription& other : registered_topologies()) {
      if (other.kind().has_routers && fits(routing, other.kind()))
        fitting.append(fitting.empty() ? "" : " and ").append(other.kind().name);
    }
    refuse_value("network.routing", routing.name,
                 std::string("a routing for network.topology = ")
                     .append(kind.name)
                     .append("; ")
                     .append(routing.name)
                     .append(" is for ")
                     .append(fitting));
  }
  refuse_value("network.routing", description.routing, "one of the known routings");
}

void require_no_deadlock(const NetworkDescription& description, const Topology& topology,
                         const Routing& routing) {
  const std::string cycle = find_dependency_cycle(topology, routing);
  if (cycle.empty()) return;
  const bool is_table = description.routing == "table";
  refuse_value(is_table ? "network.table_file" : "network.routing",
               is_table ? "routes that can deadlock" : description.routing,
               "a routing without a cycle of channels that wait for each other, not " + cycle);
}

std::uint32_t count_lanes(const NetworkDescription& description) {
  if (description.channel_selection != NetworkDescription::ChannelSelection::lane) return 1;
  const std::uint32_t channels = description.virtual_channels;
  const std::uint32_t classes = make_routing(description, make_topology(description))->class_count();
  return channels % classes == 0 ? channels / classes : 1;
}

ArrangementTraits inspect_arrangement(const NetworkDescription& description) {
  const Topology topology = make_topology(description);
  const auto routing = make_routing(description, topology);
  const DeadlockReport report = check_deadlock(topology, *routing);
  ArrangementTraits traits;
  traits.nodes = topology.endpoint_count();
  traits.routers = topology.router_count();
  traits.ports_per_router = topology.ports_per_router();
  std::uint32_t links = 0;
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port)
      links += topology.neighbour({router, port}).is_connected() ? 1U : 0U;
  }
  traits.cables = links / 2;
  traits.channel_classes = routing->class_count();
  traits.is_free_of_deadlock = report.cycle.empty();
  traits.proof = report.proof();
  return traits;
}

}  // namespace apenet
