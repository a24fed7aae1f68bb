#include "network/routing/twisted_order.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace apenet {

namespace {

std::uint32_t first_dimension(const std::vector<std::int32_t>& way) {
  const auto first = std::find_if(way.begin(), way.end(), [](std::int32_t links) { return links != 0; });
  return static_cast<std::uint32_t>(first - way.begin());
}

}  // namespace

TwistedOrderRouting::TwistedOrderRouting(const TopologyDescription& torus)
    : shape_(torus.dims()),
      ring_nodes_(*std::max_element(shape_.cube().dims().begin(), shape_.cube().dims().end())) {
  const CubeShape& cube = shape_.cube();
  const auto dimensions = static_cast<std::uint32_t>(cube.dims().size());
  for (NodeId difference = 0; difference < cube.node_count(); ++difference) {
    const std::vector<std::vector<std::int32_t>> ways = shape_.shortest(difference);
    std::uint32_t dimension = 0;
    for (const std::vector<std::int32_t>& way : ways) dimension = std::max(dimension, first_dimension(way));
    std::int32_t plus = 0;
    std::int32_t minus = 0;
    for (const std::vector<std::int32_t>& way : ways) {
      if (dimension == dimensions || first_dimension(way) != dimension) continue;
      plus = std::max(plus, way[dimension]);
      minus = std::max(minus, -way[dimension]);
    }
    for (const bool is_odd : {false, true}) {
      const bool goes_minus = plus == 0 || (minus > 0 && is_odd);
      const std::uint32_t port =
          goes_minus && minus > 0 ? CubeShape::minus_port(dimension) : CubeShape::plus_port(dimension);
      legs_.push_back({port, static_cast<std::uint32_t>(goes_minus ? minus : plus)});
    }
  }
  constexpr std::uint32_t unplaced = ~0U;
  ring_places_.assign(std::size_t{cube.node_count()} * dimensions, unplaced);
  for (NodeId node = 0; node < cube.node_count(); ++node) {
    const std::vector<std::uint32_t> place = cube.coordinates(node);
    is_odd_.push_back(std::accumulate(place.begin(), place.end(), 0U) % 2 != 0);
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      NodeId on_ring = node;
      for (std::uint32_t along = 0; along < ring_nodes_; ++along) {
        std::uint32_t& ring_place = ring_places_[std::size_t{on_ring} * dimensions + d];
        if (ring_place != unplaced) break;
        ring_place = along;
        on_ring = shape_.next(on_ring, d);
      }
    }
  }
}

RouteStep TwistedOrderRouting::step(RouterId router, NodeId destination) const {
  const auto dimensions = static_cast<std::uint32_t>(shape_.cube().dims().size());
  const NodeId difference = shape_.difference(router, destination);
  const Leg& leg = legs_[2 * std::size_t{difference} + (is_odd_[router] ? 1 : 0)];
  const std::uint32_t dimension = leg.port / 2;
  if (dimension == dimensions) return {leg.port, 0};
  const std::uint32_t place = ring_places_[std::size_t{router} * dimensions + dimension];
  const bool crosses =
      leg.port == CubeShape::plus_port(dimension) ? place + leg.links >= ring_nodes_ : place < leg.links;
  return {leg.port, crosses ? 0U : 1U};
}

}  // namespace apenet
