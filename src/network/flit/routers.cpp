#include "network/flit/routers.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"
#include "network/flit/router_bank.hpp"

namespace apenet {

FlitRouterBank::FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes)
    : fabric_(fabric),
      routes_(routes),
      is_multi_cycle_(fabric.timing.routing_cycles > 1 || fabric.timing.vc_allocation_cycles > 1 ||
                      fabric.timing.switch_allocation_cycles > 1 ||
                      fabric.timing.switch_traversal_cycles > 1),
      has_intervals_(fabric.flit_cycles.back() > 1),
      has_plain_headers_(routes.is_fixed() && fabric.flit_cycles.size() == 1),
      is_routed_at_once_(fabric.timing.routing_cycles == 0),
      buffer_flits_(fabric.timing.buffer_flits),
      virtual_channel_bits_(fabric.virtual_channel_bits),
      channel_bits_(fabric.channel_bits),
      channel_mask_(fabric.channels - 1),
      channel_requests_(list_room),
      crossings_(list_room),
      contended_(list_room),
      contended_inputs_(list_room),
      followed_(list_room),
      ports_at_switch_(std::size_t{1} << (block_bits - virtual_channel_bits_), list_room),
      asked_channels_(std::size_t{1} << block_bits, list_room),
      channel_arbiter_(fabric.channels),
      switch_arbiter_(virtual_channel_bits_, list_room),
      row_size_(std::size_t{fabric.router_count} << channel_bits_),
      ring_mask_(std::bit_ceil(std::max(buffer_flits_, 2U) - 1) - 1) {
  state_.inputs.resize(row_size_);
  state_.outputs.resize(row_size_);
  state_.flits.resize((2 + ring_mask_) * row_size_);
  state_.free.resize((state_.inputs.size() + 63) / 64);
  state_.waiting.resize(fabric.block_count());
  state_.allocating_lists.resize(list_room * state_.waiting.size());
  state_.switching_lists.resize(list_room * state_.waiting.size());
  const auto last_channel = static_cast<std::uint16_t>(channel_mask_);
  for (FlitInputChannel& input : state_.inputs) input.output = last_channel;
  for (FlitOutputChannel& output : state_.outputs)
    output = {static_cast<std::uint16_t>(buffer_flits_), last_channel};
  for (std::uint32_t router = 0; router < fabric.router_count; ++router) {
    for (std::uint32_t number = 0; number < fabric.ports; ++number) {
      const FlitPlace place = fabric.place(router, number);
      FlitRouterPort& port = fabric.port_table[port_index(place)];
      port.across = port.wires.far_end - place;
      port.state.granted_input = FlitRouterPort::last;
      port.state.accepted = {FlitRouterPort::last, FlitRouterPort::last};
      state_.free[place / 64] |= low_bits(fabric.virtual_channels) << place % 64;
    }
  }
  if (has_intervals_) state_.output_free.resize(fabric.port_table.size());
  if (is_multi_cycle_) {
    state_.busy_stages.resize(fabric.router_count);
    state_.crossing_done.resize(fabric.router_count, -1);
    state_.last_sent.resize(fabric.port_table.size(), -1);
  }
}

void FlitRouterBank::tick(FlitCycle cycle) {
  is_traced_ = fabric_.simulation.is_traced();
  is_plain_ = !is_traced_ && !state_.has_adaptive && !is_multi_cycle_ && !has_intervals_ &&
              fabric_.retries == nullptr && fabric_.slot_flits == 0;
  for (std::uint32_t block = 0; block < state_.waiting.size(); ++block) {
    Waiting& waiting = state_.waiting[block];
    allocating_ = {&state_.allocating_lists[list_room * block], waiting.allocating};
    switching_ = {&state_.switching_lists[list_room * block], waiting.switching};
    routed_ = waiting.routed;
    const bool has_flits =
        has_plain_headers_ ? write_buffers<true>(cycle, block) : write_buffers<false>(cycle, block);
    const bool has_credits = fabric_.credits_on_wires.take(
        cycle, block, [this](const FlitCredit& credit) { take_credit(credit.place); });
    if (!has_flits && !has_credits && !waiting.is_active) continue;
    is_changed_ = false;
    find_requests(cycle);
    allocate_channels(cycle);
    const FlitCrossingList lost = allocate_switch();
    if (is_multi_cycle_) {
      switching_.replace(switch_askers_, lost);
      keep_crossings(cycle);
      finish_stages(block, cycle);
    } else {
      is_plain_ ? cross_switch<true>(cycle, lost) : cross_switch<false>(cycle, lost);
    }
    waiting = {static_cast<std::uint32_t>(allocating_.size()), static_cast<std::uint32_t>(routed_),
               static_cast<std::uint32_t>(switching_.size()), is_changed_};
  }
}

// --- buffer write
// --------------------------------------------------------------------------------------------

