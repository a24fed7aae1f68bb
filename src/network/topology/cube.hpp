// Tori and meshes: description, shape and wiring. "none": no network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "network/topology/description.hpp"

namespace apenet {

struct CubeDescription {
  std::vector<std::uint32_t> dims;  // nodes per dimension, X first
  CubeDescription() = default;
  explicit CubeDescription(std::vector<std::uint32_t> dims_) : dims(std::move(dims_)) {}
};

struct TorusDescription : CubeDescription {
  using CubeDescription::CubeDescription;
  [[nodiscard]] static TopologyKind kind();
};

struct MeshDescription : CubeDescription {
  using CubeDescription::CubeDescription;
  [[nodiscard]] static TopologyKind kind();
};

// Topology of cards that need no network. Their nodes may have coordinates.
struct NoTopologyDescription : CubeDescription {
  using CubeDescription::CubeDescription;
  [[nodiscard]] static TopologyKind kind();
};

void list_fields(schema::Fields& fields, CubeDescription& cube);
void list_fields(schema::Fields& fields, NoTopologyDescription& none);
[[nodiscard]] Topology make_topology(const TorusDescription& torus);
[[nodiscard]] Topology make_topology(const MeshDescription& mesh);
[[noreturn]] Topology make_topology(const NoTopologyDescription& none);
[[nodiscard]] std::uint32_t count_nodes(const TorusDescription& torus);
[[nodiscard]] std::uint32_t count_nodes(const MeshDescription& mesh);
[[nodiscard]] std::vector<std::string> link_sections(const CubeDescription& cube);

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
  // The fewest links between two nodes, in the torus (`wraps`) or mesh of this shape.
  [[nodiscard]] std::uint32_t distance(NodeId from, NodeId to, bool wraps) const;

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

// Least number of links between two nodes: on a torus or mesh those of its way by their
// dimensions, elsewhere one.
class NodeDistances {
 public:
  explicit NodeDistances(const TopologyDescription& topology);

  [[nodiscard]] std::uint32_t at_least(NodeId from, NodeId to) const {
    return from == to || !is_grid_ ? 1 : shape_.distance(from, to, wraps_);
  }

 private:
  bool is_grid_;
  bool wraps_;
  CubeShape shape_;
};

}  // namespace apenet
