// Minimal adaptive routing on a cube.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/cube.hpp"

namespace apenet {

// Offers every link that brings the packet nearer, in one channel class, and as escape the step of dimension
// order, in its own classes (Duato, IEEE Trans. Parallel and Distributed Systems 4, 1993). A packet on an
// escape channel may leave it at the next router.
class MinimalAdaptiveRouting final : public Routing {
 public:
  MinimalAdaptiveRouting(const CubeShape& shape, bool is_torus);
  explicit MinimalAdaptiveRouting(const TopologyDescription& cube)
      : MinimalAdaptiveRouting(CubeShape(cube.dims()), cube.as<TorusDescription>() != nullptr) {}
  [[nodiscard]] std::uint32_t class_count() const override { return escape_.class_count() + 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  // One network of k x 2 nodes for each dimension of k nodes. Proof: dimension order uses the lowest
  // dimension in which a packet still has to move, and no minimal step undoes a move. So along the extended
  // dependencies the dimension of the escape channels never decreases, and a cycle stays within one
  // dimension. Project each channel of that dimension, from a router with position i along it and other
  // coordinates o, to the channel from (i, parity of the sum of o) in the factor. A dependency between two
  // channels is projected to a dependency: the class and direction of the first channel depend on i, on the
  // destination's position and, for ties, on that parity. After it there is no tie in this dimension any
  // more, so the second channel depends on the positions only. And a packet of the factor can change from one
  // of its two rings to the other, or stay, by adaptive steps. So a cycle becomes a closed walk in the
  // factor, which contains a cycle.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  DimensionOrderRouting escape_;
  std::vector<std::uint32_t> dims_;
  std::vector<std::uint16_t> coordinates_;  // per node and dimension
  bool is_torus_;
};

}  // namespace apenet
