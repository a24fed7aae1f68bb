#include "network/routing/destination_mod.hpp"

namespace apenet {

std::uint32_t DestinationModRouting::port(RouterId router, NodeId destination) const {
  const std::uint32_t leaf = destination / shape_.children[0];
  const std::uint32_t pod = leaf / shape_.children[1];
  const std::uint32_t first_middle = shape_.switches(0);
  const std::uint32_t first_spine = first_middle + shape_.switches(1);
  const std::uint32_t leaf_up = destination % shape_.up_ports(0);
  if (router < first_middle)
    return router == leaf ? destination % shape_.children[0] : shape_.down_ports(0) + leaf_up;
  const std::uint32_t middle_up =
      shape_.levels() == 2 ? 0 : destination / shape_.parents[0] % shape_.up_ports(1);
  if (router >= first_spine) return pod + shape_.children[2] * (middle_up / shape_.parents[1]);
  if ((router - first_middle) / shape_.parents[0] != pod) return shape_.down_ports(1) + middle_up;
  return leaf % shape_.children[1] + shape_.children[1] * (leaf_up / shape_.parents[0]);
}

}  // namespace apenet
