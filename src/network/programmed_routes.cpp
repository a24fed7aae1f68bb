#include "network/programmed_routes.hpp"

#include <algorithm>
#include <utility>

#include "kernel/grid.hpp"
#include "network/routing/arrangement.hpp"
#include "network/routing/deadlock.hpp"

namespace apenet {

namespace {

[[noreturn]] void refuse_route(const std::string& why) {
  throw RouteRefusal(RouteRefusalKind::bad_route, why);
}

Topology topology_of_cube(const NetworkDescription& description) {
  const bool is_cube = description.topology.as<TorusDescription>() != nullptr ||
                       description.topology.as<MeshDescription>() != nullptr;
  if (!is_cube)
    throw RouteRefusal(RouteRefusalKind::unsupported,
                       "routes are directions of a torus or mesh, and this network is none");
  return make_topology(description);
}

}  // namespace

ProgrammedRoutes::ProgrammedRoutes(const NetworkDescription& description, Network& network)
    : network_(network),
      topology_(topology_of_cube(description)),
      own_(make_routing(description, topology_)) {
  if (!description.faults.empty())
    throw RouteRefusal(RouteRefusalKind::unsupported,
                       "the routes of a network with faults change by themselves");
  if (!own_->is_memoryless() || !own_->keeps_order()) {
    throw RouteRefusal(RouteRefusalKind::unsupported, "network.routing = \"" + description.routing +
                                                          "\" has no table: its packets have no one path");
  }
  const auto* torus = description.topology.as<TorusDescription>();
  if (torus != nullptr && own_->class_count() >= 2) torus_.emplace(torus->dims);
}

std::vector<std::uint32_t> ProgrammedRoutes::path(NodeId from, NodeId to) const {
  const Routing& routing = table_ ? static_cast<const Routing&>(*table_) : *own_;
  std::vector<std::uint32_t> ports;
  RouteQuery query{.router = topology_.attachment(from).router, .destination = to};
  for (RouteSteps steps; query.router != topology_.attachment(to).router;) {
    routing.route(query, steps);
    ports.push_back(steps[0].port);
    query.router = topology_.neighbour({query.router, steps[0].port}).router;
  }
  return ports;
}

void ProgrammedRoutes::program(std::span<const ProgrammedRoute> routes) {
  std::unique_ptr<RouteTable> table;
  if (!routes.empty()) {
    table = own_table();
    std::vector<bool> is_programmed(std::size_t{topology_.router_count()} * topology_.endpoint_count());
    for (const ProgrammedRoute& route : routes) enter(route, *table, is_programmed);
    const std::string cycle = find_dependency_cycle(topology_, *table);
    if (!cycle.empty())
      throw RouteRefusal(RouteRefusalKind::deadlock,
                         "packets could wait for each other in a cycle: " + cycle);
  }
  network_.take_routes(table.get());
  table_ = std::move(table);
}

std::unique_ptr<RouteTable> ProgrammedRoutes::own_table() const {
  std::unique_ptr<RouteTable> table;
  try {
    table = std::make_unique<RouteTable>(topology_);
  } catch (const std::invalid_argument& too_large) {
    throw RouteRefusal(RouteRefusalKind::unsupported, too_large.what());
  }
  RouteSteps steps;
  for (RouterId router = 0; router < topology_.router_count(); ++router) {
    for (NodeId node = 0; node < topology_.endpoint_count(); ++node) {
      own_->route({.router = router, .destination = node}, steps);
      table->set(
          router, node,
          {static_cast<std::uint16_t>(steps[0].port), static_cast<std::uint8_t>(steps[0].channel_class)});
    }
  }
  return table;
}

void ProgrammedRoutes::enter(const ProgrammedRoute& route, RouteTable& table,
                             std::vector<bool>& is_programmed) const {
  const std::vector<RouterId> routers = routers_of(route);
  for (std::size_t hop = 0; hop < routers.size(); ++hop) {
    const RouterId router = routers[hop];
    const auto port = static_cast<std::uint16_t>(route.ports[hop]);
    const std::size_t place = std::size_t{router} * topology_.endpoint_count() + route.to;
    const std::uint16_t before = table.entry(router, route.to).port;
    if (is_programmed[place] && before != port) {
      refuse_route(text_of(route) + ": at " + topology_.router_name(router) + " it leaves by " +
                   topology_.port_names()[port] + ", and another route to the same end by " +
                   topology_.port_names()[before] + "; a router has one entry for each destination");
    }
    is_programmed[place] = true;
    table.set(router, route.to, {port, channel_class(route, routers, hop)});
  }
}

// The router of each hop. Throws unless the route leads to its end, and to no router twice.
std::vector<RouterId> ProgrammedRoutes::routers_of(const ProgrammedRoute& route) const {
  const RouterId end = topology_.attachment(route.to).router;
  RouterId router = topology_.attachment(route.from).router;
  std::vector<RouterId> routers;
  for (const std::uint32_t port : route.ports) {
    const bool exists = port < topology_.ports_per_router();
    const PortRef next = exists ? topology_.neighbour({router, port}) : PortRef{};
    if (!next.is_connected()) {
      refuse_route(text_of(route) + ": " + topology_.router_name(router) + " has no link in direction " +
                   std::to_string(port));
    }
    routers.push_back(router);
    router = next.router;
    if (std::find(routers.begin(), routers.end(), router) != routers.end())
      refuse_route(text_of(route) + ": it comes to " + topology_.router_name(router) + " twice");
  }
  if (router != end) refuse_route(text_of(route) + ": it ends at " + topology_.router_name(router));
  return routers;
}

std::uint8_t ProgrammedRoutes::channel_class(const ProgrammedRoute& route, std::span<const RouterId> routers,
                                             std::size_t hop) const {
  if (!torus_) return 0;
  const std::uint32_t port = route.ports[hop];
  for (; hop < routers.size() && route.ports[hop] == port; ++hop) {
    if (wraps_around(routers[hop], port)) return 0;
  }
  return 1;
}

bool ProgrammedRoutes::wraps_around(RouterId router, std::uint32_t port) const {
  const std::uint32_t dimension = port / 2;
  const GridLine line(torus_->dims(), router, dimension);
  return port == CubeShape::plus_port(dimension) ? line.is_last() : line.is_first();
}

std::string ProgrammedRoutes::text_of(const ProgrammedRoute& route) const {
  const auto place = [this](NodeId node) { return topology_.router_name(topology_.attachment(node).router); };
  return "the route from " + place(route.from) + " to " + place(route.to);
}

}  // namespace apenet
