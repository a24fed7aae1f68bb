#include "network/topology/topology.hpp"

#include <utility>

#include "kernel/check.hpp"

namespace apenet {

Topology::Topology(std::uint32_t router_count, std::uint32_t endpoint_count,
                   std::vector<std::string> port_names)
    : router_count_(router_count),
      port_names_(std::move(port_names)),
      router_names_(router_count),
      neighbours_(static_cast<std::size_t>(router_count) * port_names_.size()),
      link_classes_(neighbours_.size()),
      attachments_(endpoint_count) {}

void Topology::connect(PortRef one, PortRef other, std::uint32_t link_class) {
  APENET_CHECK(
      !neighbours_[index(one)].is_connected() && !neighbours_[index(other)].is_connected() && one != other,
      "cable from router %u port %u to router %u port %u ends in a port in use", one.router, one.port,
      other.router, other.port);
  neighbours_[index(one)] = other;
  neighbours_[index(other)] = one;
  link_classes_[index(one)] = link_class;
  link_classes_[index(other)] = link_class;
}

void Topology::attach(NodeId endpoint, PortRef port) {
  attachments_[endpoint] = port;
}

void Topology::name_router(RouterId router, std::string name) {
  router_names_[router] = std::move(name);
}

std::string Topology::link_name(PortRef port) const {
  return router_names_[port.router] + port_names_[port.port];
}

std::vector<std::string> numbered_ports(std::uint32_t count) {
  std::vector<std::string> names;
  for (std::uint32_t port = 0; port < count; ++port) names.push_back(":" + std::to_string(port));
  return names;
}

}  // namespace apenet
