#include "api/qmp/communicator.hpp"

#include <limits>
#include <string>
#include <utility>

#include "api/qmp/failure.hpp"

namespace apenet::qmp {

std::vector<int> Grid::coordinates(int place) const {
  std::vector<int> at(extents.size());
  for (const int axis : order) {
    at[static_cast<std::size_t>(axis)] = place % extents[static_cast<std::size_t>(axis)];
    place /= extents[static_cast<std::size_t>(axis)];
  }
  return at;
}

int Grid::place(std::span<const int> coordinates) const {
  int place = 0;
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    const int extent = extents[static_cast<std::size_t>(*axis)];
    const int at = coordinates[static_cast<std::size_t>(*axis)] % extent;
    place = place * extent + (at < 0 ? at + extent : at);
  }
  return place;
}

std::optional<int> places_of(std::span<const int> extents) {
  int places = 1;
  for (const int extent : extents) {
    if (extent < 1 || places > std::numeric_limits<int>::max() / extent) return std::nullopt;
    places *= extent;
  }
  return places;
}

Communicator::Communicator(int context, std::vector<int> ranks, int own_node, std::vector<int> place_of_node)
    : context_(context),
      ranks_(std::move(ranks)),
      own_node_(own_node),
      place_of_node_(std::move(place_of_node)),
      node_at_place_(place_of_node_.size()) {
  for (std::size_t node = 0; node < place_of_node_.size(); ++node)
    node_at_place_[static_cast<std::size_t>(place_of_node_[node])] = static_cast<int>(node);
}

int Communicator::rank_of(int node) const {
  require(node >= 0 && node < size(), QMP_NODE_OUTRANGE,
          "node " + std::to_string(node) + ": expected 0 to " + std::to_string(size() - 1));
  return ranks_[static_cast<std::size_t>(node)];
}

void Communicator::declare(Grid grid) {
  require(!grid_, QMP_TOPOLOGY_EXISTS, "the communicator has a logical topology");
  grid_ = std::move(grid);
  coordinates_ = coordinates_of(own_node_);
}

std::vector<int> Communicator::coordinates_of(int node) const {
  static_cast<void>(rank_of(node));
  return declared().coordinates(place_of_node_[static_cast<std::size_t>(node)]);
}

const std::vector<int>& Communicator::coordinates() const {
  static_cast<void>(declared());
  return coordinates_;
}

int Communicator::node_at(std::span<const int> coordinates) const {
  return node_at_place_[static_cast<std::size_t>(declared().place(coordinates))];
}

const Grid& Communicator::declared() const {
  require(grid_.has_value(), QMP_INVALID_TOPOLOGY, "no logical topology is declared");
  return *grid_;
}

}  // namespace apenet::qmp
