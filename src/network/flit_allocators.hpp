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

// Which ports somebody in a list has asked for. A mark is the number of the list in which it was made, so
// that none is ever wiped off; when that number comes round again after 2^32 lists, a mark left from then
// sends a request to the arbiter that would not have needed it.
class FlitPortMarks {
 public:
  // While one list is gone through: copies, which the compiler can keep in registers.
  class List {
   public:
    List(std::uint32_t* marks, std::uint32_t mask, std::uint32_t number)
        : marks_(marks), mask_(mask), number_(number) {}
    // Whether the port was marked before in this list.
    bool mark(std::uint32_t port) {
      std::uint32_t& mark = marks_[port & mask_];
      const bool is_marked = mark == number_;
      mark = number_;
      return is_marked;
    }

   private:
    std::uint32_t* marks_;
    std::uint32_t mask_;
    std::uint32_t number_;
  };

  // ports: a power of two; those of one list have numbers that differ modulo it.
  explicit FlitPortMarks(std::size_t ports) : marks_(ports) {}

  [[nodiscard]] List begin_list() {
    return {marks_.data(), static_cast<std::uint32_t>(marks_.size() - 1), ++number_};
  }

 private:
  std::vector<std::uint32_t> marks_;
  std::uint32_t number_ = 0;
};

// VC allocation: inputs and outputs are virtual channels. An input asks for a set of free ones of one port.
class FlitChannelArbiter {
 public:
  explicit FlitChannelArbiter(std::uint32_t channel_bits)
      : channel_bits_(channel_bits), askers_(std::size_t{1} << channel_bits) {}

  // Reduces what the requests of one router for one port want to what they are granted. all: the list; one:
  // of them. outputs: by FlitPlace.
  [[gnu::noinline]] void grant(FlitChannelRequest* all, std::size_t count, std::size_t one,
                               const FlitOutputChannel* outputs) {
    const std::uint32_t router = all[one].input >> channel_bits_;
    const FlitPlace port = all[one].port;
    std::size_t first = one;
    while (first > 0 && all[first - 1].input >> channel_bits_ == router) --first;
    std::uint64_t wanted = 0;
    std::size_t asker_count = 0;
    for (std::size_t i = first; i < count && all[i].input >> channel_bits_ == router; ++i) {
      if (all[i].port != port) continue;
      askers_[asker_count++] = {&all[i], all[i].mask};
      wanted |= all[i].mask;
      all[i].mask = 0;
    }
    for (; wanted != 0; wanted &= wanted - 1) {
      const std::uint32_t channel = lowest_bit(wanted);
      FlitChannelRequest* const winner = next(asker_count, channel, outputs[port + channel].last_granted);
      winner->mask |= std::uint64_t{1} << channel;
    }
  }

 private:
  struct Asker {
    FlitChannelRequest* request = nullptr;
    std::uint64_t wants = 0;
  };

  // The first behind `last` in the round robin of the router's inputs that wants the channel.
  [[nodiscard]] FlitChannelRequest* next(std::size_t asker_count, std::uint32_t channel,
                                         std::uint32_t last) const {
    const std::uint32_t turns = (1U << channel_bits_) - 1;
    std::uint32_t first_turn = turns + 1;
    FlitChannelRequest* winner = nullptr;
    for (std::size_t i = 0; i < asker_count; ++i) {
      const Asker& asker = askers_[i];
      const std::uint32_t turn =
          (asker.wants >> channel & 1) != 0 ? (asker.request->input - last - 1) & turns : turns + 1;
      winner = turn < first_turn ? asker.request : winner;
      first_turn = turn < first_turn ? turn : first_turn;
    }
    return winner;
  }

  std::uint32_t channel_bits_;
  std::vector<Asker> askers_;  // of the port at hand
};

// Switch allocation: inputs and outputs are ports. The virtual channels of an input port that want the same
// output take turns in asking for it.
class FlitSwitchArbiter {
 public:
  FlitSwitchArbiter(std::uint32_t port_bits, std::uint32_t virtual_channel_bits)
      : port_bits_(port_bits),
        virtual_channel_bits_(virtual_channel_bits),
        asking_(std::size_t{1} << 2 * port_bits) {}

  // Makes the output `lost` in those requests of one router that are not granted and accepted. all: the
  // list; one: of them. ports: FlitFabric::port_table.
  [[gnu::noinline]] void arbitrate(FlitCrossing* all, std::size_t count, std::size_t one,
                                   const FlitRouterPort* ports) {
    const std::uint32_t router = router_of(all[one].input);
    const FlitRouterPort* const router_ports = ports + (std::size_t{router} << port_bits_);
    std::size_t first = one;
    while (first > 0 && router_of(all[first - 1].input) == router) --first;
    std::uint64_t outputs = 0;
    std::size_t end = first;
    for (; end < count && router_of(all[end].input) == router; ++end) {
      ask(all, end, router_ports);
      outputs |= std::uint64_t{1} << port_of(all[end].output);
    }
    std::uint64_t granted = 0;  // input ports
    for (; outputs != 0; outputs &= outputs - 1) {
      const std::uint32_t output = lowest_bit(outputs);
      const std::uint32_t input = first_behind(requests_[output], number(router_ports[output].granted_input));
      requests_[output] = 0;
      grants_[input] |= std::uint64_t{1} << output;
      granted |= std::uint64_t{1} << input;
    }
    for (std::size_t i = first; i < end; ++i) {
      const std::uint32_t input = port_of(all[i].input);
      const std::uint32_t output = port_of(all[i].output);
      if ((granted >> input & 1) == 0 || asking(input, output) != i ||
          first_behind(grants_[input], number(router_ports[input].accepted_output)) != output) {
        all[i].output = FlitCrossing::lost;
      }
    }
    for (; granted != 0; granted &= granted - 1) {
      grants_[lowest_bit(granted)] = 0;
    }
  }

 private:
  [[nodiscard]] std::uint32_t router_of(FlitPlace place) const {
    return place >> (port_bits_ + virtual_channel_bits_);
  }
  [[nodiscard]] std::uint32_t number(std::uint32_t port_index) const {
    return port_index & ((1U << port_bits_) - 1);
  }
  [[nodiscard]] std::uint32_t port_of(FlitPlace place) const {
    return number(place >> virtual_channel_bits_);
  }
  [[nodiscard]] std::uint32_t& asking(std::uint32_t input, std::uint32_t output) {
    return asking_[input << port_bits_ | output];
  }

  void ask(const FlitCrossing* all, std::size_t one, const FlitRouterPort* router_ports) {
    const std::uint32_t input = port_of(all[one].input);
    const std::uint32_t output = port_of(all[one].output);
    const std::uint64_t bit = std::uint64_t{1} << input;
    const auto turn = [&](FlitPlace place) {  // in the round robin from behind the one served last
      return (place - router_ports[input].served_channel - 1) & ((1U << virtual_channel_bits_) - 1);
    };
    std::uint32_t& asker = asking(input, output);
    if ((requests_[output] & bit) == 0 || turn(all[one].input) < turn(all[asker].input)) {
      asker = static_cast<std::uint32_t>(one);
    }
    requests_[output] |= bit;
  }

  std::uint32_t port_bits_;
  std::uint32_t virtual_channel_bits_;
  std::array<std::uint64_t, 64> requests_{};  // per output: input ports
  std::array<std::uint64_t, 64> grants_{};    // per input: output ports
  std::vector<std::uint32_t> asking_;         // in the list, per input and output port
};

}  // namespace apenet
