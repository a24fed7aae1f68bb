#include "network/flit_route_unit.hpp"

#include <algorithm>

#include "kernel/check.hpp"
#include "network/flit_bits.hpp"

namespace apenet {

FlitRouteUnit::FlitRouteUnit(const Routing& routing, const FlitFabric& fabric,
                             NetworkDescription::ChannelSelection selection)
    : routing_(routing),
      fabric_(fabric),
      classes_(routing.class_count()),
      lanes_(fabric.virtual_channels / routing.class_count()),
      is_lane_(selection == NetworkDescription::ChannelSelection::lane) {
  for (std::uint32_t channel = 0; channel < fabric.channels; ++channel) {
    const std::uint32_t channel_class = fabric.virtual_channel_of(channel) / lanes_;
    inputs_.push_back({static_cast<std::uint16_t>(fabric.port_of_channel(channel)),
                       static_cast<std::uint16_t>(std::min(channel_class, classes_ - 1))});
  }
  const auto add_set = [&](std::uint64_t mask) {
    for (std::uint32_t port = 0; port < FlitRequest::max_ports; ++port) {
      const std::uint32_t first_channel = port << fabric.virtual_channel_bits;
      wanted_.push_back({mask, first_channel, first_channel + lowest_bit(mask)});
    }
  };
  for (std::uint32_t c = 0; c < classes_; ++c) add_set(low_bits(lanes_) << (c * lanes_));
  for (std::uint32_t v = 0; v < classes_ * lanes_; ++v) add_set(std::uint64_t{1} << v);
  add_set(low_bits(fabric.virtual_channels));
  sets_ = static_cast<std::uint32_t>(wanted_.size() / FlitRequest::max_ports);
  for (std::uint32_t set = 0; set < sets_; ++set) add_set(wanted_[set * FlitRequest::max_ports].mask);
  if (is_lane_) return;
  entry_ = dynamic_cast<const DimensionOrderEntryRouting*>(&routing);
  if (entry_ == nullptr) return;
  for (const Input& input : inputs_) {
    entry_inputs_.push_back(entry_->input(input.port, input.channel_class));
  }
  const std::uint32_t any = classes_ * (lanes_ + 1);
  entry_requests_.resize(std::size_t{4} * fabric.ports);
  for (std::uint32_t port = 0; port < fabric.ports; ++port) {
    const bool is_local = port + 1 == fabric.ports;
    for (std::uint32_t c = 0; c < classes_; ++c) {
      for (const bool is_tie : {false, true}) {
        const DimensionOrderEntryRouting::Step step({port, c}, is_tie);
        entry_requests_[step.index()] = {port, is_local ? any : c};
      }
    }
  }
}

FlitRequest FlitRouteUnit::find(std::uint32_t router, std::uint32_t input_channel,
                                std::uint32_t packet) const {
  RouteSteps steps;
  find_steps(router, input_channel, packet, steps);
  APENET_CHECK(steps.count() > 0, "no way from router %u to node %u", router,
               fabric_.routes[packet].destination);
  if (steps.choice() == RouteChoice::adaptive && steps.count() > 1) return for_now({});
  std::uint32_t chosen = 0;
  if (steps.choice() == RouteChoice::random && steps.count() > 1) {
    const std::uint32_t draws = draws_of(fabric_.simulation.seed(), fabric_.packets[packet].packet);
    chosen = draw_step(steps.count(), draws, steps[0].port);
  }
  return request_of(router, steps[chosen], packet);
}

}  // namespace apenet
