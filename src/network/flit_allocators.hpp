// The separable allocators of the flit engine's routers: iSLIP, one iteration.
//
// iSLIP (McKeown, IEEE/ACM Trans. Networking 7, 1999): every output grants one of the inputs that request it,
// round robin from behind the one it served last; every input accepts one of its grants in the same way; the
// pointers of both move only when the grant was accepted.
//
// A list of requests is of many routers. Most are the only ones for what they ask for, and are granted as
// they stand; only the contended ones go through the arbiters. A router has two or three requests: in a loop
// of its own for each router nearly every end of it would be mispredicted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit_bits.hpp"
#include "network/flit_pipeline.hpp"

namespace apenet {

// The requests of a list that are for the same port, as a chain: from the port to the last one, and from each
// to the one before it. Requests are numbered through from list to list, so that what stands here of earlier
// lists is known by its number, and nothing need be wiped off.
class FlitPortChains {
 public:
  // ports: a power of two; those of one list have numbers that differ modulo it. requests: at most, in a
  // list.
  FlitPortChains(std::size_t ports, std::size_t requests) : last_(ports), earlier_(requests) {}

  // While a list is gone through: copies, which the compiler can keep in registers.
  class List {
   public:
    List(FlitPortChains& chains)
        : last_(chains.last_.data()),
          earlier_(chains.earlier_.data()),
          port_mask_(static_cast<std::uint32_t>(chains.last_.size() - 1)),
          first_(chains.first_) {}
    // The request of that index is for the port. Whether one before it is too.
    bool add(std::uint32_t index, std::uint32_t port) {
      std::uint32_t& last = last_[port & port_mask_];
      const std::uint32_t earlier = last;
      earlier_[index] = earlier;
      last = first_ + index;
      return earlier >= first_;
    }

   private:
    std::uint32_t* last_;
    std::uint32_t* earlier_;
    std::uint32_t port_mask_;
    std::uint32_t first_;
  };
  // Behind a list of so many requests.
  [[nodiscard]] List begin_list() {
    constexpr std::uint32_t most = 1U << 31U;
    first_ += count_;
    if (first_ >= most) {
      std::fill(last_.begin(), last_.end(), 0);
      first_ = 1;
    }
    return List(*this);
  }
  void end_list(std::size_t count) { count_ = static_cast<std::uint32_t>(count); }

  // Of a contended request: whether there is no later one for its port, and any before it.
  [[nodiscard]] bool ends_chain(std::uint32_t index, std::uint32_t port) const {
    return last_[port & (last_.size() - 1)] == first_ + index && earlier_[index] >= first_;
  }
  // visit(index) of all requests for a port, from the last one.
  template <typename Visit>
  void for_each(std::uint32_t last, Visit visit) const {
    for (std::uint32_t number = first_ + last; number >= first_; number = earlier_[number - first_]) {
      visit(number - first_);
    }
  }

 private:
  std::vector<std::uint32_t> last_;     // numbers, per port
  std::vector<std::uint32_t> earlier_;  // numbers, per request of the list
  std::uint32_t first_ = 1;             // number of the list's first request
  std::uint32_t count_ = 0;
};

// VC allocation: inputs and outputs are virtual channels. An input asks for a set of free ones of one port.
class FlitChannelArbiter {
 public:
  // channels: of a router, a power of two.
  explicit FlitChannelArbiter(std::uint32_t channels) : last_turn_(channels - 1), askers_(channels) {}

  // Reduces what the requests for one port want to what they are granted. all: the list; last: that which
  // ends their chain. outputs: of the port.
  [[gnu::noinline]] void grant(FlitChannelRequest* all, const FlitPortChains& chains, std::uint32_t last,
                               const FlitOutputChannel* outputs) {
    std::uint64_t wanted = 0;
    std::size_t count = 0;
    chains.for_each(last, [&](std::uint32_t index) {
      askers_[count++] = {&all[index], all[index].mask};
      wanted |= all[index].mask;
      all[index].mask = 0;
    });
    for (; wanted != 0; wanted &= wanted - 1) {
      const std::uint32_t channel = lowest_bit(wanted);
      next(count, channel, outputs[channel].last_granted).mask |= std::uint64_t{1} << channel;
    }
  }

