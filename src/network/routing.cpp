#include "network/routing.hpp"

#include <algorithm>

#include "kernel/random.hpp"
#include "network/routing_factor.hpp"

namespace apenet {

std::vector<RoutingFactor> Routing::factors() const {
  return {};
}

std::uint32_t draw_step(std::uint32_t count, std::uint64_t seed, const Packet& packet, RouterId router) {
  const PhiloxBlock identity = {packet.source, packet.sequence, static_cast<std::uint32_t>(packet.message),
                                static_cast<std::uint32_t>(packet.message >> 32U)};
  const PhiloxKey key = {static_cast<std::uint32_t>(seed) ^ static_cast<std::uint32_t>(seed >> 32U), router};
  return static_cast<std::uint32_t>((std::uint64_t{philox4x32_10(identity, key)[0]} * count) >> 32U);
}

DimensionOrderRouting::DimensionOrderRouting(const CubeShape& shape, bool is_torus) : is_torus_(is_torus) {
  for (const std::uint32_t size : shape.dims()) dims_.push_back(static_cast<std::int32_t>(size));
  coordinates_.reserve(shape.node_count() * dims_.size());
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    for (const std::uint32_t digit : shape.coordinates(node)) {
      coordinates_.push_back(static_cast<std::uint16_t>(digit));
    }
  }
}

bool DimensionOrderRouting::has_even_sum(RouterId router) const {
  std::uint32_t sum = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) sum += coordinates_[router * dims_.size() + d];
  return sum % 2 == 0;
}

std::vector<RoutingFactor> DimensionOrderRouting::factors() const {
  const auto is_ring = [](std::int32_t size) { return size > 1; };
  std::vector<RoutingFactor> factors;
  if (std::count_if(dims_.begin(), dims_.end(), is_ring) < 2) return factors;
  for (const std::int32_t size : dims_) {
    if (!is_ring(size)) continue;
    const CubeShape shape({static_cast<std::uint32_t>(size), 2});
    factors.push_back({is_torus_ ? make_torus(shape) : make_mesh(shape),
                       std::make_unique<DimensionOrderRouting>(shape, is_torus_)});
  }
  return factors;
}

RouteStep DimensionOrderRouting::step(RouterId router, NodeId destination) const {
  const std::size_t dimension_count = dims_.size();
  const std::uint16_t* const here = coordinates_.data() + router * dimension_count;
  const std::uint16_t* const there = coordinates_.data() + destination * dimension_count;
  for (std::uint32_t d = 0; d < dimension_count; ++d) {
    if (here[d] == there[d]) continue;
    const bool is_ahead = here[d] < there[d];
    if (!is_torus_) return {is_ahead ? CubeShape::plus_port(d) : CubeShape::minus_port(d), 0};
    const std::int32_t distance = there[d] - here[d] + (is_ahead ? 0 : dims_[d]);  // going +
    const bool goes_plus = 2 * distance < dims_[d] || (2 * distance == dims_[d] && has_even_sum(router));
    const bool wraps = goes_plus != is_ahead;
    return {goes_plus ? CubeShape::plus_port(d) : CubeShape::minus_port(d), wraps ? 0U : 1U};
  }
  return {2 * static_cast<std::uint32_t>(dimension_count), 0};
}

DimensionOrderEntryRouting::DimensionOrderEntryRouting(const CubeShape& shape) : dims_(shape.dims()) {
  std::uint32_t shift = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const auto bits = static_cast<std::uint32_t>(std::bit_width(dims_[d] - 1));
    digits_[d] = {dims_[d], shift, (1U << bits) - 1, static_cast<std::uint32_t>(d)};
    for (std::uint32_t bit = shift; bit < shift + bits; ++bit) {
      dimension_of_bit_[bit] = static_cast<std::uint8_t>(d);
    }
    shift += bits;
  }
  constexpr std::uint32_t no_dimension = ~0U;
  digits_[dims_.size()] = {1, 0, 0, no_dimension};
  dimension_of_bit_[32] = static_cast<std::uint8_t>(dims_.size());
  packed_.reserve(shape.node_count());
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    std::uint32_t packed = 0;
    std::size_t d = 0;
    for (const std::uint32_t digit : shape.coordinates(node)) packed |= digit << digits_[d++].shift;
    packed_.push_back(packed);
  }
}

std::vector<RoutingFactor> DimensionOrderEntryRouting::factors() const {
  std::vector<RoutingFactor> factors;
  if (dims_.size() < 2) return factors;
  for (const std::uint32_t size : dims_) {
    if (size == 1) continue;
    const CubeShape ring({size});
    factors.push_back({make_torus(ring), std::make_unique<DimensionOrderEntryRouting>(ring)});
  }
  return factors;
}

}  // namespace apenet
