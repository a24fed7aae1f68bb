#include "network/topology/cube.hpp"

#include <algorithm>

#include "kernel/grid.hpp"
#include "kernel/refuse.hpp"

namespace apenet {

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
    refuse_list("dims", dims_, "1 to 6 sizes of 1 to 65535 nodes, at most 16777216 nodes in all");
  }
  node_count_ = static_cast<std::uint32_t>(nodes);
}

std::vector<std::uint32_t> CubeShape::coordinates(NodeId node) const {
  std::vector<std::uint32_t> result(dims_.size());
  grid_coordinates(dims_, node, result);
  return result;
}

NodeId CubeShape::node(const std::vector<std::uint32_t>& coordinates) const {
  return grid_place(dims_, coordinates);
}

std::uint32_t CubeShape::distance(NodeId from, NodeId to, bool wraps) const {
  std::uint32_t links = 0;
  for (const std::uint32_t size : dims_) {
    const std::uint32_t upwards = (to % size + size - from % size) % size;
    const std::uint32_t downwards = size - upwards;
    links += wraps ? std::min(upwards, downwards) : (to % size > from % size ? upwards : downwards % size);
    from /= size;
    to /= size;
  }
  return links;
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
    for (std::uint32_t d = 0; d < here.size(); ++d) {
      const GridLine line(shape.dims(), node, d);
      if (line.extent == 1 || (!is_torus && line.is_last())) continue;
      topology.connect({node, CubeShape::plus_port(d)}, {line.further(node, 1), CubeShape::minus_port(d)}, d);
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

namespace {

TopologyKind cube_kind(std::string_view name, std::vector<std::string> routings) {
  return {.name = name,
          .routings = std::move(routings),
          .link_tables = {"x", "y", "z", "u", "v", "w"},
          .is_direct = true};
}

constexpr schema::List dims_range{schema::ranges::count, 1, CubeShape::max_dimensions};
constexpr const char* dims_meaning = "nodes along each dimension, X first";

}  // namespace

template <>
TopologyDescription registered<TorusDescription>() {
  return TorusDescription{};
}

TopologyKind TorusDescription::kind() {
  TopologyKind kind =
      cube_kind("torus", {"dimension-order", "dimension-order-entry-class", "dimension-order-bubble",
                          "minimal-adaptive", "minimal-adaptive-bubble", "valiant"});
  kind.is_grid = true;
  kind.wraps = true;
  return kind;
}

template <>
TopologyDescription registered<MeshDescription>() {
  return MeshDescription{};
}

TopologyKind MeshDescription::kind() {
  TopologyKind kind = cube_kind("mesh", {"dimension-order", "minimal-adaptive", "valiant"});
  kind.is_grid = true;
  return kind;
}

template <>
TopologyDescription registered<NoTopologyDescription>() {
  return NoTopologyDescription{};
}

TopologyKind NoTopologyDescription::kind() {
  TopologyKind kind = cube_kind("none", {"dimension-order"});
  kind.has_routers = false;
  kind.is_direct = false;
  return kind;
}

void list_fields(schema::Fields& fields, CubeDescription& cube) {
  fields("dims", cube.dims, dims_range, dims_meaning);
}

void list_fields(schema::Fields& fields, NoTopologyDescription& none) {
  fields("dims", none.dims, dims_range.optional(), dims_meaning);
}

Topology make_topology(const TorusDescription& torus) {
  return make_torus(CubeShape(torus.dims));
}

Topology make_topology(const MeshDescription& mesh) {
  return make_mesh(CubeShape(mesh.dims));
}

Topology make_topology(const NoTopologyDescription& /*none*/) {
  std::string known;
  const std::string_view last = registered_topologies().back().kind().name;
  for (const TopologyDescription& topology : registered_topologies()) {
    const TopologyKind kind = topology.kind();
    if (kind.has_routers)
      known.append(known.empty() ? "" : kind.name == last ? " or " : ", ").append(kind.name);
  }
  refuse_value("network.topology", "none", known + " for a card that sends packets");
}

std::uint32_t count_nodes(const TorusDescription& torus) {
  return CubeShape(torus.dims).node_count();
}

std::uint32_t count_nodes(const MeshDescription& mesh) {
  return CubeShape(mesh.dims).node_count();
}

std::vector<std::string> link_sections(const CubeDescription& cube) {
  return MeshDescription::kind().link_sections(cube.dims.size());
}

NodeDistances::NodeDistances(const TopologyDescription& topology)
    : is_grid_(topology.kind().is_grid),
      wraps_(topology.kind().wraps),
      shape_(is_grid_ ? topology.dims() : std::vector<std::uint32_t>{1}) {}

}  // namespace apenet
