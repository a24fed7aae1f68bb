#include "network/flit/route_unit.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "kernel/check.hpp"
#include "network/flit/bits.hpp"

namespace apenet {

FlitRouteUnit::FlitRouteUnit(const Routing& routing, const FlitFabric& fabric,
                             NetworkDescription::ChannelSelection selection)
    : routing_(&routing),
      fabric_(&fabric),
      waypoint_count_(routing.waypoint_count()),
      class_count_(routing.class_count()),
      classes_(fabric.virtual_channels, class_count_),
      is_lane_(selection == NetworkDescription::ChannelSelection::lane),
      shared_port_(fabric.ports_of_node > 1 ? fabric.ports - fabric.ports_of_node : no_port) {
  for (std::uint32_t channel = 0; channel < fabric.channels; ++channel) {
    const std::uint32_t channel_class = classes_.class_of(fabric.virtual_channel_of(channel));
    inputs_.push_back({static_cast<std::uint16_t>(std::min(fabric.port_of_channel(channel), shared_port_)),
                       static_cast<std::uint16_t>(channel_class)});
  }
  const auto add_set = [&](std::uint64_t mask) {
    for (std::uint32_t port = 0; port < FlitRequest::max_ports; ++port) {
      const std::uint32_t first_channel = port << fabric.virtual_channel_bits;
      wanted_.push_back({mask, first_channel, first_channel + lowest_bit(mask)});
    }
  };
  for (std::uint32_t c = 0; c < class_count_; ++c) add_set(classes_.mask(c));
  for (std::uint32_t v = 0; v < fabric.virtual_channels; ++v) add_set(std::uint64_t{1} << v);
  add_set(low_bits(fabric.virtual_channels));
  sets_ = static_cast<std::uint32_t>(wanted_.size() / FlitRequest::max_ports);
  for (std::uint32_t set = 0; set < sets_; ++set) add_set(wanted_[set * FlitRequest::max_ports].mask);
  if (is_lane_ || fabric.ports_of_node > 1) return;
  const auto* const entry = dynamic_cast<const DimensionOrderEntryRouting*>(&routing);
  if (entry == nullptr) return;
  const std::uint32_t any = class_count_ + fabric.virtual_channels;
  fixed_ = FlitCubeRequests(*entry, inputs_, [&](RouteStep step) {
    const bool is_local = step.port + 1 == fabric.ports;
    return FlitRequest(step.port, is_local ? any : step.channel_class);
  });
}

FlitCubeRequests::FlitCubeRequests(const DimensionOrderEntryRouting& routing,
                                   const std::vector<FlitInput>& inputs,
                                   const std::function<FlitRequest(RouteStep)>& request) {
  const CubeShape shape(routing.dims());
  const std::vector<std::uint32_t>& dims = shape.dims();
  std::vector<std::uint32_t> shifts;
  std::uint32_t used_bits = 0;
  for (const std::uint32_t size : dims) {
    shifts.push_back(used_bits);
    used_bits += 1 + static_cast<std::uint32_t>(std::bit_width(size - 1));
  }
  if (used_bits > word_bits) return;
  shifts.push_back(used_bits);

  std::uint32_t table_size = 0;
  for (std::uint32_t d = 0; d < dims.size(); ++d) {
    const std::uint32_t bits = shifts[d + 1] - shifts[d];
    differences_ |= static_cast<std::uint32_t>(low_bits(bits) & ~std::uint64_t{1}) << shifts[d];
    const Digit digit{static_cast<std::uint32_t>(low_bits(bits)) << shifts[d], shifts[d],
                      table_size + 2 * (dims[d] - 1)};
    std::fill_n(digits_.begin() + shifts[d], bits, digit);
    for (std::uint32_t draws = 0; draws < drawn_.size(); ++draws) {
      drawn_[draws] |= (draws >> d & 1U) << shifts[d];
    }
    table_size += 4 * dims[d] - 2;  // the differences 1 - size to size - 1, each with both drawn bits
  }
  digits_[word_bits] = {0, 0, table_size};
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    std::uint32_t word = 0;
    std::size_t d = 0;
    for (const std::uint32_t coordinate : shape.coordinates(node)) word |= coordinate << (shifts[d++] + 1);
    words_.push_back(word);
  }

  const auto add_requests = [&](const FlitInput& input, bool is_injected) {
    const auto ask = [&](const std::vector<std::uint32_t>& here, const std::vector<std::uint32_t>& there,
                         std::uint32_t draws) {
      RouteSteps steps;
      routing.route({shape.node(here), shape.node(there), input.port, input.channel_class, is_injected},
                    steps);
      const std::uint32_t chosen = steps.count() == 1 ? 0 : draw_step(steps.count(), draws, steps[0].port);
      requests_.push_back(request(steps[chosen]));
    };
    std::vector<std::uint32_t> here(dims.size());
    std::vector<std::uint32_t> there(dims.size());
    for (std::uint32_t d = 0; d < dims.size(); ++d) {
      const auto farthest = static_cast<std::int32_t>(dims[d]) - 1;
      for (std::int32_t difference = -farthest; difference <= farthest; ++difference) {
        here[d] = static_cast<std::uint32_t>(std::max(0, -difference));
        there[d] = static_cast<std::uint32_t>(std::max(0, difference));
        for (const std::uint32_t draw : {0U, 1U}) ask(here, there, draw << d);
      }
      here[d] = there[d] = 0;
    }
    ask(here, there, 0);
  };
  // All inputs from the card share a table, and so do the inputs of equal port and class.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> first_of;
  for (const FlitInput& input : inputs) {
    const bool is_injected = input.port >= shape.local_port();
    const std::pair key(is_injected ? shape.local_port() : input.port,
                        is_injected ? 0U : std::uint32_t{input.channel_class});
    const auto [found, is_new] = first_of.emplace(key, static_cast<std::uint32_t>(requests_.size()));
    if (is_new) add_requests(input, is_injected);
    first_of_input_.push_back(found->second);
  }
}

FlitRequest FlitRouteUnit::find(std::uint32_t router, std::uint32_t input_channel,
                                std::uint32_t packet) const {
  RouteSteps steps;
  find_steps(router, input_channel, packet, steps);
  APENET_CHECK(steps.count() > 0, "no way from router %u to node %u", router,
               fabric_->state.packets[packet].packet.destination);
  if (steps.choice() == RouteChoice::adaptive && steps.count() > 1) return for_now({});
  std::uint32_t chosen = 0;
  if (steps.choice() == RouteChoice::random && steps.count() > 1) {
    const std::uint32_t draws = draws_of(fabric_->simulation.seed(), fabric_->state.packets[packet].packet);
    chosen = draw_step(steps.count(), draws, steps[0].port);
  }
  return request_of(router, input_channel, steps[chosen], packet);
}

}  // namespace apenet
