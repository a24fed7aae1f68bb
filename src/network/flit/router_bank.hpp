// FlitRouterBank: the routers of the flit engine. Its functions are in routers.cpp, the only file that
// uses it.
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

// Flat arrays by FlitPlace. A cycle goes through the routers in which anything can happen, a block of them at
// a time: who waits for VC allocation or for the switch is in lists, which both work down. What a router
// sends is read in later cycles only (DelayLine), so that its place in the order cannot matter, and within it
// the stages read the registers as the cycle found them: what asks is counted before VC allocation gives
// anything, and no tail leaves before that has looked at the free channels.
//
// A block of routers is at rest when a cycle changed none of its registers: until a flit or a credit arrives,
// the next one would not either, and no cycle looks at it.
class FlitRouterBank final : public FlitRouters {
 public:
  FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes);

  void tick(FlitCycle cycle) override;
  [[nodiscard]] bool is_at_rest() const override {
    return std::none_of(waiting_.begin(), waiting_.end(),
                        [](const Waiting& waiting) { return waiting.is_active; });
  }

 private:
  static constexpr std::uint32_t block_bits = FlitFabric::block_bits;

  // Where they are defined, functions for what is rare stay out of line, so that the loops of all others keep
  // their variables in registers.
  template <bool has_plain_headers>
  [[nodiscard, gnu::noinline]] bool write_buffers(FlitCycle cycle, std::uint32_t block);
  void take_credit(FlitPlace place);
  void find_requests(FlitCycle cycle);
  void drop_delayed(FlitCycle cycle);
  void drop_busy();
  void begin_routing(FlitCycle cycle);
  void end_routing(FlitPlace place);
  void keep_crossings(FlitCycle cycle);
  void finish_long(std::uint32_t block, FlitCycle cycle);
  void finish_long(FlitLongStages& work, FlitCycle cycle);
  [[nodiscard]] FlitRequest find_request(FlitPlace place, std::uint32_t packet);
  void bring_next(std::size_t followed);
  void allocate_channels(FlitCycle cycle);
  void list_channel_requests();
  [[nodiscard]] FlitPlace choose(const FlitChannelRequest& request);
  void accept_long(FlitCycle cycle, FlitPlaceList& lost);
  void hold(const FlitCrossing& grant, FlitCrossingList& switching);
  [[nodiscard]] std::uint64_t with_room(FlitPlace input, FlitPlace port, std::uint64_t mask) const;
  void drop_small(FlitChannelRequest* requests, std::size_t count) const;
  [[nodiscard]] FlitRequest choose_output(FlitPlace input) const;
  [[nodiscard]] FlitCrossingList allocate_switch();
  void accept(FlitCrossing crossing);
  template <bool is_plain>
  [[gnu::noinline]] void cross_switch(FlitCycle cycle, FlitCrossingList kept);
  template <bool is_plain>
  void traverse(FlitCrossing crossing, FlitCycle cycle, std::size_t& followed, FlitCrossingList& switching);
  [[nodiscard]] FlitCycle note_crossing(const FlitCrossing& crossing, Flit flit, FlitCycle cycle);
  [[nodiscard]] FlitCycle delay_crossing(FlitPlace output, FlitCycle cycle);

  [[nodiscard]] FlitPlace first_of_router(FlitPlace place) const { return place & ~channel_mask_; }
  [[nodiscard]] static std::uint64_t bit(FlitPlace place) { return std::uint64_t{1} << place % 64; }
  [[nodiscard]] bool is_free(FlitPlace output) const { return (free_[output / 64] >> output % 64 & 1) != 0; }
  [[nodiscard]] std::uint32_t port_index(FlitPlace place) const { return place >> virtual_channel_bits_; }

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  const bool is_long_;            // some stage takes more than one cycle
  const bool has_intervals_;      // some link takes more than one cycle a flit
  const bool has_plain_headers_;  // FlitRouteUnit::is_fixed, and all ports are equally fast
  const bool is_routed_at_once_;  // there is no stage of route computation
  const std::uint32_t buffer_flits_;
  const std::uint32_t virtual_channel_bits_;  // of a FlitPlace
  const std::uint32_t channel_bits_;          // the same
  const std::uint32_t channel_mask_;
  bool is_traced_ = false;     // in this cycle
  bool is_plain_ = false;      // in this cycle: nothing for note_crossing
  bool has_adaptive_ = false;  // there were requests that are chosen anew in every cycle

  // Of the block at hand.
  FlitPlaceList allocating_;        // inputs whose first flit is a header without a virtual channel
  std::size_t routed_ = 0;          // the first ones of those: behind the stage of route computation
  FlitCrossingList switching_;      // inputs with a flit, a virtual channel and a credit
  std::size_t channel_askers_ = 0;  // the first ones of allocating_: of this cycle
  std::size_t switch_askers_ = 0;   // the first ones of switching_: the same
  std::vector<FlitChannelRequest> channel_requests_;
  std::vector<FlitCrossing> crossings_;
  std::size_t crossing_count_ = 0;
  std::vector<std::uint32_t> contended_;         // requests: behind another one for the same output
  std::vector<std::uint32_t> contended_inputs_;  // behind another one of the same input port
  std::vector<FlitPlace> followed_;              // inputs of which a flit went, and another one is there
  bool is_changed_ = false;                      // some register, in this cycle
  FlitChains<2> ports_at_switch_;                // FlitSwitchArbiter
  FlitChains<1> asked_channels_;                 // by the place of the first virtual channel that is wanted
  FlitChannelArbiter channel_arbiter_;
  FlitSwitchArbiter switch_arbiter_;

  // How many wait in a block of routers, from cycle to cycle.
  struct Waiting {
    std::uint32_t allocating = 0;
    std::uint32_t routed = 0;
    std::uint32_t switching = 0;
    bool is_active = false;  // not at rest
  };
  static constexpr std::size_t list_room = (std::size_t{1} << block_bits) + 16;  // whole lines of a cache
  std::vector<Waiting> waiting_;                                                 // per block
  LargeArray<FlitPlace> allocating_lists_;                                       // list_room per block
  LargeArray<FlitCrossing> switching_lists_;                                     // the same
  LargeArray<std::uint64_t> free_;         // output virtual channels that nobody holds: 64 places a word
  LargeArray<FlitInputChannel> inputs_;    // by FlitPlace
  LargeArray<FlitOutputChannel> outputs_;  // the same
  // A row of the first flits of all buffers, by FlitPlace; then as many rows as a buffer's ring of the others
  // has flits. Few flits wait behind another one: so most rows are hardly used, and take no place in a cache.
  std::size_t row_size_;
  std::uint32_t ring_mask_;
  LargeArray<FlitBuffered> flits_;
  std::vector<FlitCycle> output_free_;    // as the port table: first cycle of the next grant; has_intervals_
  std::vector<FlitLongStages> long_;      // per router; is_long_
  std::vector<FlitCycle> crossing_done_;  // per router: end of the switch's last traversal; is_long_
  std::vector<FlitCycle> last_sent_;      // as the port table: by the output queue; is_long_
};

}  // namespace apenet
