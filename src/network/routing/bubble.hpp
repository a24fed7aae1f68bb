// Routings whose rings a bubble keeps free of deadlock instead of a dateline.
#pragma once

#include <cstdint>
#include <memory>

#include "network/routing/adaptive_routing.hpp"
#include "network/routing/routing.hpp"

namespace apenet {

// Dimension order in one class (Carrion et al., "A flow control mechanism to avoid message deadlock in k-ary
// n-cube networks", HiPC 1997). Routing::bubble_class() says how the engines keep the bubble.
class BubbleOrderRouting final : public Routing {
 public:
  explicit BubbleOrderRouting(const TopologyDescription& torus);
  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  [[nodiscard]] std::uint32_t bubble_class() const override { return 0; }

 private:
  std::unique_ptr<const Routing> order_;
};

// Minimal adaptive routing whose escape is BubbleOrderRouting (Puente et al., "The adaptive bubble router",
// J. Parallel Distrib. Comput. 61, 2001): class 0 is the escape, class 1 the adaptive one.
class BubbleAdaptiveRouting final : public Routing {
 public:
  explicit BubbleAdaptiveRouting(const TopologyDescription& torus) : adaptive_(torus) {}
  [[nodiscard]] std::uint32_t class_count() const override { return 2; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return true; }
  [[nodiscard]] std::uint32_t bubble_class() const override { return 0; }

 private:
  MinimalAdaptiveRouting adaptive_;
};

}  // namespace apenet
