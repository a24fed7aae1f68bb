#include "network/routing/injection_fifos.hpp"

#include <string>

#include "kernel/refuse.hpp"
#include "network/routing/arrangement.hpp"
#include "network/topology/twisted_torus.hpp"

namespace apenet {

namespace {

constexpr std::uint32_t max_local_ports = 32;  // with the links of a router, its 64 ports in the flit engine

// Per port of a router to a link: its number among the directions in which packets leave a node. Both ports
// of a dimension of two nodes count as one: a router uses one of them. On a twisted torus even such a
// dimension has rings of four. A dimension of one node has none.
struct Directions {
  explicit Directions(const TopologyDescription& topology) {
    const std::uint32_t one_way = topology.as<TwistedTorusDescription>() != nullptr ? 1 : 2;
    for (const std::uint32_t size : topology.dims()) {
      of_port.push_back(count);
      of_port.push_back(count + (size > one_way ? 1 : 0));
      count += size > one_way ? 2 : size - 1;
    }
  }
  std::vector<std::uint32_t> of_port;
  std::uint32_t count = 0;
};

std::uint32_t first_port(const Routing& memoryless, NodeId source, NodeId destination) {
  RouteSteps steps;
  memoryless.route({.router = source, .destination = destination}, steps);
  return steps[0].port;
}

void require_count(const char* key, std::uint32_t count, const NetworkDescription& network) {
  if (count == 1) return;
  if (!network.topology.kind().is_direct) {
    refuse_value(key, std::to_string(count),
                 "1 on a network.topology other than a torus, twisted torus or mesh: there one cable joins a "
                 "card to its switch");
  }
  if (count < 1 || count > max_local_ports)
    refuse_value(key, std::to_string(count), "1 to " + std::to_string(max_local_ports));
}

}  // namespace

void require_injection(const NetworkDescription& network) {
  require_count("router.injection_fifos", network.injection_fifos, network);
  require_count("router.ejection_ports", network.ejection_ports, network);
  if (network.injection_fifos == 1 || network.injection_rule != InjectionRule::direction) return;
  const std::uint32_t needed = Directions(network.topology).count;
  if (network.injection_fifos >= needed) return;
  refuse_value("router.injection_fifos", std::to_string(network.injection_fifos),
               "1, or at least the " + std::to_string(needed) +
                   " directions of a node, for router.injection_rule = \"direction\"");
}

InjectionFifos::InjectionFifos(const NetworkDescription& network, std::uint32_t card_channels)
    : count_(network.injection_fifos), rule_(network.injection_rule), card_channels_(card_channels) {
  if (count_ == 1 || rule_ != InjectionRule::direction) return;
  dimension_order_ = make_dimension_order(network.topology);
  direction_of_port_ = Directions(network.topology).of_port;
  direction_of_port_.push_back(0);  // to the node itself
}

std::uint32_t InjectionFifos::fifo(NodeId source, NodeId destination, std::uint32_t queue) const {
  switch (rule_) {
    case InjectionRule::direction:
      return direction_of_port_[first_port(*dimension_order_, source, destination)];
    case InjectionRule::destination:
      return destination % count_;
    case InjectionRule::queue:
    case InjectionRule::least_loaded:
      break;
  }
  return queue % count_;
}

Topology with_local_ports(const Topology& topology, std::uint32_t count) {
  const std::uint32_t ports = topology.ports_per_router();
  std::vector<std::string> names = topology.port_names();
  names.resize(ports + count - 1, names.back());
  Topology wider(topology.router_count(), topology.endpoint_count(), std::move(names));
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    wider.name_router(router, topology.router_name(router));
    for (std::uint32_t port = 0; port < ports; ++port) {
      const PortRef other = topology.neighbour({router, port});
      const bool is_first = router < other.router || (router == other.router && port < other.port);
      if (other.is_connected() && is_first)
        wider.connect({router, port}, other, topology.link_class({router, port}));
    }
  }
  for (NodeId node = 0; node < topology.endpoint_count(); ++node)
    wider.attach(node, topology.attachment(node));
  return wider;
}

EjectionPorts::EjectionPorts(const NetworkDescription& network, std::uint32_t card_channels)
    : count_(network.ejection_ports),
      card_channels_(card_channels),
      follows_fifo_(network.injection_rule == InjectionRule::queue) {
  if (network.local_ports() > 1) port_of_input_ = Directions(network.topology).of_port;
  for (std::uint32_t fifo = 0; fifo < network.local_ports(); ++fifo) port_of_input_.push_back(fifo);
  for (std::uint32_t& port : port_of_input_) port %= count_;
}

}  // namespace apenet
