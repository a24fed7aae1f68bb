// FlitRouteUnit: turns a routing's steps into the virtual channels that a header requests.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "network/flit/fabric.hpp"
#include "network/routing/channel_classes.hpp"

namespace apenet {

// A header's request to the VC allocator: any one of a set of virtual channels of one output port. Two bytes,
// because every buffered flit has one.
class FlitRequest {
 public:
  static constexpr std::uint32_t max_ports = 64;
  FlitRequest() = default;
  FlitRequest(std::uint32_t port, std::uint32_t set)
      : word_(static_cast<std::uint16_t>(set * max_ports + port)) {}

  [[nodiscard]] std::uint32_t port() const { return word_ % max_ports; }
  [[nodiscard]] std::uint32_t set() const { return word_ / max_ports; }
  [[nodiscard]] std::uint32_t index() const { return word_; }  // into FlitRouteUnit::wanted()
  bool operator==(const FlitRequest&) const = default;

 private:
  std::uint16_t word_ = 0;
};

// The input virtual channel where a header waits, as a routing sees it.
struct FlitInput {
  std::uint16_t port = 0;
  std::uint16_t channel_class = 0;
};

// The answers of DimensionOrderEntryRouting in tables, looked up without a branch. A branch would be as
// unpredictable as the traffic.
//
// The invariant that makes it fast: besides the input, the answer depends only on the lowest dimension in
// which router and destination differ, on their difference in it, and on the bit drawn for it.
//
// A node's word holds its coordinates, the lowest dimension in the lowest bits, with a zero bit below each.
// In a packet's target the drawn bit replaces that zero. It decides the direction where both ways around a
// ring are equally short.
class FlitCubeRequests {
 public:
  FlitCubeRequests() = default;
  // inputs: by channel of a router. request: returns the request for a step. The result is empty() if a word
  // would need more than 31 bits.
  FlitCubeRequests(const DimensionOrderEntryRouting& routing, const std::vector<FlitInput>& inputs,
                   const std::function<FlitRequest(RouteStep)>& request);

  [[nodiscard]] bool empty() const { return requests_.empty(); }
  // draws: draws_of() the packet.
  [[nodiscard]] std::uint32_t target(NodeId destination, std::uint32_t draws) const {
    return words_[destination] | drawn_[draws % drawn_.size()] | arrived;
  }
  [[nodiscard]] FlitRequest request(std::uint32_t router, std::uint32_t input_channel,
                                    std::uint32_t target) const {
    const std::uint32_t here = words_[router];
    const Digit& digit = digits_[static_cast<std::uint32_t>(__builtin_ctz((here ^ target) & differences_))];
    const std::uint32_t difference = (target & digit.mask) - (here & digit.mask);
    const auto steps = static_cast<std::uint32_t>(static_cast<std::int32_t>(difference) >> digit.shift);
    return requests_[first_of_input_[input_channel] + digit.same + steps];
  }

 private:
  // The bits of a word that belong to one dimension: its coordinate and its drawn bit.
  struct Digit {
    std::uint32_t mask = 0;
    std::uint32_t shift : 8 = 0;
    std::uint32_t same : 24 = 0;  // index in a table: the answer for the difference 0
  };
  static constexpr std::uint32_t word_bits = 31;
  // A bit of every target, but of no node's word: at the destination it is the only difference.
  static constexpr std::uint32_t arrived = 1U << word_bits;

  std::uint32_t differences_ = arrived;        // mask: the bits of a word that are not drawn
  std::array<Digit, word_bits + 1> digits_{};  // per bit of a word
  // Per value of the draws: its bits, where they belong in a word.
  std::array<std::uint32_t, std::size_t{1} << CubeShape::max_dimensions> drawn_{};
  std::vector<std::uint32_t> words_;           // per node
  std::vector<std::uint32_t> first_of_input_;  // per channel of a router: where its table begins
  std::vector<FlitRequest> requests_;          // the tables, one after the other
};

// The stage "route computation" of every router. All implementations of a router share it.
class FlitRouteUnit {
 public:
  FlitRouteUnit(const Routing& routing, const FlitFabric& fabric,
                NetworkDescription::ChannelSelection selection);

  // Returns the request for the only step or for the drawn step. If the choice is adaptive, returns a request
  // that is_adaptive(), and most_room() chooses. input_channel: FlitFabric::channel_of() the place where the
  // header waits. route: the packet's.
  [[nodiscard]] FlitRequest request(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                                    const FlitPacketRoute& route) const {
    return is_fixed() ? fixed_.request(router, input_channel, route.target)
                      : find(router, input_channel, packet);
  }
  // Returns FlitPacketRoute::target of a packet. draws: draws_of() the packet.
  [[nodiscard]] std::uint32_t target(NodeId destination, std::uint32_t draws) const {
    return is_fixed() ? fixed_.target(destination, draws) : destination;
  }
  // All answers are in tables and none is adaptive: fixed() has them, without a branch.
  [[nodiscard]] bool is_fixed() const { return !fixed_.empty(); }
  [[nodiscard]] const FlitCubeRequests& fixed() const { return fixed_; }

