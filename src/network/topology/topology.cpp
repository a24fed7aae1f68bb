#include "network/topology/topology.hpp"

#include <utility>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"

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

namespace {

std::string dims_text(const std::vector<std::uint32_t>& dims) {
  std::string text = "[";
  for (const std::uint32_t size : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

}  // namespace

CubeShape::CubeShape(std::vector<std::uint32_t> dims) : dims_(std::move(dims)) {
  constexpr std::uint32_t max_size = 65535;       // MinimalAdaptiveRouting keeps coordinates in 16 bits
  constexpr std::uint64_t max_nodes = 1U << 24U;  // below the limit of sources in the event order
  std::uint64_t nodes = 1;
  bool is_valid = !dims_.empty() && dims_.size() <= max_dimensions;
  for (const std::uint32_t size : dims_) {
    is_valid = is_valid && size >= 1 && size <= max_size;
    if (is_valid) nodes *= size;
    is_valid = is_valid && nodes <= max_nodes;
  }
  if (!is_valid) {
    refuse_value("network.dims", dims_text(dims_),
                 "1 to 6 sizes of 1 to 65535 nodes, at most 16777216 nodes in all");
  }
  node_count_ = static_cast<std::uint32_t>(nodes);
}

std::vector<std::uint32_t> CubeShape::coordinates(NodeId node) const {
  std::vector<std::uint32_t> result;
  for (const std::uint32_t size : dims_) {
    result.push_back(node % size);
    node /= size;
  }
  return result;
}

NodeId CubeShape::node(const std::vector<std::uint32_t>& coordinates) const {
  NodeId result = 0;
  for (std::size_t d = dims_.size(); d-- > 0;) result = result * dims_[d] + coordinates[d];
  return result;
}

namespace {

Topology make_cube(const CubeShape& shape, bool is_torus) {
  std::vector<std::string> port_names;
  for (std::size_t d = 0; d < shape.dims().size(); ++d) {
    const std::string axis(1, "xyzuvw"[d]);
    port_names.push_back("+" + axis);
    port_names.push_back("-" + axis);
  }
  port_names.emplace_back(" local");
  Topology topology(shape.node_count(), shape.node_count(), std::move(port_names));
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    const std::vector<std::uint32_t> here = shape.coordinates(node);
    std::string name = "(";
    for (const std::uint32_t digit : here) name += (name.size() > 1 ? "," : "") + std::to_string(digit);
    topology.name_router(node, name + ")");
    topology.attach(node, {node, shape.local_port()});
    std::uint32_t stride = 1;  // from a node to the next in the dimension
    for (std::uint32_t d = 0; d < here.size(); ++d) {
      const std::uint32_t size = shape.dims()[d];
      const bool is_last = here[d] + 1 == size;
      const NodeId next = is_last ? node - here[d] * stride : node + stride;
      stride *= size;
      if (size == 1 || (!is_torus && is_last)) continue;
      topology.connect({node, CubeShape::plus_port(d)}, {next, CubeShape::minus_port(d)}, d);
    }
  }
  return topology;
}

}  // namespace

Topology make_torus(const CubeShape& shape) {
  return make_cube(shape, true);
}

Topology make_mesh(const CubeShape& shape) {
  return make_cube(shape, false);
}

Topology make_crossbar(std::uint32_t nodes) {
  constexpr std::uint32_t max_nodes = 16384;  // each output of an engine has one bit per input
  if (nodes < 1 || nodes > max_nodes) {
    refuse_value("network.nodes", std::to_string(nodes), "1 to " + std::to_string(max_nodes));
  }
  Topology topology(1, nodes, numbered_ports(nodes));
  topology.name_router(0, "switch");
  for (NodeId node = 0; node < nodes; ++node) topology.attach(node, {0, node});
  return topology;
}

}  // namespace apenet
