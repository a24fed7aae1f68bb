#include "network/routing/destination_mod.hpp"

#include <memory>

#include "network/routing/routing_factor.hpp"

namespace apenet {

std::uint32_t tree_port(const FatTreeShape& shape, RouterId router, NodeId destination, TreeUplinks uplinks) {
  const std::uint32_t leaf = destination / shape.children[0];
  const std::uint32_t pod = leaf / shape.children[1];
  const std::uint32_t first_middle = shape.switches(0);
  const std::uint32_t first_spine = first_middle + shape.switches(1);
  if (router < first_middle)
    return router == leaf ? destination % shape.children[0] : shape.down_ports(0) + uplinks.leaf;
  if (router >= first_spine) return pod + shape.children[2] * (uplinks.middle / shape.parents[1]);
  if ((router - first_middle) / shape.parents[0] != pod) return shape.down_ports(1) + uplinks.middle;
  return leaf % shape.children[1] + shape.children[1] * (uplinks.leaf / shape.parents[0]);
}

TreeUplinks DestinationModRouting::uplinks(NodeId destination) const {
  return {destination % shape_.up_ports(0),
          shape_.levels() == 2 ? 0 : destination / shape_.parents[0] % shape_.up_ports(1)};
}

std::uint32_t RandomUpRouting::waypoint_count() const {
  return shape_.up_ports(0) * (shape_.levels() == 2 ? 1 : shape_.up_ports(1));
}

void RandomUpRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  const TreeUplinks uplinks{query.waypoint % shape_.up_ports(0), query.waypoint / shape_.up_ports(0)};
  steps.set_only({tree_port(shape_, query.router, query.destination, uplinks), 0});
}

std::vector<RoutingFactor> RandomUpRouting::factors() const {
  FatTreeDescription merged;
  merged.children.assign(shape_.children.begin(), shape_.children.begin() + shape_.levels());
  merged.parents.assign(shape_.levels() - 1, 1);
  merged.cables = merged.parents;
  const FatTreeShape shape(merged);
  std::vector<RoutingFactor> factors;
  factors.push_back({make_fat_tree(shape), std::make_unique<DestinationModRouting>(shape)});
  return factors;
}

}  // namespace apenet
