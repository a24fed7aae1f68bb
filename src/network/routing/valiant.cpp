#include "network/routing/valiant.hpp"

#include <memory>

#include "network/routing/routing_factor.hpp"

namespace apenet {

ValiantRouting::ValiantRouting(const CubeShape& shape, bool is_torus)
    : shape_(shape), is_torus_(is_torus), order_(shape, is_torus) {}

void ValiantRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  if (query.router == query.destination) return steps.set_only(order_.step(query.router, query.destination));
  const std::uint32_t half = order_.class_count();
  const bool is_past = !query.is_injected && query.input_class >= half;
  if (!is_past && query.router != query.waypoint)
    return steps.set_only(order_.step(query.router, query.waypoint));
  const RouteStep step = order_.step(query.router, query.destination);
  steps.set_only({step.port, step.channel_class + half});
}

std::vector<RoutingFactor> ValiantRouting::factors() const {
  std::vector<RoutingFactor> factors = order_.factors();
  if (factors.empty()) {
    factors.push_back({is_torus_ ? make_torus(shape_) : make_mesh(shape_),
                       std::make_unique<DimensionOrderRouting>(shape_, is_torus_)});
  }
  return factors;
}

}  // namespace apenet
