// The separable allocators of the flit engine's routers: iSLIP, one iteration.
//
// iSLIP (McKeown, IEEE/ACM Trans. Networking 7, 1999): every output grants one of the inputs that request it,
// round robin from behind the one it served last; every input accepts one of its grants in the same way; the
// pointers of both move only when the grant was accepted.
//
// A list of requests is of many routers, those of one router together. Most are the only ones for what they
// ask for, and are granted as they stand; only the contended ones go through the arbiters. A router has two
// or three requests: in a loop of its own for each router nearly every end of it would be mispredicted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit_bits.hpp"
#include "network/flit_pipeline.hpp"

namespace apenet {

// Finds, in a list of requests, those of one router for what another one before them asks for too. Lives in
// registers, during one pass of the list.
class FlitContention {
 public:
  // found: room for the numbers of as many requests as there are, and one more.
  explicit FlitContention(std::uint32_t* found) : found_(found) {}

  // In the order of the list. What the request is for, a bit each.
  void note(std::uint32_t request, std::uint32_t router, std::uint64_t inputs, std::uint64_t outputs) {
    const std::uint64_t is_same = 0 - static_cast<std::uint64_t>(router == router_);
    inputs_ &= is_same;
    outputs_ &= is_same;
    found_[count_] = request;
    count_ += static_cast<std::size_t>(((inputs_ & inputs) | (outputs_ & outputs)) != 0);
    inputs_ |= inputs;
    outputs_ |= outputs;
    router_ = router;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < count_; ++i) visit(found_[i]);
  }

 private:
  std::uint32_t* found_;
  std::size_t count_ = 0;
  std::uint32_t router_ = ~0U;
  std::uint64_t inputs_ = 0;
  std::uint64_t outputs_ = 0;
};

struct FlitChannelRequest {
  FlitPlace input = 0;
  std::uint32_t port = 0;
  std::uint64_t mask = 0;  // of virtual channels of the port: wanted, and of a contended port then granted
};

// VC allocation: inputs and outputs are virtual channels. An input asks for a set of free ones of one port.
template <std::size_t Words>
class FlitChannelArbiter {
 public:
  FlitChannelArbiter(std::uint32_t channel_bits, std::uint32_t virtual_channels)
      : channel_bits_(channel_bits), virtual_channels_(virtual_channels) {}

  // Reduces what the requests of one router for one port want to what they are granted. all: the list; one:
  // of them. outputs: by FlitPlace.
  [[gnu::noinline]] void grant(FlitChannelRequest* all, std::size_t count, std::size_t one,
                               const FlitOutputChannel* outputs) {
    const std::uint32_t router = all[one].input >> channel_bits_;
    const std::uint32_t port = all[one].port;
    std::size_t first = one;
    while (first > 0 && all[first - 1].input >> channel_bits_ == router) --first;
    std::uint64_t wanted = 0;
    for (std::size_t i = first; i < count && all[i].input >> channel_bits_ == router; ++i) {
      if (all[i].port != port) continue;
      const std::uint32_t input = all[i].input & ((1U << channel_bits_) - 1);
      number_of_[input] = static_cast<std::uint32_t>(i);
      wanted |= all[i].mask;
      for (std::uint64_t rest = all[i].mask; rest != 0; rest &= rest - 1) {
        askers_[static_cast<std::size_t>(std::countr_zero(rest))].set(input);
      }
      all[i].mask = 0;
    }
    const FlitOutputChannel* const channels =
        outputs + (std::size_t{router} << channel_bits_) + port * virtual_channels_;
    for (; wanted != 0; wanted &= wanted - 1) {
      const auto channel = static_cast<std::uint32_t>(std::countr_zero(wanted));
      const std::uint32_t winner = askers_[channel].first_behind(channels[channel].last_granted);
      all[number_of_[winner]].mask |= std::uint64_t{1} << channel;
      askers_[channel] = {};
    }
  }

 private:
  std::uint32_t channel_bits_;
  std::uint32_t virtual_channels_;
  std::array<FlitBits<Words>, 64> askers_{};           // per virtual channel of the port at hand: inputs
  std::array<std::uint32_t, 64 * Words> number_of_{};  // per input of it: in the list
};

// Switch allocation: inputs and outputs are ports. The virtual channels of an input port that want the same
// output take turns in asking for it.
class FlitSwitchArbiter {
 public:
  static constexpr std::uint16_t lost = 0xffff;

  FlitSwitchArbiter(std::uint32_t channel_bits, std::uint32_t ports, std::uint32_t virtual_channels)
      : channel_bits_(channel_bits),
        ports_(ports),
        virtual_channels_(virtual_channels),
        asking_(std::size_t{ports} * ports) {}

  // Makes output_port `lost` in those requests of one router that are not granted and accepted. all: the
  // list; one: of them. router_ports: of the router.
  [[gnu::noinline]] void arbitrate(FlitCrossing* all, std::size_t count, std::size_t one,
                                   const FlitRouterPort* router_ports) {
    const std::uint32_t router = all[one].input >> channel_bits_;
    std::size_t first = one;
    while (first > 0 && all[first - 1].input >> channel_bits_ == router) --first;
    std::uint64_t outputs = 0;
    std::size_t end = first;
    for (; end < count && all[end].input >> channel_bits_ == router; ++end) {
      ask(all, end, router_ports);
      outputs |= std::uint64_t{1} << all[end].output_port;
    }
    std::uint64_t granted = 0;  // input ports
    for (; outputs != 0; outputs &= outputs - 1) {
      const auto output = static_cast<std::uint32_t>(std::countr_zero(outputs));
      const std::uint32_t input = first_behind(requests_[output], router_ports[output].granted_input);
      requests_[output] = 0;
      grants_[input] |= std::uint64_t{1} << output;
      granted |= std::uint64_t{1} << input;
    }
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t input = all[i].input_port;
      const std::uint32_t output = all[i].output_port;
      if ((granted >> input & 1) == 0 || asking_[input * ports_ + output] != i ||
          first_behind(grants_[input], router_ports[input].accepted_output) != output) {
        all[i].output_port = lost;
      }
    }
    for (; granted != 0; granted &= granted - 1) {
      grants_[static_cast<std::size_t>(std::countr_zero(granted))] = 0;
    }
  }

 private:
  void ask(const FlitCrossing* all, std::size_t one, const FlitRouterPort* router_ports) {
    const FlitCrossing& request = all[one];
    const std::uint64_t bit = std::uint64_t{1} << request.input_port;
    const std::uint32_t first = request.input_port * virtual_channels_;
    const std::uint32_t served = first + router_ports[request.input_port].served_channel;
    const auto turn = [&](FlitPlace input) {  // in the round robin from behind the one served last
      const std::uint32_t channel = input & ((1U << channel_bits_) - 1);
      return channel > served ? channel - served : channel + virtual_channels_ - served;
    };
    std::uint32_t& asking = asking_[request.input_port * ports_ + request.output_port];
    if ((requests_[request.output_port] & bit) == 0 || turn(request.input) < turn(all[asking].input)) {
      asking = static_cast<std::uint32_t>(one);
    }
    requests_[request.output_port] |= bit;
  }

  std::uint32_t channel_bits_;
  std::uint32_t ports_;
  std::uint32_t virtual_channels_;
  std::array<std::uint64_t, 64> requests_{};  // per output: input ports
  std::array<std::uint64_t, 64> grants_{};    // per input: output ports
  std::vector<std::uint32_t> asking_;         // in the list, per input and output port
};

}  // namespace apenet
