// Topology: endpoints, routers, ports and neighbours. It contains no time and no state.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "network/packet.hpp"

namespace apenet {

using RouterId = std::uint32_t;

struct PortRef {
  RouterId router = std::numeric_limits<RouterId>::max();
  std::uint32_t port = 0;
  [[nodiscard]] bool is_connected() const { return router != std::numeric_limits<RouterId>::max(); }
  bool operator==(const PortRef&) const = default;
};

// A graph of routers with numbered ports. A cable joins two ports and carries one link in each direction; an
// endpoint (node) is attached to a port of its own. Engines and checks see any topology only through this
// class; only a routing may know more about its shape.
class Topology {
 public:
  Topology(std::uint32_t router_count, std::uint32_t endpoint_count, std::vector<std::string> port_names);

  // For building. Both ports must be free. link_class: which LinkDescription the cable has.
  void connect(PortRef one, PortRef other, std::uint32_t link_class);
  void attach(NodeId endpoint, PortRef port);
  void name_router(RouterId router, std::string name);

  [[nodiscard]] std::uint32_t router_count() const { return router_count_; }
  [[nodiscard]] std::uint32_t endpoint_count() const {
    return static_cast<std::uint32_t>(attachments_.size());
  }
  [[nodiscard]] std::uint32_t ports_per_router() const {
    return static_cast<std::uint32_t>(port_names_.size());
  }
  // The port at the other end of the cable; not connected for local and unused ports.
  [[nodiscard]] PortRef neighbour(PortRef port) const { return neighbours_[index(port)]; }
  [[nodiscard]] std::uint32_t link_class(PortRef port) const { return link_classes_[index(port)]; }
  [[nodiscard]] PortRef attachment(NodeId endpoint) const { return attachments_[endpoint]; }
  [[nodiscard]] const std::string& router_name(RouterId router) const { return router_names_[router]; }
  [[nodiscard]] const std::vector<std::string>& port_names() const { return port_names_; }
  // The name of the link that leaves through this port, for example "(0,0,0)+x".
  [[nodiscard]] std::string link_name(PortRef port) const;

 private:
  [[nodiscard]] std::size_t index(PortRef port) const {
    return static_cast<std::size_t>(port.router) * port_names_.size() + port.port;
  }

  std::uint32_t router_count_;
  std::vector<std::string> port_names_;
  std::vector<std::string> router_names_;
  std::vector<PortRef> neighbours_;          // per router and port
  std::vector<std::uint32_t> link_classes_;  // per router and port
  std::vector<PortRef> attachments_;         // per endpoint
};

// Returns ":0", ":1", ...: port names for routers whose ports have no names.
[[nodiscard]] std::vector<std::string> numbered_ports(std::uint32_t count);

}  // namespace apenet
