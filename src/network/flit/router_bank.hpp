// FlitRouterBank: the routers of the flit engine. Private to its sources: routers.cpp (the cycle, buffer
// write), vc_allocation.cpp, switch.cpp and multi_cycle.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/large_array.hpp"
#include "network/flit/allocators.hpp"
#include "network/flit/fabric.hpp"
#include "network/flit/pipeline.hpp"
#include "network/flit/route_unit.hpp"
#include "network/flit/routers.hpp"

namespace apenet {

// Registers stand in flat arrays indexed by FlitPlace. A cycle visits the active routers, a block of them at
// a time; headers that wait for VC allocation, and inputs that wait for the switch, are in lists, so that
// idle virtual channels cost nothing.
//
// The order of the routers cannot matter, because what a router sends is read in later cycles only
// (DelayLine). Within a router every stage reads the registers as they were at the beginning of the cycle:
// requests are counted before VC allocation grants anything, and tails free their channels after VC
// allocation.
//
// The invariant that makes it fast: a block of routers whose registers did not change in a cycle is
// quiescent. The next cycle would not change them either, so no cycle visits the block until a flit or a
// credit arrives. tests/network/reference_router.hpp is the plain router that the tests run in lockstep with
// this one.
class FlitRouterBank final : public FlitRouters {
 public:
  FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes);

  void tick(FlitCycle cycle) override;
  [[nodiscard]] bool is_quiescent() const override {
    return std::none_of(state_.waiting.begin(), state_.waiting.end(),
                        [](const Waiting& waiting) { return waiting.is_active; });
  }

  // The lengths of the lists of a block of routers between cycles.
  struct Waiting {
    std::uint32_t allocating = 0;
    std::uint32_t routed = 0;
    std::uint32_t switching = 0;
    bool is_active = false;  // not quiescent
  };
  struct State {
    bool has_adaptive = false;                 // some requests are chosen anew in every cycle
    std::vector<Waiting> waiting;              // per block
    LargeArray<FlitPlace> allocating_lists;    // list_room per block
    LargeArray<FlitCrossing> switching_lists;  // the same
    LargeArray<std::uint64_t> free;            // output virtual channels that nobody holds: 64 places a word
    LargeArray<FlitInputChannel> inputs;       // by FlitPlace
    LargeArray<FlitOutputChannel> outputs;     // the same
    // Row 0 has the first flits of all buffers, by FlitPlace; each further row has one entry of their rings.
    // Most buffers hold at most one flit, so that the later rows stay out of the caches.
    LargeArray<FlitBuffered> flits;
    std::vector<FlitCycle> output_free;  // as the port table: first cycle of the next grant; has_intervals_
    std::vector<FlitBusyStages> busy_stages;  // per router; is_multi_cycle_
    std::vector<FlitCycle> crossing_done;  // per router: end of the switch's last traversal; is_multi_cycle_
    std::vector<FlitCycle> last_sent;      // as the port table: by the output queue; is_multi_cycle_
  };

 private:
  static constexpr std::uint32_t block_bits = FlitFabric::block_bits;

  // Functions for rare cases are not inlined, so that the frequent loops keep their variables in registers.
  template <bool has_plain_headers>
  [[nodiscard, gnu::noinline]] bool write_buffers(FlitCycle cycle, std::uint32_t block);
  void take_credit(FlitPlace place);
  void find_requests(FlitCycle cycle);
  void drop_delayed(FlitCycle cycle);
  void drop_busy();
  void begin_routing(FlitCycle cycle);
  void end_routing(FlitPlace place);
  void keep_crossings(FlitCycle cycle);
  void finish_stages(std::uint32_t block, FlitCycle cycle);
  void finish_stages(FlitBusyStages& work, FlitCycle cycle);
  void traverse_all(const std::vector<FlitCrossing>& crossings, FlitCycle cycle);
  [[nodiscard]] FlitRequest find_request(FlitPlace place, std::uint32_t packet);
  void bring_next(std::size_t followed);
  void allocate_channels(FlitCycle cycle);
  void list_channel_requests();
  [[nodiscard]] FlitPlace choose(const FlitChannelRequest& request);
  void keep_channel_grants(FlitCycle cycle, FlitPlaceList& lost);
  void hold(const FlitCrossing& grant, FlitCrossingList& switching);
  template <bool has_slots>
  void hold_all(FlitPlaceList& lost);
  void take_slot(const FlitCrossing& grant);
  void return_slot(FlitPlace input, std::uint32_t packet);
  [[nodiscard]] std::uint64_t with_room(FlitPlace input, FlitPlace port, std::uint64_t mask) const;
  [[nodiscard]] std::uint64_t with_slots(FlitPlace input, FlitPlace port, std::uint64_t mask) const;
  void drop_small(FlitChannelRequest* requests, std::size_t count) const;
  [[nodiscard]] FlitRequest choose_output(FlitPlace input) const;
  void grant_oldest_first(FlitChannelRequest* requests, std::uint32_t last);
  [[nodiscard]] std::uint32_t preferred(const FlitChannelRequest& request) const;
  [[nodiscard]] FlitCrossingList allocate_switch();
  void settle_by_age(std::size_t outputs, std::size_t inputs);
  void accept(FlitCrossing crossing);
  template <bool is_plain>
  void cross_switch(FlitCycle cycle, FlitCrossingList kept);
  template <bool is_plain>
  void traverse(FlitCrossing crossing, FlitCycle cycle, std::size_t& followed, FlitCrossingList& switching);
  [[nodiscard]] FlitCycle note_crossing(const FlitCrossing& crossing, Flit flit, FlitCycle cycle);
  [[nodiscard]] FlitCycle delay_crossing(FlitPlace output, FlitCycle cycle);

