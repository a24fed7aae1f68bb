// FlitRouteUnit: from a routing's steps to the virtual channels that a header asks for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// What a header asks the VC allocator for: any one of a set of virtual channels of one output port. Two bytes
// of every input virtual channel.
class FlitRequest {
 public:
  static constexpr std::uint32_t max_ports = 64;
  FlitRequest() = default;
  FlitRequest(std::uint32_t port, std::uint32_t set)
      : word_(static_cast<std::uint16_t>(set * max_ports + port)) {}

  [[nodiscard]] std::uint32_t port() const { return word_ % max_ports; }
  [[nodiscard]] std::uint32_t set() const { return word_ / max_ports; }
  [[nodiscard]] std::uint32_t index() const { return word_; }  // of FlitRouteUnit::wanted

 private:
  std::uint16_t word_ = 0;
};

// What a routing is told of the input virtual channel where a header waits.
struct FlitInput {
  std::uint16_t port = 0;
  std::uint16_t channel_class = 0;
};

// The answers of DimensionOrderEntryRouting, looked up without a branch: a header's first difference from its
// destination, and by how much, say where it turns, and that is as random as the traffic.
//
// A node's word has its coordinates, the lowest dimension in the lowest bits, and below each a zero, where a
// packet's target has the bit that is drawn for it: which way around, where both are as short.
class FlitCubeRequests {
 public:
  FlitCubeRequests() = default;
  // inputs: by channel of a router. request: what a step asks for. Empty where a word would need more than 31
  // bits.
  FlitCubeRequests(const DimensionOrderEntryRouting& routing, const std::vector<FlitInput>& inputs,
                   const std::function<FlitRequest(RouteStep)>& request);

  [[nodiscard]] bool empty() const { return requests_.empty(); }
  // draws: draws_of the packet.
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
  // Of a bit of a word: the digit that it belongs to.
  struct Digit {
    std::uint32_t mask = 0;
    std::uint32_t shift : 8 = 0;
    std::uint32_t same : 24 = 0;  // in a table, of the difference 0
  };
  static constexpr std::uint32_t word_bits = 31;
  static constexpr std::uint32_t arrived = 1U << word_bits;  // the only difference left; every target has it

  std::uint32_t differences_ = arrived;  // bits of a word that are not drawn
  std::array<Digit, word_bits + 1> digits_{};
  std::array<std::uint32_t, std::size_t{1} << CubeShape::max_dimensions> drawn_{};  // where the bits stand
  std::vector<std::uint32_t> words_;                                                // per node
  std::vector<std::uint32_t> first_of_input_;  // per channel of a router: of its table
  std::vector<FlitRequest> requests_;          // tables one behind the other
};

// The stage "route computation" of every router, the same for each implementation of a router.
class FlitRouteUnit {
 public:
  FlitRouteUnit(const Routing& routing, const FlitFabric& fabric,
                NetworkDescription::ChannelSelection selection);

  // The only step, the one that is drawn, or one that is_adaptive: most_room says which. input_channel: where
  // in the router the header waits, FlitFabric::channel_of; route: the packet's.
  [[nodiscard]] FlitRequest request(std::uint32_t router, std::uint32_t input_channel, std::uint32_t packet,
                                    const FlitPacketRoute& route) const {
    return is_fixed() ? fixed_.request(router, input_channel, route.target)
                      : find(router, input_channel, packet);
  }
  // FlitPacketRoute::target of a packet. draws: draws_of it.
  [[nodiscard]] std::uint32_t target(NodeId destination, std::uint32_t draws) const {
    return is_fixed() ? fixed_.target(destination, draws) : destination;
  }
  // The routing's answers are in a table, and never adaptive: request() without a branch.
  [[nodiscard]] bool is_fixed() const { return !fixed_.empty(); }
  [[nodiscard]] const FlitCubeRequests& fixed() const { return fixed_; }

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
      const std::int64_t here = room(candidate.port(), mask(candidate));
      if (here <= most) continue;
      most = here;
      best = candidate;
    }
    return best;
  }

  // What a request stands for. Of one port, two requests are for the same virtual channels, or for none in
  // common: those of a class, or single ones, or all, of which a port is asked for one kind.
  struct Wanted {
    std::uint64_t mask = 0;           // virtual channels of the port, a bit each
    std::uint32_t first_channel = 0;  // of the port: its place within the router
    std::uint32_t first_wanted = 0;   // of the virtual channels: the same
  };
  // A request of a routing whose choice is made anew in every cycle of VC allocation: this one for now. Its
  // set has a number of its own, and the same virtual channels.
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
    routing_.route({router, fabric_.packets[packet].packet.destination, input.port, input.channel_class,
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
    return {step.port, set};
  }
  [[nodiscard]] FlitRequest find(std::uint32_t router, std::uint32_t input_channel,
                                 std::uint32_t packet) const;

  const Routing& routing_;
  FlitCubeRequests fixed_;
  const FlitFabric& fabric_;
  std::uint32_t classes_;
  std::uint32_t lanes_;
  std::uint32_t sets_ = 0;  // of virtual channels
  bool is_lane_;
  std::vector<FlitInput> inputs_;  // per channel of a router (FlitFabric::channel_of)
  std::vector<Wanted> wanted_;     // per set and port; sets: the classes, the single channels, all
};

}  // namespace apenet
