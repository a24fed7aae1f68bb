#include "network/topology/twisted_torus.hpp"

#include <algorithm>
#include <cstdlib>

#include "kernel/grid.hpp"

namespace apenet {

namespace {

std::uint32_t checked_short_size(const std::vector<std::uint32_t>& dims) {
  const auto [least, most] = std::minmax_element(dims.begin(), dims.end());
  const std::uint32_t size = *least;
  const bool fits = size >= 2 && *most == 2 * size && std::all_of(dims.begin(), dims.end(), [size](auto d) {
                      return d == size || d == 2 * size;
                    });
  if (!fits) {
    refuse_list("dims", dims, "sizes k and 2k, at least one of each, k 2 or more, for a twisted torus");
  }
  return size;
}

}  // namespace

TwistedShape::TwistedShape(const std::vector<std::uint32_t>& dims)
    : cube_(dims), short_size_(checked_short_size(dims)) {
  coordinates_.reserve(std::size_t{cube_.node_count()} * dims.size());
  for (NodeId node = 0; node < cube_.node_count(); ++node) {
    for (const std::uint32_t digit : cube_.coordinates(node)) coordinates_.push_back(digit);
  }
}

NodeId TwistedShape::next(NodeId node, std::uint32_t dimension) const {
  const std::vector<std::uint32_t>& dims = cube_.dims();
  std::vector<std::uint32_t> place = cube_.coordinates(node);
  place[dimension] = (place[dimension] + 1) % dims[dimension];
  if (place[dimension] == 0 && is_short(dimension)) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!is_short(d)) place[d] = (place[d] + short_size_) % dims[d];
    }
  }
  return cube_.node(place);
}

NodeId TwistedShape::difference(NodeId from, NodeId to) const {
  const std::vector<std::uint32_t>& dims = cube_.dims();
  const std::uint32_t* const start = coordinates_.data() + std::size_t{from} * dims.size();
  const std::uint32_t* const end = coordinates_.data() + std::size_t{to} * dims.size();
  std::uint32_t twist = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (is_short(d) && end[d] < start[d]) twist = short_size_ - twist;  // each wrap-around: k or back to 0
  }
  NodeId node = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    const std::uint32_t ahead = end[d] + dims[d] - start[d] + (is_short(d) ? 0 : twist);
    node = node * dims[d] + ahead % dims[d];
  }
  return node;
}

std::vector<std::vector<std::int32_t>> TwistedShape::shortest(NodeId difference) const {
  const std::vector<std::uint32_t>& dims = cube_.dims();
  const std::vector<std::uint32_t> ahead = cube_.coordinates(difference);
  const auto size = static_cast<std::int32_t>(short_size_);
  std::vector<std::vector<std::int32_t>> ways;
  std::int32_t least = 0;
  // Each bit: which way around a short dimension, or, if both are equally short, around a long one.
  for (std::uint32_t choice = 0; choice < 1U << dims.size(); ++choice) {
    std::vector<std::int32_t> way(dims.size());
    bool is_twisted = false;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!is_short(d)) continue;
      const bool goes_back = (choice >> d & 1U) != 0;
      way[d] = static_cast<std::int32_t>(ahead[d]) - (goes_back ? size : 0);
      is_twisted = is_twisted != goes_back;
    }
    bool is_new = true;
    std::int32_t links = 0;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const bool has_bit = (choice >> d & 1U) != 0;
      if (!is_short(d)) {
        const std::uint32_t distance = (ahead[d] + (is_twisted ? short_size_ : 0)) % dims[d];
        const bool goes_back = distance == short_size_ ? has_bit : distance > short_size_;
        if (distance != short_size_ && has_bit) is_new = false;
        way[d] = static_cast<std::int32_t>(distance) - (goes_back ? 2 * size : 0);
      }
      links += std::abs(way[d]);
    }
    if (!is_new || (!ways.empty() && links > least)) continue;
    if (links < least) ways.clear();
    least = links;
    ways.push_back(std::move(way));
  }
  return ways;
}

template <>
TopologyDescription registered<TwistedTorusDescription>() {
  return TwistedTorusDescription{};
}

TopologyKind TwistedTorusDescription::kind() {
  return {.name = "twisted-torus",
          .routings = {"dimension-order", "dimension-order-bubble"},
          .link_tables = MeshDescription::kind().link_tables,
          .is_direct = true};
}

Topology make_topology(const TwistedTorusDescription& torus) {
  const TwistedShape shape(torus.dims);
  // Names, attachments and ports are those of the mesh, and so are the cables that close no dimension.
  Topology topology = make_mesh(shape.cube());
  for (NodeId node = 0; node < shape.cube().node_count(); ++node) {
    for (std::uint32_t d = 0; d < torus.dims.size(); ++d) {
      if (!GridLine(torus.dims, node, d).is_last()) continue;
      topology.connect({node, CubeShape::plus_port(d)}, {shape.next(node, d), CubeShape::minus_port(d)}, d);
    }
  }
  return topology;
}

std::uint32_t count_nodes(const TwistedTorusDescription& torus) {
  return TwistedShape(torus.dims).cube().node_count();
}

}  // namespace apenet
