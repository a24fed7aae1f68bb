#include "network/routing/bubble.hpp"

#include "network/routing/arrangement.hpp"

namespace apenet {

BubbleOrderRouting::BubbleOrderRouting(const TopologyDescription& torus)
    : order_(make_dimension_order(torus)) {}

void BubbleOrderRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  order_->route(query, steps);
  steps.set_only({steps[0].port, 0});
}

void BubbleAdaptiveRouting::route(const RouteQuery& query, RouteSteps& steps) const {
  RouteSteps with_dateline;
  adaptive_.route(query, with_dateline);
  const std::uint32_t count = with_dateline.count();
  if (count == 1) return steps.set_only({with_dateline[0].port, 0});  // the node itself
  steps.clear(with_dateline.choice());
  for (std::uint32_t i = 0; i < count; ++i) steps.add({with_dateline[i].port, i + 1 == count ? 0U : 1U});
}

}  // namespace apenet
