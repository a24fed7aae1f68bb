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
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit/bits.hpp"
#include "network/flit/pipeline.hpp"

namespace apenet {

// The requests of a list that have the same key (as a port that they are for), as a chain: from the key to
// the last one, and from each to the one before it; for one key of a request, or several. Requests are
// numbered through from list to list, so that what stands here of earlier lists is known by its number, and
// nothing need be wiped off.
template <std::size_t key_count>
class FlitChains {
 public:
  using Keys = std::array<std::uint32_t, key_count>;
  // keys: a power of two; those of one list have numbers that differ modulo it. requests: at most, in a list.
  FlitChains(std::size_t keys, std::size_t requests) : last_(keys), earlier_(requests) {}

  // While a list is gone through: copies, which the compiler can keep in registers.
  class List {
   public:
    List(FlitChains& chains)
        : last_(chains.last_.data()),
          earlier_(chains.earlier_.data()),
          key_mask_(static_cast<std::uint32_t>(chains.last_.size() - 1)),
          first_(chains.first_) {}
    // The request of that index has these keys. Which of them one before it has, too.
    std::array<bool, key_count> add(std::uint32_t index, const Keys& keys) {
      std::array<bool, key_count> is_contended;
#pragma GCC unroll 2
      for (std::size_t k = 0; k < key_count; ++k) {
        std::uint32_t& last = last_[keys[k] & key_mask_][k];
        const std::uint32_t earlier = last;
        earlier_[index][k] = earlier;
        last = first_ + index;
        is_contended[k] = earlier >= first_;
      }
      return is_contended;
    }

   private:
    Keys* last_;
    Keys* earlier_;
    std::uint32_t key_mask_;
    std::uint32_t first_;
  };
  // Behind a list of so many requests.
  [[nodiscard]] List begin_list() {
    constexpr std::uint32_t most = 1U << 31U;
    first_ += count_;
    if (first_ >= most) {
      std::fill(last_.begin(), last_.end(), Keys{});
      first_ = 1;
    }
    return List(*this);
  }
  void end_list(std::size_t count) {
    count_ = static_cast<std::uint32_t>(count);
  }

  // Whether there is a request with the same k-th key before one, and which.
  [[nodiscard]] bool has_before(std::size_t k, std::uint32_t index) const {
    return earlier_[index][k] >= first_;
  }
  [[nodiscard]] std::uint32_t before(std::size_t k, std::uint32_t index) const {
    return earlier_[index][k] - first_;
  }
  // Of a request, by its index, that has this as its k-th key: whether no later one has it, and an earlier
  // one.
  [[nodiscard]] bool ends_chain(std::size_t k, std::uint32_t index, std::uint32_t key) const {
    return last_[key & (last_.size() - 1)][k] == first_ + index && earlier_[index][k] >= first_;
  }
  // visit(index) of all requests of a chain, from the last one.
  template <typename Visit>
  void for_each(std::size_t k, std::uint32_t last, Visit visit) const {
    for (std::uint32_t number = first_ + last; number >= first_; number = earlier_[number - first_][k]) {
      visit(number - first_);
    }
  }

 private:
  std::vector<Keys> last_;     // numbers, per key
  std::vector<Keys> earlier_;  // numbers, per request of the list
  std::uint32_t first_ = 1;    // number of the list's first request
  std::uint32_t count_ = 0;
};

// Of some requests, the one whose turn comes first. Both in one word: a minimum is no branch, and nobody
// could predict it.
class FirstTurn {
 public:
  // turn: below 2^31. One that does not take part comes behind all that do.
  void see(std::uint32_t turn, bool takes_part, std::uint32_t index) {
    const std::uint64_t does_not = takes_part ? 0 : 1;
    first_ = std::min(first_, (does_not << 31U | turn) << 32U | index);
  }
  [[nodiscard]] std::uint32_t index() const { return static_cast<std::uint32_t>(first_); }

 private:
  std::uint64_t first_ = ~std::uint64_t{0};
};

// VC allocation: inputs and outputs are virtual channels. An input asks for a set of free ones of one port.
class FlitChannelArbiter {
 public:
  // channels: of a router, a power of two.
  explicit FlitChannelArbiter(std::uint32_t channels) : last_turn_(channels - 1), askers_(channels) {}

