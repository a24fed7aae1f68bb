// FlitRouterBank: the routers of the flit engine. Its functions are in flit_routers.cpp, the only file that
// uses it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/large_array.hpp"
#include "network/flit_allocators.hpp"
#include "network/flit_fabric.hpp"
#include "network/flit_pipeline.hpp"
#include "network/flit_route_unit.hpp"
#include "network/flit_routers.hpp"

namespace apenet {

// Flat arrays by FlitPlace, and by 64 of them (FlitStages). A cycle goes through the routers in which
// anything can happen, a block of them at a time: what they ask for is listed, then VC allocation and the
// switch work down these lists. What a router sends is read in later cycles only (DelayLine), so that its
// place in the order cannot matter, and within it the stages read the registers as the cycle found them: what
// asks the switch is listed before VC allocation gives anything, and no tail leaves before that has looked at
// the free channels.
//
// A block of routers is at rest when a cycle changed none of its registers: until a flit or a credit arrives,
// the next one would not either, and no cycle looks at it.
class FlitRouterBank final : public FlitRouters {
 public:
  FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes);

  void tick(FlitCycle cycle) override;
  [[nodiscard]] bool is_at_rest() const override {
    return std::all_of(active_.begin(), active_.end(),
                       [](std::uint32_t is_active) { return is_active == 0; });
  }

 private:
  static constexpr std::uint32_t block_bits = FlitFabric::block_bits;

  // Where they are defined, functions for what is rare stay out of line, so that the loops of all others keep
  // their variables in registers.
  void write_buffer(const FlitArrival& arrival);
  void take_credit(FlitPlace place);
  void list_requests(std::uint32_t block, FlitCycle cycle);
  void drop_delayed(FlitPlace first, FlitCycle cycle, std::uint64_t& switching);
  void drop_busy(FlitPlace first, std::uint64_t& allocating, std::uint64_t& switching) const;
  void begin_routing(FlitPlace first, FlitCycle cycle);
  void keep_crossings(FlitCycle cycle);
  void finish_long(std::uint32_t block, FlitCycle cycle);
  void finish_long(FlitLongStages& work, FlitCycle cycle);
  void begin_header(FlitPlace input);
  void bring_next(std::size_t followed);
  void allocate_channels(FlitCycle cycle);
  void list_channel_requests();
  [[nodiscard]] FlitPlace choose(const FlitChannelRequest& request);
  void accept_long(const FlitChannelRequest& request, FlitCycle cycle);
  void hold(FlitPlace input, FlitPlace output);
  [[nodiscard]] std::uint64_t with_room(FlitPlace input, FlitPlace port, std::uint64_t mask) const;
  [[nodiscard]] FlitRequest choose_output(FlitPlace input) const;
  void allocate_switch();
  void accept(const FlitCrossing& crossing);
  void cross_switch(FlitCycle cycle);
  void traverse(const FlitCrossing& crossing, FlitCycle cycle, std::size_t& followed);
  [[nodiscard]] FlitCycle note_crossing(const FlitCrossing& crossing, Flit flit, FlitCycle cycle);
  [[nodiscard]] FlitCycle delay_crossing(FlitPlace output, FlitCycle cycle);

  [[nodiscard]] FlitPlace first_of_router(FlitPlace place) const { return place & ~channel_mask_; }
  // The index in 64 bits: its shift and that by the record's size are one operation then.
  [[nodiscard]] FlitStages& stages_of(FlitPlace place) { return stages_[std::size_t{place} / 64]; }
  [[nodiscard]] const FlitStages& stages_of(FlitPlace place) const {
    return stages_[std::size_t{place} / 64];
  }
  [[nodiscard]] std::uint32_t port_index(FlitPlace place) const { return place >> virtual_channel_bits_; }

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  const bool is_long_;            // some stage takes more than one cycle
  const bool has_intervals_;      // some link takes more than one cycle a flit
  const bool has_speeds_;         // not all ports have the same
  const bool is_routed_at_once_;  // routes are known when a header becomes the first of its buffer
  const std::uint32_t buffer_flits_;
  const std::uint32_t virtual_channel_bits_;  // of a FlitPlace
  const std::uint32_t channel_bits_;          // the same
  const std::uint32_t channel_mask_;
  bool is_traced_ = false;     // in this cycle
  bool is_plain_ = false;      // in this cycle: nothing for note_crossing
  bool has_adaptive_ = false;  // there were requests that are chosen anew in every cycle

  // Of the block at hand.
  std::vector<FlitPlace> allocating_;  // inputs that ask for a virtual channel
  std::vector<FlitPlace> switching_;   // inputs that ask the switch
  std::size_t allocating_count_ = 0;
  std::size_t switching_count_ = 0;
  std::vector<FlitChannelRequest> channel_requests_;
  std::vector<FlitCrossing> crossings_;
  std::size_t crossing_count_ = 0;
  std::vector<std::uint32_t> contended_;  // numbers of requests: behind another one for the same output
  std::vector<std::uint32_t> contended_inputs_;  // behind another one of the same input port
  std::vector<FlitPlace> followed_;              // inputs of which a flit went, and another one is there
  bool is_changed_ = false;                      // some register, in this cycle
  FlitPortChains asked_outputs_;                 // by port
  FlitPortChains asked_channels_;                // by the place of the first virtual channel that is wanted
  FlitChannelArbiter channel_arbiter_;
  FlitSwitchArbiter switch_arbiter_;

  std::vector<std::uint32_t> active_;      // per block
  LargeArray<FlitStages> stages_;          // per 64 places
  LargeArray<FlitInputChannel> inputs_;    // by FlitPlace
  LargeArray<FlitOutputChannel> outputs_;  // the same
  LargeArray<Flit> flits_;                 // behind the first: rings of buffer_flits, by slot
  std::vector<FlitCycle> output_free_;     // as the port table: first cycle of the next grant; has_intervals_
  std::vector<FlitLongStages> long_;       // per router; is_long_
  std::vector<FlitCycle> crossing_done_;   // per router: end of the switch's last traversal; is_long_
  std::vector<FlitCycle> last_sent_;       // as the port table: by the output queue; is_long_
};

}  // namespace apenet
