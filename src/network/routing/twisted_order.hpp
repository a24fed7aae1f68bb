// Dimension order on a twisted torus.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/twisted_torus.hpp"

namespace apenet {

// Lowest dimension first, along one of the shortest ways. Of several it takes one that begins in the highest
// dimension, of those one with the most links along it; between + and - the parity of the router's coordinate
// sum decides.
//
// A packet that follows such a way never returns to a lower dimension: the ways that are left after a link
// are those that contain it, and the rest of the packet's own is one of them. The links that it still has to
// go along its dimension decrease by one with each link.
//
// Freedom from deadlock: datelines, as in DimensionOrderRouting, at one place of each ring of 2k nodes. A
// packet that may still cross it uses class 0, any other packet class 1.
class TwistedOrderRouting final : public Routing {
 public:
  explicit TwistedOrderRouting(const TopologyDescription& torus);
  [[nodiscard]] std::uint32_t class_count() const override { return 2; }
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    steps.set_only(step(query.router, query.destination));
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

  [[nodiscard]] RouteStep step(RouterId router, NodeId destination) const;

 private:
  struct Leg {
    std::uint32_t port = 0;
    std::uint32_t links = 0;  // along the port's dimension
  };

  TwistedShape shape_;
  std::uint32_t ring_nodes_;                // 2k
  std::vector<Leg> legs_;                   // per difference, for routers with even and with odd sum
  std::vector<std::uint32_t> ring_places_;  // per node and dimension: its place along the ring
  std::vector<bool> is_odd_;                // per node: its coordinate sum
};

}  // namespace apenet
