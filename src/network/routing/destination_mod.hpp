// DestinationModRouting: the deterministic routing of fat trees.
#pragma once

#include <cstdint>

#include "network/routing/routing.hpp"
#include "network/topology/fat_tree.hpp"

namespace apenet {

// D-mod-k (Zahavi, 2012): upwards, a switch of level l takes up port (destination / (w_1 .. w_l)) mod
// (w_(l+1) p_(l+1)); downwards, the parallel cable with the same number. All packets to a node therefore come
// down on one path, and consecutive nodes use different paths.
//
// No packet goes up after it has gone down, so there is no cycle, and one class is enough.
class DestinationModRouting final : public Routing {
 public:
  explicit DestinationModRouting(const FatTreeShape& shape) : shape_(shape) {}
  explicit DestinationModRouting(const TopologyDescription& tree)
      : DestinationModRouting(FatTreeShape(*tree.as<FatTreeDescription>())) {}
  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    steps.set_only({port(query.router, query.destination), 0});
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

  [[nodiscard]] std::uint32_t port(RouterId router, NodeId destination) const;

 private:
  FatTreeShape shape_;
};

}  // namespace apenet