// Branch-free on whether the buffer is empty, which is unpredictable. A header's route is therefore computed
// on arrival, although the stage begins when the header has reached the front: the result depends on router,
// input and packet only. (An adaptive choice depends on more; VC allocation makes it.)
template <bool has_plain_headers>
[[gnu::noinline]] bool FlitRouterBank::write_buffers(FlitCycle cycle, std::uint32_t block) {
  FlitInputChannel* const inputs = state_.inputs.data();
  FlitBuffered* const flits = state_.flits.data();
  FlitPacketRoute* const routes = fabric_.state.routes.data();
  const FlitCubeRequests& fixed = routes_.fixed();
  FlitPlaceList allocating = allocating_;
  FlitCrossingList switching = switching_;
  const bool is_any = fabric_.flits_on_wires.take(cycle, block, [&](const FlitArrival& arrival) {
    const FlitPlace place = arrival.place;
    const Flit flit = arrival.flit;
    FlitInputChannel& input = inputs[place];
    const std::uint32_t before = input.count++;
    APENET_CHECK(before < buffer_flits_, "router %u, channel %u: a flit without a credit",
                 fabric_.router_of(place), fabric_.channel_of(place));
    const auto if_behind = static_cast<std::uint32_t>(-static_cast<std::int32_t>(before) >> 31);  // all bits
    const std::uint32_t row = (1 + ((flits[place].second + before - 1) & ring_mask_)) & if_behind;
    FlitBuffered& buffered = flits[row * row_size_ + place];
    buffered.flit = flit;
    if (flit.is_head()) {
      FlitPacketRoute& route = routes[flit.packet()];
      ++route.routers;
      buffered.request = has_plain_headers
                             ? fixed.request(place >> channel_bits_, place & channel_mask_, route.target)
                             : find_request(place, flit.packet());
      allocating.add_if(before == 0, place);
    } else if (before == 0) {
      const FlitPlace output = first_of_router(place) | input.output;
      switching.add_if(state_.outputs[output].credits != 0, {place, output});
    }
  });
  allocating_ = allocating;
  switching_ = switching;
  return is_any;
}

[[gnu::noinline]] FlitRequest FlitRouterBank::find_request(FlitPlace place, std::uint32_t packet) {
  const std::uint32_t router = place >> channel_bits_;
  FlitPacketRoute& route = fabric_.state.routes[packet];
  const FlitRequest request = routes_.request(router, place & channel_mask_, packet, route);
  if (routes_.is_adaptive(request)) {
    state_.has_adaptive = true;
  } else {
    FlitFabric::note_port(fabric_.port(router, request.port()), route);
  }
  return request;
}

[[gnu::always_inline]] inline void FlitRouterBank::take_credit(FlitPlace place) {
  FlitOutputChannel& output = state_.outputs[place];
  if (output.credits++ != 0 || is_free(place)) return;
  const FlitPlace holder = first_of_router(place) | output.last_granted;
  if (state_.inputs[holder].count != 0) switching_.add({holder, place});
}

// --- requests
// ---------------------------------------------------------------------------------------

// Fixes the requests of this cycle: entries that the stages add to the lists request in the next cycle.
[[gnu::always_inline]] inline void FlitRouterBank::find_requests(FlitCycle cycle) {
  if (is_routed_at_once_) routed_ = allocating_.size();
  channel_askers_ = routed_;
  switch_askers_ = switching_.size();
  if (is_multi_cycle_) {
    begin_routing(cycle);
    drop_busy();
  }
  if (has_intervals_) drop_delayed(cycle);
  // The switch serves at least one request, so that registers change.
  if (!is_multi_cycle_) is_changed_ |= switch_askers_ != 0 || routed_ != allocating_.size();
}

// Removes requests whose link would still be busy with the previous flit when the switch grants.
[[gnu::noinline]] void FlitRouterBank::drop_delayed(FlitCycle cycle) {
  const FlitCycle granted = cycle + fabric_.timing.switch_allocation_cycles - 1;
  const std::size_t before = switch_askers_;
  switch_askers_ = switching_.partition(before, [&](const FlitCrossing& crossing) {
    return state_.output_free[port_index(crossing.output())] <= granted;
  });
  is_changed_ |= switch_askers_ != before;
}

std::unique_ptr<FlitRouters> make_flit_routers(FlitFabric& fabric, const FlitRouteUnit& routes) {
  constexpr std::uint32_t max_channels = 512;
  if (fabric.ports * fabric.virtual_channels > max_channels || fabric.ports > 64 ||
      fabric.virtual_channels > 64) {
    refuse_value("router.virtual_channels", std::to_string(fabric.virtual_channels),
                 "at most 64, and at most " + std::to_string(max_channels) + " on the " +
                     std::to_string(fabric.ports) + " ports of a router (at most 64) for the flit engine");
  }
  return std::make_unique<FlitRouterBank>(fabric, routes);
}

}  // namespace apenet
