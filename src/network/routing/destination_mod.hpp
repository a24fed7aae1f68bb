// DestinationModRouting: the deterministic routing of fat trees.
#pragma once

#include <cstdint>

#include "network/routing/routing.hpp"
#include "network/topology/fat_tree.hpp"

namespace apenet {

// D-mod-k (Zahavi, 2012): upwards, a switch of level l takes up port (destination / (w_1 .. w_l)) mod
// (w_(l+1) p_(l+1)), downwards the parallel cable that belongs to the same number. So all packets for a node
// come down by one path, and consecutive nodes use different ones.
//
// No packet goes up after it went down, so that no cycle closes: one class.
class DestinationModRouting final : public Routing {
 public:
  explicit DestinationModRouting(const FatTreeShape& shape) : shape_(shape) {}
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
