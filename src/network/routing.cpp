#include "network/routing.hpp"

namespace apenet {

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

RouteStep DimensionOrderRouting::route(RouterId router, NodeId destination) const {
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

}  // namespace apenet
