// FlitRouteUnit: from a routing's steps to the virtual channels that a header asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/flit_fabric.hpp"

namespace apenet {

// What a header asks the VC allocator for: any one of a set of virtual channels of one output port.
struct FlitRequest {
  std::uint16_t port = 0;
  std::uint16_t set = 0;  // FlitRouteUnit::mask
};

// The stage "route computation" of every router, the same for each implementation of a router.
class FlitRouteUnit {
 public:
  FlitRouteUnit(const Routing& routing, const FlitFabric& fabric,
                NetworkDescription::ChannelSelection selection);

  // Of a request that is chosen anew in every cycle of VC allocation, by most_room.
  static constexpr std::uint16_t adaptive_set = 255;

  // The only step, the one that is drawn, or adaptive_set. input_channel: the virtual channel of the router,
  // all ports counted, in which the header waits.
  [[nodiscard]] FlitRequest request(std::uint32_t router, std::uint32_t input_channel,
                                    std::uint32_t packet) const {
    RouteSteps steps;
    if (entry_ != nullptr) {
      const Input& input = inputs_[input_channel];
      entry_->find(router, fabric_.routes[packet].destination, input.port, input.channel_class, steps);
    } else {
      find_steps(router, input_channel, packet, steps);
    }
    if (steps.choice() == RouteChoice::only) return request_of(router, steps[0], packet);
    return choose(router, packet, steps);
  }

  // Of an adaptive routing: the step with most room, the first of equals; the last, the escape, if no other
  // one has a free virtual channel. room(port, mask) is negative if none of them is free.
  template <typename Room>
  [[nodiscard]] FlitRequest most_room(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                                      Room room) const {
    RouteSteps steps;
    find_steps(router, input_channel, packet, steps);
    FlitRequest best = request_of(router, steps[steps.count() - 1], packet);
    std::int64_t most = -1;
    for (std::uint32_t i = 0; i + 1 < steps.count(); ++i) {
      const FlitRequest candidate = request_of(router, steps[i], packet);
      const std::int64_t here = room(candidate.port, mask(candidate));
      if (here <= most) continue;
      most = here;
      best = candidate;
    }
    return best;
  }

  // Bits of the virtual channels within the port.
  [[nodiscard]] std::uint64_t mask(FlitRequest request) const { return masks_[request.set]; }

 private:
  void find_steps(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                  RouteSteps& steps) const {
    const Input& input = inputs_[input_channel];
    routing_.route({router, fabric_.routes[packet].destination, input.port, input.channel_class,
                    fabric_.is_local(router, input.port)},
                   steps);
  }
  // Ejection may use any virtual channel, nothing beyond it depends on another packet; but with lanes, where
  // packets of one lane must not overtake each other at the last port either.
  [[nodiscard]] FlitRequest request_of(std::uint32_t router, const RouteStep& step,
                                       std::uint32_t packet) const {
    std::uint32_t set = step.channel_class;
    if (is_lane_) set = classes_ + step.channel_class * lanes_ + fabric_.routes[packet].lane % lanes_;
    if (!is_lane_ && fabric_.is_local(router, step.port)) set = classes_ * (lanes_ + 1);
    return {static_cast<std::uint16_t>(step.port), static_cast<std::uint16_t>(set)};
  }
  [[nodiscard]] FlitRequest choose(std::uint32_t router, std::uint32_t packet, const RouteSteps& steps) const;

  struct Input {
    std::uint16_t port = 0;
    std::uint16_t channel_class = 0;
  };

  const Routing& routing_;
  const DimensionOrderEntryRouting*
      entry_;  // routing_, if it is that: called for every hop, so without a table
  const FlitFabric& fabric_;
  std::uint32_t classes_;
  std::uint32_t lanes_;
  bool is_lane_;
  std::vector<Input> inputs_;         // per virtual channel of a router
  std::vector<std::uint64_t> masks_;  // per set: the classes, the single channels, all
};

}  // namespace apenet