 private:
  struct Asker {
    FlitChannelRequest* request = nullptr;
    std::uint64_t wants = 0;
  };

  // The first behind `last` in the round robin of the router's inputs that wants the channel.
  [[nodiscard]] FlitChannelRequest& next(std::size_t count, std::uint32_t channel, std::uint32_t last) const {
    std::uint32_t first_turn = ~0U;
    std::size_t winner = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const Asker& asker = askers_[i];
      const std::uint32_t does_not = 1U & ~static_cast<std::uint32_t>(asker.wants >> channel);
      const std::uint32_t turn = ((asker.request->input - last - 1) & last_turn_) | does_not << 31U;
      winner = turn < first_turn ? i : winner;
      first_turn = turn < first_turn ? turn : first_turn;
    }
    return *askers_[winner].request;
  }

  std::uint32_t last_turn_;
  std::vector<Asker> askers_;  // of the port at hand
};

// Switch allocation: inputs and outputs are ports. The virtual channels of an input port that want the same
// output take turns in asking for it.
class FlitSwitchArbiter {
 public:
  explicit FlitSwitchArbiter(std::uint32_t virtual_channel_bits)
      : virtual_channel_bits_(virtual_channel_bits) {}

  // Of the requests for one output port, those of the input port whose turn it is not, and of its virtual
  // channels those whose turn it is not, have lost. all: the list; last: that which ends their chain. ports:
  // FlitFabric::port_table.
  void grant(FlitCrossing* all, const FlitPortChains& outputs, std::uint32_t last,
             const FlitRouterPort* ports) const {
    const std::uint32_t channel_mask = (1U << virtual_channel_bits_) - 1;
    const std::uint32_t granted = ports[port_of(all[last].output)].granted_input;
    const auto for_each = [&](auto visit) { outputs.for_each(last, visit); };
    leave_one(all, for_each, last, [&](const FlitCrossing& request) {
      const std::uint32_t port = port_of(request.input);
      return (port - granted - 1) % max_ports << virtual_channel_bits_ |
             ((request.input - ports[port].served_channel - 1) & channel_mask);
    });
  }
  // Of those of one input port that were granted, all but that for the output port whose turn it is. They
  // stand one behind the other in the list.
  void accept(FlitCrossing* all, std::uint32_t last, const FlitRouterPort* ports) const {
    const std::uint32_t port = port_of(all[last].input);
    const std::uint32_t accepted = ports[port].accepted_output;
    const auto for_each = [&](auto visit) {
      std::uint32_t index = last;
      do {
        visit(index);
      } while (index-- != 0 && port_of(all[index].input) == port);
    };
    leave_one(all, for_each, last, [&](const FlitCrossing& request) {
      return (port_of(request.output) - accepted - 1) % max_ports;
    });
  }

 private:
  // The one with the first turn of those that have not lost.
  template <typename ForEach, typename Turn>
  static void leave_one(FlitCrossing* all, ForEach for_each, std::uint32_t last, Turn turn_of) {
    std::uint32_t first_turn = ~0U;
    std::uint32_t winner = last;
    for_each([&](std::uint32_t index) {
      const std::uint32_t turn = all[index].output == FlitCrossing::lost ? ~0U : turn_of(all[index]);
      winner = turn < first_turn ? index : winner;
      first_turn = turn < first_turn ? turn : first_turn;
    });
    const FlitPlace output = all[winner].output;
    for_each([&](std::uint32_t index) { all[index].output = FlitCrossing::lost; });
    all[winner].output = output;
  }

  [[nodiscard]] std::uint32_t port_of(FlitPlace place) const { return place >> virtual_channel_bits_; }

  static constexpr std::uint32_t max_ports = 64;  // of a router, and a multiple of all powers of two below it
  std::uint32_t virtual_channel_bits_;
};

}  // namespace apenet
