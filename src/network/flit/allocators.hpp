// The separable allocators of the flit engine's routers: iSLIP with one iteration.
//
// iSLIP (McKeown, IEEE/ACM Trans. Networking 7, 1999): every output grants one of the inputs that request it,
// round robin, starting after the input that it served last. Every input accepts one of its grants in the
// same way. The pointers of both move only when the grant is accepted.
//
// The invariant that makes it fast: a request without a competitor is granted unchanged. Only contended
// requests, which are few, go through the arbiters. A list holds the requests of all routers of a block. A
// loop per router would be slower: a router has two or three requests, so that the CPU would mispredict the
// end of nearly every loop.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "network/flit/bits.hpp"
#include "network/flit/pipeline.hpp"

namespace apenet {

// Chains the requests of a list that share a key, for example an output port: the key leads to its last
// request, and each request to the previous one. A request with several keys is in several chains.
//
// The invariant that makes it fast: request numbers increase from list to list. A number below first_ belongs
// to an earlier list, so that nothing is cleared between lists.
template <std::size_t key_count>
class FlitChains {
 public:
  using Keys = std::array<std::uint32_t, key_count>;
  // keys: a power of two; different keys of one list must differ modulo `keys`. requests: the longest list.
  FlitChains(std::size_t keys, std::size_t requests) : last_(keys), earlier_(requests) {}

  // Adds the requests of one list. It copies the members that it needs: the compiler can keep the copies in
  // registers.
  class List {
   public:
    List(FlitChains& chains)
        : last_(chains.last_.data()),
          earlier_(chains.earlier_.data()),
          key_mask_(static_cast<std::uint32_t>(chains.last_.size() - 1)),
          first_(chains.first_) {}
    // Adds request `index` to the chains of its keys. Returns for each key whether an earlier request has it.
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
  // Starts a list, whose numbers follow those of the previous list until they would overflow.
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

  // Whether an earlier request has the same k-th key as request `index`. If so, before() returns the index of
  // the previous one.
  [[nodiscard]] bool has_before(std::size_t k, std::uint32_t index) const {
    return earlier_[index][k] >= first_;
  }
  [[nodiscard]] std::uint32_t before(std::size_t k, std::uint32_t index) const {
    return earlier_[index][k] - first_;
  }
  // Whether request `index`, whose k-th key is `key`, is the last one of a chain of two or more.
  [[nodiscard]] bool ends_chain(std::size_t k, std::uint32_t index, std::uint32_t key) const {
    return last_[key & (last_.size() - 1)][k] == first_ + index && earlier_[index][k] >= first_;
  }
  // Calls visit(index) for request `last` and for all before it in its chain, the latest first.
  template <typename Visit>
  void for_each(std::size_t k, std::uint32_t last, Visit visit) const {
    for (std::uint32_t number = first_ + last; number >= first_; number = earlier_[number - first_][k]) {
      visit(number - first_);
    }
  }

 private:
  std::vector<Keys> last_;     // per key: number of its last request
  std::vector<Keys> earlier_;  // per request of the list: number of the previous one with the same key
  std::uint32_t first_ = 1;    // number of the list's first request
  std::uint32_t count_ = 0;    // requests of the list that ended last
};

// Finds the request whose turn comes first. Turn and index share a word, so that the comparison is a minimum
// without a branch. A branch would be unpredictable.
class FirstTurn {
 public:
  // Requires turn < 2^31. A request that does not take part comes after all that do.
  void see(std::uint32_t turn, bool takes_part, std::uint32_t index) {
    const std::uint64_t does_not = takes_part ? 0 : 1;
    first_ = std::min(first_, (does_not << 31U | turn) << 32U | index);
  }
  [[nodiscard]] std::uint32_t index() const { return static_cast<std::uint32_t>(first_); }

 private:
  std::uint64_t first_ = ~std::uint64_t{0};
};

// VC allocation: inputs and outputs are virtual channels. An input requests a set of free channels of one
// port.
class FlitChannelArbiter {
 public:
  // channels: FlitFabric::channels, a power of two.
  explicit FlitChannelArbiter(std::uint32_t channels) : last_turn_(channels - 1), askers_(channels) {}

