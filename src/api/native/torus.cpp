#include "api/native/torus.hpp"

#include <algorithm>

#include "kernel/grid.hpp"

namespace apenet::native {

Torus::Torus(const ipc::Client& client, const ipc::Grid& grid) : grid_(grid) {
  for (std::uint32_t rank = 0; rank < client.size(); ++rank) {
    const std::uint32_t node = client.node_of(rank);
    node_of_.push_back(node);
    if (node >= ranks_on_.size()) ranks_on_.resize(node + 1);
    ranks_on_[node].push_back(rank);
  }
}

Torus::Coordinates Torus::coordinates(std::uint32_t node) const {
  Coordinates at{};
  grid_coordinates(extents(), node, at);
  return at;
}

std::optional<std::uint32_t> Torus::next_node(std::uint32_t node, std::uint32_t direction) const {
  const std::uint32_t dimension = direction / 2;
  const bool is_minus = direction % 2 != 0;
  if (dimension >= grid_.dimensions) return std::nullopt;
  const GridLine line(extents(), node, dimension);
  if (!grid_.is_closed(dimension) && (is_minus ? line.is_first() : line.is_last())) return std::nullopt;
  return line.further(node, is_minus ? line.extent - 1 : 1);
}

const std::vector<std::uint32_t>& Torus::ranks_on(std::uint32_t node) const {
  static const std::vector<std::uint32_t> nobody;
  return node < ranks_on_.size() ? ranks_on_[node] : nobody;
}

std::uint32_t Torus::place_of(std::uint32_t rank) const {
  const std::vector<std::uint32_t>& here = ranks_on(node_of_[rank]);
  return static_cast<std::uint32_t>(std::find(here.begin(), here.end(), rank) - here.begin());
}

std::optional<std::uint32_t> Torus::neighbour(std::uint32_t rank, std::uint32_t direction) const {
  const std::optional<std::uint32_t> node = next_node(node_of_[rank], direction);
  if (!node.has_value()) return std::nullopt;
  const std::vector<std::uint32_t>& there = ranks_on(*node);
  const std::uint32_t place = place_of(rank);
  if (place >= there.size()) return std::nullopt;
  return there[place];
}

}  // namespace apenet::native
