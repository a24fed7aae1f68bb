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

// The shape of a k-ary n-cube: converts between node numbers and coordinates. X is first and varies fastest,
// as in a Fortran array: node = x + dims[0] * (y + dims[1] * z).
class CubeShape {
 public:
  static constexpr std::size_t max_dimensions = 6;

  // Throws std::invalid_argument, which names network.dims, unless there are 1 to 6 dimensions of 1 to 65535
  // nodes and at most 2^24 nodes in total.
  explicit CubeShape(std::vector<std::uint32_t> dims);

  [[nodiscard]] const std::vector<std::uint32_t>& dims() const { return dims_; }
  [[nodiscard]] std::uint32_t node_count() const { return node_count_; }
  [[nodiscard]] std::vector<std::uint32_t> coordinates(NodeId node) const;
  [[nodiscard]] NodeId node(const std::vector<std::uint32_t>& coordinates) const;

  // Port numbers of a cube's router.
  [[nodiscard]] static constexpr std::uint32_t plus_port(std::uint32_t dimension) { return 2 * dimension; }
  [[nodiscard]] static constexpr std::uint32_t minus_port(std::uint32_t dimension) {
    return 2 * dimension + 1;
  }
  [[nodiscard]] std::uint32_t local_port() const { return 2 * static_cast<std::uint32_t>(dims_.size()); }

 private:
  std::vector<std::uint32_t> dims_;
  std::uint32_t node_count_ = 1;
};

// One router per node. The cable of port + ends at port - of the next node, so a torus dimension of two nodes
// has two cables and a dimension of one node has none. link_class is the dimension.
[[nodiscard]] Topology make_torus(const CubeShape& shape);
[[nodiscard]] Topology make_mesh(const CubeShape& shape);

// One switch with all nodes attached. Throws std::invalid_argument, which names network.nodes, unless there
// are 1 to 16384 nodes.
[[nodiscard]] Topology make_crossbar(std::uint32_t nodes);

}  // namespace apenet