  [[nodiscard]] FlitPlace first_of_router(FlitPlace place) const { return place & ~channel_mask_; }
  [[nodiscard]] static std::uint64_t bit(FlitPlace place) { return std::uint64_t{1} << place % 64; }
  [[nodiscard]] bool is_free(FlitPlace output) const {
    return (state_.free[output / 64] >> output % 64 & 1) != 0;
  }
  [[nodiscard]] std::uint32_t port_index(FlitPlace place) const { return place >> virtual_channel_bits_; }

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  const bool is_multi_cycle_;     // some stage takes more than one cycle
  const bool has_intervals_;      // some link takes more than one cycle a flit
  const bool has_plain_headers_;  // FlitRouteUnit::is_fixed, and all ports are equally fast
  const bool is_routed_at_once_;  // there is no stage of route computation
  const std::uint32_t buffer_flits_;
  const std::uint32_t virtual_channel_bits_;  // bits of a FlitPlace
  const std::uint32_t channel_bits_;          // the same
  const std::uint32_t channel_mask_;
  bool is_traced_ = false;  // in this cycle
  bool is_plain_ = false;   // in this cycle: nothing for note_crossing

  // The block that tick works on.
  FlitPlaceList allocating_;        // inputs whose first flit is a header without a virtual channel
  std::size_t routed_ = 0;          // the first of those: their route is computed
  FlitCrossingList switching_;      // inputs with a flit, a virtual channel and a credit
  std::size_t channel_askers_ = 0;  // the first of allocating_: the requests of this cycle
  std::size_t switch_askers_ = 0;   // the first of switching_: the requests of this cycle
  std::vector<FlitChannelRequest> channel_requests_;
  std::vector<FlitCrossing> crossings_;
  std::size_t crossing_count_ = 0;
  std::vector<std::uint32_t> contended_;         // requests that follow another for the same output
  std::vector<std::uint32_t> contended_inputs_;  // that follow another of the same input port
  std::vector<FlitPlace> followed_;              // inputs that sent a flit and hold another
  std::vector<std::uint32_t> by_age_;            // requests of one chain
  bool is_changed_ = false;                      // a register changed in this cycle
  FlitChains<2> ports_at_switch_;                // FlitSwitchArbiter
  FlitChains<1> asked_channels_;                 // by the place of the first virtual channel that is wanted
  FlitChannelArbiter channel_arbiter_;
  FlitSwitchArbiter switch_arbiter_;

  static constexpr std::size_t list_room = (std::size_t{1} << block_bits) + 16;  // whole lines of a cache
  const std::size_t row_size_;
  const std::uint32_t ring_mask_;
  State state_;
};

// Returns the next one, round robin, of the virtual channels of the mask.
[[gnu::always_inline]] inline std::uint32_t FlitRouterBank::preferred(
    const FlitChannelRequest& request) const {
  // The difference wraps to a large number for a channel of an earlier port; the search then starts at 0.
  const std::uint32_t last =
      std::min(state_.inputs[request.input].output - (request.port & channel_mask_), 63U);
  return first_behind(request.mask, last);
}

// Takes the next one, round robin, of the virtual channels that the input was granted.
[[gnu::always_inline]] inline FlitPlace FlitRouterBank::choose(const FlitChannelRequest& request) {
  const std::uint32_t chosen = preferred(request);
  state_.inputs[request.input].output = static_cast<std::uint16_t>((request.port & channel_mask_) + chosen);
  const FlitPlace output = request.port + chosen;
  state_.outputs[output].last_granted = static_cast<std::uint16_t>(request.input & channel_mask_);
  return output;
}

// Gives an output virtual channel to an input, which requests the switch from the next cycle on.
[[gnu::always_inline]] inline void FlitRouterBank::hold(const FlitCrossing& grant,
                                                        FlitCrossingList& switching) {
  state_.free[grant.output() / 64] &= ~bit(grant.output());
  switching.add_if(state_.outputs[grant.output()].credits != 0, grant);
}

// Moves the arbiters' pointers of a match.
[[gnu::always_inline]] inline void FlitRouterBank::accept(FlitCrossing crossing) {
  FlitRouterPort* const ports = fabric_.port_table.data();
  ports[port_index(crossing.output())].state.granted_input = crossing.input();
  ports[port_index(crossing.input())].state.accepted = crossing;
}

}  // namespace apenet
