// The routings of fat trees: DestinationModRouting, deterministic, and RandomUpRouting.
#pragma once

#include <cstdint>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/fat_tree.hpp"

namespace apenet {

// The up ports of a path, counted from the first one. The way down uses the cables of the same numbers.
struct TreeUplinks {
  std::uint32_t leaf = 0;
  std::uint32_t middle = 0;
};

// The port of a path that goes up as far as necessary and then down.
[[nodiscard]] std::uint32_t tree_port(const FatTreeShape& shape, RouterId router, NodeId destination,
                                      TreeUplinks uplinks);

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
    steps.set_only({tree_port(shape_, query.router, query.destination, uplinks(query.destination)), 0});
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

 private:
  [[nodiscard]] TreeUplinks uplinks(NodeId destination) const;

  FatTreeShape shape_;
};

// Every packet draws its up ports, each with equal probability (`fattree_nca` of BookSim2). The waypoint
// holds both: leaf + leaf's up ports * middle.
class RandomUpRouting final : public Routing {
 public:
  explicit RandomUpRouting(const FatTreeShape& shape) : shape_(shape) {}
  explicit RandomUpRouting(const TopologyDescription& tree)
      : RandomUpRouting(FatTreeShape(*tree.as<FatTreeDescription>())) {}
  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override;
  [[nodiscard]] bool keeps_order() const override { return false; }
  [[nodiscard]] bool is_memoryless() const override { return false; }
  [[nodiscard]] std::uint32_t waypoint_count() const override;
  // The tree with a single parent and a single cable everywhere. Proof: merging the switches of a level above
  // the same leaves, and their cables, turns every path into the only path of that tree. It turns a closed
  // chain of dependencies into a closed chain there, which contains a cycle.
  [[nodiscard]] std::vector<RoutingFactor> factors() const override;

 private:
  FatTreeShape shape_;
};

}  // namespace apenet
