// Minimal adaptive routing on a cube.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Any link that brings the packet nearer, in a class of its own; and as escape the step of dimension order,
// in its classes (Duato, IEEE Trans. Parallel and Distributed Systems 4, 1993). A packet on an escape channel
// may leave it again at the next router.
class MinimalAdaptiveRouting final : public Routing {
 public:
  MinimalAdaptiveRouting(const CubeShape& shape, bool is_torus);
  [[nodiscard]] std::uint32_t class_count() const override { return escape_.class_count() + 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  // One network of k x 2 nodes for each dimension of k nodes. Proof: dimension order asks for the lowest
  // dimension in which a packet has still to move, and no minimal step undoes one, so along the extended
  // dependencies the dimension of the escape channels never falls and a cycle stays within one. Project each
  // channel of that dimension, from a router with position i along it and any other coordinates o, to the
  // channel from (i, parity of the sum of o) in the factor. A dependency between two channels is projected to
  // a dependency: the first channel's class and direction depend on i, the destination's position and, for
  // ties, on that parity; behind it there is no tie in this dimension any more, so that the second's depend
  // on the positions alone; and a packet of the factor gets from any of its two rings to the other, or stays,
  // by adaptive steps. So a cycle becomes a closed walk in the factor, which contains a cycle.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  DimensionOrderRouting escape_;
  std::vector<std::uint32_t> dims_;
  std::vector<std::uint16_t> coordinates_;  // per node and dimension
  bool is_torus_;
};

}  // namespace apenet
