// FlitRouterBank: the routers of the flit engine. Its functions are in flit_routers.cpp, the only file that
// uses it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/large_array.hpp"
#include "network/flit_allocators.hpp"
#include "network/flit_bits.hpp"
#include "network/flit_fabric.hpp"
#include "network/flit_pipeline.hpp"
#include "network/flit_route_unit.hpp"
#include "network/flit_routers.hpp"

namespace apenet {

// Flat arrays by router and number within it. A cycle goes through the routers in which anything can happen,
// a block of them at a time: what they ask for is listed, then VC allocation and the switch work down these
// lists. What a router sends is read in later cycles only (DelayLine), so that its place in the order cannot
// matter, and within it the stages read the registers as the cycle found them: what asks the switch is listed
// before VC allocation gives anything, and no tail leaves before that has looked at the free channels.
//
// A router is at rest, and costs nothing, when a cycle changed none of its registers: until a flit or a
// credit arrives, the next one would not either.
template <std::size_t Words>
class FlitRouterBank final : public FlitRouters {
 public:
  FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes);

  void tick(FlitCycle cycle) override;
  [[nodiscard]] bool is_at_rest() const override {
    for (const std::uint64_t word : active_) {
      if (word != 0) return false;
    }
    return true;
  }

 private:
  using Bits = FlitBits<Words>;
  static constexpr std::uint32_t block_routers = 64;  // a word of active_; what they use fits the first cache

  // Where they are defined, functions for what is rare stay out of line, so that the loops of all others keep
  // their variables in registers.
  void write_buffer(const FlitArrival& arrival);
  void take_credit(FlitPlace place);
  void list_requests(std::uint32_t block, FlitCycle cycle);
  void drop_delayed(std::uint32_t router, FlitCycle cycle, Bits& switching);
  void begin_long(std::uint32_t router, FlitCycle cycle, Bits& allocating, Bits& switching);
  void keep_crossings();
  void finish_long(std::uint32_t router, FlitCycle cycle);
  void begin_header(std::uint32_t router, std::uint32_t channel);
  void begin_next_header(std::uint32_t router, std::uint32_t channel);
  void allocate_channels(std::uint32_t block);
  [[nodiscard]] std::uint32_t choose(const FlitChannelRequest& request);
  void accept(const FlitChannelRequest& request);
  void accept_long(const FlitChannelRequest& request);
  void allocate_switch();
  void hold(std::uint32_t router, std::uint32_t input, std::uint32_t output);
  [[nodiscard]] FlitRequest choose_output(FlitPlace input) const;
  [[nodiscard]] std::uint64_t with_room(FlitPlace input, std::uint32_t port, std::uint64_t mask) const;
  void accept(const FlitCrossing& crossing, std::uint32_t channel);
  void cross_switch(FlitCycle cycle);
  void traverse(const FlitCrossing& crossing, FlitCycle cycle);
  [[nodiscard]] FlitCycle note_crossing(const FlitCrossing& crossing, Flit flit, FlitCycle cycle);
  [[nodiscard]] FlitCycle cross(std::uint32_t router, std::uint32_t output_port, FlitCycle cycle);

  [[nodiscard]] FlitPlace first_channel(std::uint32_t router) const { return router << channel_bits_; }
  void activate(std::uint32_t router) { active_[router / 64] |= std::uint64_t{1} << router % 64; }

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  const bool is_long_;            // some stage takes more than one cycle
  const bool has_intervals_;      // some link takes more than one cycle a flit
  const bool is_routed_at_once_;  // routes are known when a header becomes the first of its buffer
  const std::uint32_t buffer_flits_;
  const std::uint32_t virtual_channels_;
  const std::uint32_t channel_bits_;  // of a FlitPlace
  bool is_traced_ = false;            // in this cycle
  bool is_plain_ = false;             // in this cycle: nothing for note_crossing
  bool has_adaptive_ = false;         // there were requests that are chosen anew in every cycle

  // Of the block at hand.
  std::vector<FlitPlace> allocating_;  // inputs that ask for a virtual channel
  std::vector<FlitPlace> switching_;   // inputs that ask the switch
  std::size_t allocating_count_ = 0;
  std::size_t switching_count_ = 0;
  std::vector<std::uint32_t> long_routers_;  // is_long_: that are active
  std::vector<FlitChannelRequest> channel_requests_;
  std::vector<FlitCrossing> crossings_;
  std::vector<std::uint32_t> contended_;  // numbers of requests
  FlitChannelArbiter<Words> channel_arbiter_;
  FlitSwitchArbiter switch_arbiter_;

  std::vector<std::uint64_t> active_;      // a bit each router
  LargeArray<FlitStages<Words>> stages_;   // per router
  LargeArray<FlitInputChannel> inputs_;    // by FlitPlace
  LargeArray<FlitOutputChannel> outputs_;  // the same
  LargeArray<Flit> flits_;                 // behind the first: rings of buffer_flits, as inputs_
  std::vector<FlitCycle> output_free_;  // per router and port: first cycle of the next grant; has_intervals_
  std::vector<FlitLongStages<Words>> long_;  // per router; is_long_
  std::vector<FlitCycle> crossing_done_;     // per router: end of the switch's last traversal; is_long_
  std::vector<FlitCycle> last_sent_;         // per router and port: by the output queue; is_long_
  std::vector<FlitChannelNumber> numbers_;   // per virtual channel of a router
};

}  // namespace apenet
