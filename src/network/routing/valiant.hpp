// Valiant's routing on a cube.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/cube.hpp"

namespace apenet {

// In dimension order to the packet's waypoint, a random node, and from there in dimension order to the
// destination (Valiant, SIAM J. Computing 11, 1982): any pattern loads the links like uniform traffic over
// twice the distance. A packet that comes by its destination earlier stays there.
//
// The first half of the channel classes leads to the waypoint, the second half from there. The class by which
// a packet came tells how far it is.
class ValiantRouting final : public Routing {
 public:
  ValiantRouting(const CubeShape& shape, bool is_torus);
  explicit ValiantRouting(const TopologyDescription& cube)
      : ValiantRouting(CubeShape(cube.dims()), cube.as<TorusDescription>() != nullptr) {}
  [[nodiscard]] std::uint32_t class_count() const override { return 2 * order_.class_count(); }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return false; }
  [[nodiscard]] std::uint32_t waypoint_count() const override { return shape_.node_count(); }
  // The networks of dimension order. Proof: no packet returns from the second half of the classes to the
  // first, so a cycle stays within one half. There every packet follows dimension order: to its waypoint, or
  // from its waypoint as if it were injected there.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  CubeShape shape_;
  bool is_torus_;
  DimensionOrderRouting order_;
};

}  // namespace apenet