  // Chooses a step of an adaptive routing: the one with most room, the first if equal. Chooses the last step,
  // which is the escape, only if no other step has a free virtual channel. room(port, mask) must return a
  // negative number if no virtual channel of the mask is free.
  template <typename Room>
  [[nodiscard]] FlitRequest most_room(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                                      Room room) const {
    RouteSteps steps;
    find_steps(router, input_channel, packet, steps);
    FlitRequest best = request_of(router, input_channel, steps[steps.count() - 1], packet);
    std::int64_t most = -1;
    for (std::uint32_t i = 0; i + 1 < steps.count(); ++i) {
      const FlitRequest candidate = request_of(router, input_channel, steps[i], packet);
      const std::int64_t here = room(candidate.port(), mask(candidate));
      if (here <= most) continue;
      most = here;
      best = candidate;
    }
    return best;
  }

  // The virtual channels that a request stands for. Two requests for one port want the same channels or
  // disjoint ones, because all requests for a port are of one kind: for a class, for a single channel, or for
  // any channel.
  struct Wanted {
    std::uint64_t mask = 0;           // virtual channels of the port, a bit each
    std::uint32_t first_channel = 0;  // the port's virtual channel 0: its place within the router
    std::uint32_t first_wanted = 0;   // the first channel of the mask: its place within the router
  };
  // Marks a request as adaptive: VC allocation chooses anew in every cycle. The marked set stands for the
  // same virtual channels, under another number.
  [[nodiscard]] FlitRequest for_now(FlitRequest request) const {
    return {request.port(), request.set() % sets_ + sets_};
  }
  [[nodiscard]] bool is_adaptive(FlitRequest request) const { return request.set() >= sets_; }
  [[nodiscard]] std::uint64_t mask(FlitRequest request) const { return wanted_[request.index()].mask; }
  [[nodiscard]] const Wanted* wanted() const { return wanted_.data(); }  // by FlitRequest::index

 private:
  void find_steps(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                  RouteSteps& steps) const {
    const FlitInput& input = inputs_[input_channel];
    const Packet& traveller = fabric_->state.packets[packet].packet;
    RouteQuery query{router, traveller.destination, input.port, input.channel_class,
                     fabric_->is_local(router, input.port)};
    if (waypoint_count_ != 0)
      query.waypoint = waypoint_of(fabric_->simulation.seed(), traveller, waypoint_count_);
    routing_->route(query, steps);
  }
  // Ejection may use any virtual channel: a packet beyond the port waits for nothing in the network, so that
  // no deadlock can arise. With lanes it keeps to the packet's lane, because packets of one lane must not
  // overtake each other at the last port either.
  [[nodiscard]] FlitRequest request_of(std::uint32_t router, std::uint32_t input_channel,
                                       const RouteStep& step, std::uint32_t packet) const {
    std::uint32_t port = step.port;
    if (port == shared_port_) [[unlikely]] {
      port += fabric_->ejection_ports.port(fabric_->port_of_channel(input_channel),
                                           fabric_->state.packets[packet].packet.channel);
    }
    std::uint32_t set = step.channel_class;
    if (is_lane_)
      set = class_count_ + classes_.channel(step.channel_class, fabric_->state.routes[packet].lane);
    if (!is_lane_ && fabric_->is_local(router, port)) set = class_count_ + fabric_->virtual_channels;
    return {port, set};
  }
  [[nodiscard]] FlitRequest find(std::uint32_t router, std::uint32_t input_channel,
                                 std::uint32_t packet) const;

  const Routing* routing_;
  FlitCubeRequests fixed_;
  const FlitFabric* fabric_;
  std::uint32_t waypoint_count_;
  std::uint32_t class_count_;
  ChannelClasses classes_;
  std::uint32_t sets_ = 0;  // sets of virtual channels: one per class, one per single channel, one for all
  bool is_lane_;
  static constexpr std::uint32_t no_port = UINT32_MAX;
  // The port towards a router's node that stands for all of them, whose numbers are higher; no_port: a node
  // has one.
  std::uint32_t shared_port_;
  std::vector<FlitInput> inputs_;  // per channel of a router (FlitFabric::channel_of)
  std::vector<Wanted> wanted_;     // per set and port: first the sets_, then the same sets marked as adaptive
};

}  // namespace apenet
