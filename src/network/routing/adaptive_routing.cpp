#include "network/routing/adaptive_routing.hpp"

#include <algorithm>
#include <memory>

#include "network/routing/routing_factor.hpp"

namespace apenet {

MinimalAdaptiveRouting::MinimalAdaptiveRouting(const CubeShape& shape, bool is_torus)
    : escape_(shape, is_torus), dims_(shape.dims()), is_torus_(is_torus) {
  coordinates_.reserve(shape.node_count() * dims_.size());
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    for (const std::uint32_t digit : shape.coordinates(node))
      coordinates_.push_back(static_cast<std::uint16_t>(digit));
  }
}

void MinimalAdaptiveRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  const RouteStep escape = escape_.step(query.router, query.destination);
  if (query.router == query.destination) return steps.set_only(escape);
  const std::uint32_t adaptive_class = escape_.class_count();
  const std::uint16_t* const here = coordinates_.data() + query.router * dims_.size();
  const std::uint16_t* const there = coordinates_.data() + query.destination * dims_.size();
  steps.clear(RouteChoice::adaptive);
  for (std::uint32_t d = 0; d < dims_.size(); ++d) {
    if (here[d] == there[d]) continue;
    const bool is_ahead = here[d] < there[d];
    const std::uint32_t plus =
        is_ahead ? there[d] - here[d] : dims_[d] + there[d] - here[d];  // links in + direction
    const bool plus_is_minimal = is_torus_ ? 2 * plus <= dims_[d] : is_ahead;
    const bool minus_is_minimal = is_torus_ ? 2 * plus >= dims_[d] : !is_ahead;
    if (plus_is_minimal) steps.add({CubeShape::plus_port(d), adaptive_class});
    if (minus_is_minimal) steps.add({CubeShape::minus_port(d), adaptive_class});
  }
  steps.add(escape);
}

std::vector<RoutingFactor> MinimalAdaptiveRouting::factors() const {
  const auto is_ring = [](std::uint32_t size) { return size > 1; };
  std::vector<RoutingFactor> factors;
  if (std::count_if(dims_.begin(), dims_.end(), is_ring) < 2) return factors;
  for (const std::uint32_t size : dims_) {
    if (!is_ring(size)) continue;
    const CubeShape shape({size, 2});
    factors.push_back({is_torus_ ? make_torus(shape) : make_mesh(shape),
                       std::make_unique<MinimalAdaptiveRouting>(shape, is_torus_)});
  }
  return factors;
}

}  // namespace apenet