  // Reduces what the requests for one port want to what they are granted. all: the list; last: that which
  // ends their chain; channels: all that they can be for, free or not, since how many are free cannot be
  // predicted. outputs: of the port.
  [[gnu::noinline]] void grant(FlitChannelRequest* all, const FlitChains<1>& chains, std::uint32_t last,
                               std::uint64_t channels, const FlitOutputChannel* outputs) {
    std::uint64_t wanted = 0;
    std::uint32_t count = 0;
    chains.for_each(0, last, [&](std::uint32_t index) {
      askers_[count++] = {all[index].mask, all[index].input, index};
      wanted |= all[index].mask;
      all[index].mask = 0;
    });
    for (std::uint64_t rest = channels; rest != 0; rest &= rest - 1) {
      const std::uint32_t channel = lowest_bit(rest);
      all[next(count, channel, outputs[channel].last_granted)].mask |= wanted & rest & (0 - rest);
    }
  }

 private:
  struct Asker {
    std::uint64_t wants = 0;
    FlitPlace input = 0;
    std::uint32_t index = 0;  // in the list
  };

  // The first behind `last` in the round robin of the router's inputs that wants the channel.
  [[nodiscard]] std::uint32_t next(std::uint32_t count, std::uint32_t channel, std::uint32_t last) const {
    FirstTurn first;
    const auto see = [&](const Asker& asker) {
      first.see((asker.input - last - 1) & last_turn_, (asker.wants >> channel & 1) != 0, asker.index);
    };
    // There are two, and seldom more.
    see(askers_[0]);
    see(askers_[1]);
    for (std::uint32_t i = 2; i < count; ++i) see(askers_[i]);
    return first.index();
  }

  std::uint32_t last_turn_;
  std::vector<Asker> askers_;  // of the port at hand
};

// Switch allocation: inputs and outputs are ports. The virtual channels of an input port that want the same
// output take turns in asking for it.
class FlitSwitchArbiter {
 public:
  // requests: at most, in a list.
  FlitSwitchArbiter(std::uint32_t virtual_channel_bits, std::size_t requests)
      : virtual_channel_bits_(virtual_channel_bits), left_(requests) {}

  // Of the chains: by the indices of ports.
  static constexpr std::size_t by_input = 0;
  static constexpr std::size_t by_output = 1;

  // Of a request and those before it for its output port, all but the one whose turn it is have lost: by
  // input port, and of its virtual channels. all: the list; ports: FlitFabric::port_table.
  void grant(FlitCrossing* all, const FlitChains<2>& chains, std::uint32_t index,
             const FlitRouterPort* ports) {
    const std::uint32_t channel_mask = (1U << virtual_channel_bits_) - 1;
    const std::uint32_t granted = port_of(ports[port_of(all[index].output())].granted_input);
    leave_one(all, chains, by_output, index, [&](const FlitCrossing& request) {
      const std::uint32_t port = port_of(request.input());
      return (port - granted - 1) % max_ports << virtual_channel_bits_ |
             ((request.input() - ports[port].accepted.input() - 1) & channel_mask);
    });
  }
  // Of a request and those before it of its input port that were granted, all but that for the output port
  // whose turn it is.
  void accept(FlitCrossing* all, const FlitChains<2>& chains, std::uint32_t index,
              const FlitRouterPort* ports) {
    const std::uint32_t accepted = port_of(ports[port_of(all[index].input())].accepted.output());
    leave_one(all, chains, by_input, index, [&](const FlitCrossing& request) {
      return (port_of(request.output()) - accepted - 1) % max_ports;
    });
  }

 private:
  // Of a chain's requests up to this one, the one with the first turn of those that have not lost.
  template <typename Turn>
  void leave_one(FlitCrossing* all, const FlitChains<2>& chains, std::size_t k, std::uint32_t index,
                 Turn turn_of) {
    const std::uint32_t before = chains.before(k, index);
    const std::uint32_t rival = chains.has_before(k, before) ? left_[before] : before;
    FirstTurn first;
    first.see(turn_of(all[rival]), !all[rival].has_lost(), rival);
    first.see(turn_of(all[index]), !all[index].has_lost(), index);
    left_[index] = first.index();
    all[index ^ rival ^ first.index()].lose();
  }

  [[nodiscard]] std::uint32_t port_of(FlitPlace place) const { return place >> virtual_channel_bits_; }

  static constexpr std::uint32_t max_ports = 64;  // of a router, and a multiple of all powers of two below it
  std::uint32_t virtual_channel_bits_;
  std::vector<std::uint32_t> left_;  // of a chain's requests up to one that has others before it
};

}  // namespace apenet