  // Reduces the masks of a chain of two or more requests to the channels that each is granted. all: the list;
  // last: the last request of the chain; outputs: of the port. channels: every channel that these requests
  // can want. The loop visits the free and the busy ones, because the number of free ones is unpredictable.
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

  // Returns the first request after `last`, round robin over the router's inputs, that wants the channel. If
  // none wants it, any request: the caller then grants it nothing.
  [[nodiscard]] std::uint32_t next(std::uint32_t count, std::uint32_t channel, std::uint32_t last) const {
    FirstTurn first;
    const auto see = [&](const Asker& asker) {
      first.see((asker.input - last - 1) & last_turn_, (asker.wants >> channel & 1) != 0, asker.index);
    };
    // A chain has at least two requests, and seldom more.
    see(askers_[0]);
    see(askers_[1]);
    for (std::uint32_t i = 2; i < count; ++i) see(askers_[i]);
    return first.index();
  }

  std::uint32_t last_turn_;
  std::vector<Asker> askers_;  // the requests of the current chain
};

// Switch allocation: inputs and outputs are ports. The virtual channels of an input port take turns in
// requesting the same output port.
//
// Call grant() for every request that follows another for the same output port, then accept() for every
// request that follows another of the same input port, both in the order of the list.
class FlitSwitchArbiter {
 public:
  // requests: the longest list.
  FlitSwitchArbiter(std::uint32_t virtual_channel_bits, std::size_t requests)
      : virtual_channel_bits_(virtual_channel_bits), left_(requests) {}

  // The keys of the chains: port indices.
  static constexpr std::size_t by_input = 0;
  static constexpr std::size_t by_output = 1;

  // All of request `index` and the earlier ones for its output port lose but one: the input port whose turn
  // it is wins, and of its virtual channels the one whose turn it is. all: the list; ports:
  // FlitFabric::port_table.
  void grant(FlitCrossing* all, const FlitChains<2>& chains, std::uint32_t index,
             const FlitRouterPort* ports) {
    const std::uint32_t channel_mask = (1U << virtual_channel_bits_) - 1;
    const std::uint32_t granted = port_of(ports[port_of(all[index].output())].state.granted_input);
    leave_one(all, chains, by_output, index, [&](const FlitCrossing& request) {
      const std::uint32_t port = port_of(request.input());
      return (port - granted - 1) % max_ports << virtual_channel_bits_ |
             ((request.input() - ports[port].state.accepted.input() - 1) & channel_mask);
    });
  }
  // All of request `index` and the earlier ones of its input port lose but one: of the granted requests, the
  // one for the output port whose turn it is wins.
  void accept(FlitCrossing* all, const FlitChains<2>& chains, std::uint32_t index,
              const FlitRouterPort* ports) {
    const std::uint32_t accepted = port_of(ports[port_of(all[index].input())].state.accepted.output());
    leave_one(all, chains, by_input, index, [&](const FlitCrossing& request) {
      return (port_of(request.output()) - accepted - 1) % max_ports;
    });
  }

  // Instead of both, for arbitration by age: the same with turns of the caller, each below 2^31. k:
  // by_output, then by_input.
  template <typename Turn>
  void settle(FlitCrossing* all, const FlitChains<2>& chains, std::size_t k, std::uint32_t index,
              Turn turn_of) {
    leave_one(all, chains, k, index, turn_of);
  }

 private:
  // All of request `index` and the earlier ones of its chain lose but the one whose turn comes first among
  // those that have not lost before.
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

  // Per router. A power of two: indices modulo it keep a router's ports in their cyclic order.
  static constexpr std::uint32_t max_ports = 64;
  std::uint32_t virtual_channel_bits_;
  std::vector<std::uint32_t> left_;  // per contended request: the winner of its chain up to that request
};

}  // namespace apenet
