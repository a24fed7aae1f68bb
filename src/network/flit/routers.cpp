#include "network/flit/routers.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"
#include "network/flit/router_bank.hpp"

namespace apenet {

FlitRouterBank::FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes)
    : fabric_(fabric),
      routes_(routes),
      is_long_(fabric.timing.routing_cycles > 1 || fabric.timing.vc_allocation_cycles > 1 ||
               fabric.timing.switch_allocation_cycles > 1 || fabric.timing.switch_traversal_cycles > 1),
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
      inputs_(std::size_t{fabric.router_count} << channel_bits_),
      outputs_(inputs_.size()),
      row_size_(inputs_.size()),
      ring_mask_(std::bit_ceil(std::max(buffer_flits_, 2U) - 1) - 1),
      flits_((2 + ring_mask_) * row_size_) {
  free_.resize((inputs_.size() + 63) / 64);
  waiting_.resize(fabric.block_count());
  allocating_lists_.resize(list_room * waiting_.size());
  switching_lists_.resize(list_room * waiting_.size());
  const auto last_channel = static_cast<std::uint16_t>(channel_mask_);
  for (FlitInputChannel& input : inputs_) input.output = last_channel;
  for (FlitOutputChannel& output : outputs_)
    output = {static_cast<std::uint16_t>(buffer_flits_), last_channel};
  for (std::uint32_t router = 0; router < fabric.router_count; ++router) {
    for (std::uint32_t number = 0; number < fabric.ports; ++number) {
      const FlitPlace place = fabric.place(router, number);
      FlitRouterPort& port = fabric.port_table[port_index(place)];
      port.across = port.wires.far_end - place;
      free_[place / 64] |= low_bits(fabric.virtual_channels) << place % 64;
    }
  }
  if (has_intervals_) output_free_.resize(fabric.port_table.size());
  if (is_long_) {
    long_.resize(fabric.router_count);
    crossing_done_.resize(fabric.router_count, -1);
    last_sent_.resize(fabric.port_table.size(), -1);
  }
}

void FlitRouterBank::tick(FlitCycle cycle) {
  is_traced_ = fabric_.simulation.is_traced();
  is_plain_ = !is_traced_ && !has_adaptive_ && !is_long_ && !has_intervals_;
  for (std::uint32_t block = 0; block < waiting_.size(); ++block) {
    Waiting& waiting = waiting_[block];
    allocating_ = {&allocating_lists_[list_room * block], waiting.allocating};
    switching_ = {&switching_lists_[list_room * block], waiting.switching};
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
    if (is_long_) {
      switching_.replace(switch_askers_, lost);
      keep_crossings(cycle);
      finish_long(block, cycle);
    } else {
      is_plain_ ? cross_switch<true>(cycle, lost) : cross_switch<false>(cycle, lost);
    }
    waiting = {static_cast<std::uint32_t>(allocating_.size()), static_cast<std::uint32_t>(routed_),
               static_cast<std::uint32_t>(switching_.size()), is_changed_};
  }
}

// --- buffer write
// --------------------------------------------------------------------------------------------

// No branch asks whether the buffer is empty, since nobody can predict it. So a header's route is computed
// when it arrives, though the stage begins when it has become the first of its buffer: the answer is a
// function of router, input and packet alone. (An adaptive routing's choice is not, and is left to VC
// allocation.)
template <bool has_plain_headers>
[[gnu::noinline]] bool FlitRouterBank::write_buffers(FlitCycle cycle, std::uint32_t block) {
  FlitInputChannel* const inputs = inputs_.data();
  FlitBuffered* const flits = flits_.data();
  FlitPacketRoute* const routes = fabric_.routes.data();
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
      switching.add_if(outputs_[output].credits != 0, {place, output});
    }
  });
  allocating_ = allocating;
  switching_ = switching;
  return is_any;
}

[[gnu::noinline]] FlitRequest FlitRouterBank::find_request(FlitPlace place, std::uint32_t packet) {
  const std::uint32_t router = place >> channel_bits_;
  FlitPacketRoute& route = fabric_.routes[packet];
  const FlitRequest request = routes_.request(router, place & channel_mask_, packet, route);
  if (routes_.is_adaptive(request)) {
    has_adaptive_ = true;
  } else {
    FlitFabric::note_port(fabric_.port(router, request.port()), route);
  }
  return request;
}

[[gnu::always_inline]] inline void FlitRouterBank::take_credit(FlitPlace place) {
  FlitOutputChannel& output = outputs_[place];
  if (output.credits++ != 0 || is_free(place)) return;
  const FlitPlace holder = first_of_router(place) | output.last_granted;
  if (inputs_[holder].count != 0) switching_.add({holder, place});
}

// --- what is asked for
// ---------------------------------------------------------------------------------------

// The lists as the cycle finds them: what VC allocation and the switch add to them asks in the next one.
[[gnu::always_inline]] inline void FlitRouterBank::find_requests(FlitCycle cycle) {
  if (is_routed_at_once_) routed_ = allocating_.size();
  channel_askers_ = routed_;
  switch_askers_ = switching_.size();
  if (is_long_) {
    begin_routing(cycle);
    drop_busy();
  }
  if (has_intervals_) drop_delayed(cycle);
  // What asks the switch is served.
  if (!is_long_) is_changed_ |= switch_askers_ != 0 || routed_ != allocating_.size();
}

// Those whose link is still busy with the flit before when the switch would grant: they ask in a later cycle.
[[gnu::noinline]] void FlitRouterBank::drop_delayed(FlitCycle cycle) {
  const FlitCycle granted = cycle + fabric_.timing.switch_allocation_cycles - 1;
  const std::size_t before = switch_askers_;
  switch_askers_ = switching_.partition(before, [&](const FlitCrossing& crossing) {
    return output_free_[port_index(crossing.output())] <= granted;
  });
  is_changed_ |= switch_askers_ != before;
}

// Where a stage takes several cycles: who has begun route computation.
[[gnu::noinline]] void FlitRouterBank::begin_routing(FlitCycle cycle) {
  const FlitCycle done = cycle + fabric_.timing.routing_cycles - 1;
  FlitPlaceList waiting{allocating_.begin(), routed_};
  for (std::size_t i = routed_; i < allocating_.size(); ++i) {
    const FlitPlace place = allocating_[i];
    FlitLongStages& work = long_[place >> channel_bits_];
    if (!work.routing.empty() && work.routing_done != done) {
      waiting.add(place);
      continue;
    }
    work.routing.push_back(place);
    work.routing_done = done;
  }
  allocating_ = waiting;
}

// It stands before those without a route.
void FlitRouterBank::end_routing(FlitPlace place) {
  allocating_.add(place);
  std::swap(allocating_.begin()[routed_++], allocating_.end()[-1]);
}

// A stage that is at work is not asked.
[[gnu::noinline]] void FlitRouterBank::drop_busy() {
  channel_askers_ = allocating_.partition(
      channel_askers_, [&](FlitPlace place) { return long_[place >> channel_bits_].channel_grants.empty(); });
  switch_askers_ = switching_.partition(switch_askers_, [&](const FlitCrossing& crossing) {
    return long_[crossing.input() >> channel_bits_].crossings.empty();
  });
}

[[gnu::noinline]] void FlitRouterBank::keep_crossings(FlitCycle cycle) {
  for (std::size_t i = 0; i < crossing_count_; ++i) {
    const FlitCrossing& crossing = crossings_[i];
    accept(crossing);
    FlitLongStages& work = long_[crossing.input() >> channel_bits_];
    work.crossings.push_back(crossing);
    work.crossings_done = cycle + fabric_.timing.switch_allocation_cycles - 1;
  }
}

[[gnu::noinline]] void FlitRouterBank::finish_long(std::uint32_t block, FlitCycle cycle) {
  const std::uint32_t routers = 1U << (FlitFabric::block_bits - channel_bits_);
  const std::uint32_t end = std::min((block + 1) * routers, fabric_.router_count);
  for (std::uint32_t router = block * routers; router < end; ++router) {
    if (long_[router].is_busy()) finish_long(long_[router], cycle);
  }
}

void FlitRouterBank::finish_long(FlitLongStages& work, FlitCycle cycle) {
  is_changed_ = true;
  if (work.routing_done == cycle) {
    for (const FlitPlace place : work.routing) end_routing(place);
    work.routing.clear();
  }
  if (work.channel_grants_done == cycle) {
    for (const FlitCrossing& grant : work.channel_grants) hold(grant, switching_);
    work.channel_grants.clear();
  }
  if (work.crossings_done == cycle) {
    std::size_t followed = 0;
    for (const FlitCrossing& crossing : work.crossings)
      traverse<false>(crossing, cycle, followed, switching_);
    bring_next(followed);
    work.crossings.clear();
  }
}

// --- VC allocation
// -------------------------------------------------------------------------------------------

[[gnu::noinline]] void FlitRouterBank::allocate_channels(FlitCycle cycle) {
  if (has_adaptive_) {
    for (std::size_t i = 0; i < channel_askers_; ++i) {
      FlitRequest& request = flits_[allocating_[i]].request;
      if (routes_.is_adaptive(request)) request = choose_output(allocating_[i]);
    }
  }
  list_channel_requests();
  const FlitChannelRequest* const requests = channel_requests_.data();
  const std::size_t count = channel_askers_;
  FlitPlaceList lost{allocating_.begin(), 0};
  if (is_long_) {
    accept_long(cycle, lost);
  } else {
    FlitCrossingList switching = switching_;
    for (const FlitChannelRequest* request = requests; request != requests + count; ++request) {
      if (request->mask == 0) {
        lost.add(request->input);
      } else {
        hold({request->input, choose(*request)}, switching);
      }
    }
    switching_ = switching;
  }
  const std::size_t granted = count - lost.size();
  is_changed_ |= granted != 0;
  allocating_.replace(count, lost);
  routed_ = is_long_ ? routed_ - granted : allocating_.size();
}

// What each asks for of what is free, and of that what it was granted. Pointers and numbers are copied out
// of the members: as the compiler sees it, any store may change those.
[[gnu::always_inline]] inline void FlitRouterBank::list_channel_requests() {
  const std::uint32_t channel_mask = channel_mask_;
  const FlitPlace* const places = allocating_.begin();
  const std::size_t place_count = channel_askers_;
  const std::uint64_t* const free = free_.data();
  const FlitRouteUnit::Wanted* const wanted = routes_.wanted();
  const FlitBuffered* const flits = flits_.data();
  FlitChannelRequest* const requests = channel_requests_.data();
  std::uint32_t* const contended = contended_.data();
  FlitChains<1>::List asked = asked_channels_.begin_list();
  std::size_t contended_count = 0;
  for (std::uint32_t i = 0; i < place_count; ++i) {
    const FlitPlace place = places[i];
    const FlitRouteUnit::Wanted& want = wanted[flits[place].request.index()];
    const FlitPlace router = place & ~channel_mask;
    const FlitPlace port = router | want.first_channel;
    requests[i] = {place, port, free[port / 64] >> port % 64 & want.mask};
    contended[contended_count] = i;
    contended_count += static_cast<std::size_t>(asked.add(i, {router | want.first_wanted})[0]);
  }
  if (fabric_.is_cut_through) drop_small(requests, place_count);
  asked_channels_.end_list(place_count);
  for (std::size_t i = 0; i < contended_count; ++i) {
    const FlitPlace place = requests[contended[i]].input;
    const FlitRouteUnit::Wanted& want = wanted[flits[place].request.index()];
    if (asked_channels_.ends_chain(0, contended[i], (place & ~channel_mask) | want.first_wanted)) {
      channel_arbiter_.grant(requests, asked_channels_, contended[i], want.mask,
                             &outputs_[requests[contended[i]].port]);
    }
  }
}

// Of the virtual channels that the input was granted, the next one.
[[gnu::always_inline]] inline FlitPlace FlitRouterBank::choose(const FlitChannelRequest& request) {
  FlitInputChannel& input = inputs_[request.input];
  const std::uint32_t first_channel = request.port & channel_mask_;
  // Below the port's first it is a large number, and then, or beyond its last, there is nothing behind it.
  const std::uint32_t last = std::min(input.output - first_channel, 63U);
  const std::uint32_t chosen = first_behind(request.mask, last);
  input.output = static_cast<std::uint16_t>(first_channel + chosen);
  const FlitPlace output = request.port + chosen;
  outputs_[output].last_granted = static_cast<std::uint16_t>(request.input & channel_mask_);
  return output;
}

[[gnu::noinline]] void FlitRouterBank::accept_long(FlitCycle cycle, FlitPlaceList& lost) {
  for (std::size_t i = 0; i < channel_askers_; ++i) {
    const FlitChannelRequest& request = channel_requests_[i];
    if (request.mask == 0) {
      lost.add(request.input);
      continue;
    }
    FlitLongStages& work = long_[request.input >> channel_bits_];
    work.channel_grants.push_back({request.input, choose(request)});
    work.channel_grants_done = cycle + fabric_.timing.vc_allocation_cycles - 1;
  }
}

// VC allocation gave it: the input asks the switch from the next cycle on.
[[gnu::always_inline]] inline void FlitRouterBank::hold(const FlitCrossing& grant,
                                                        FlitCrossingList& switching) {
  free_[grant.output() / 64] &= ~bit(grant.output());
  switching.add_if(outputs_[grant.output()].credits != 0, grant);
}

// Virtual cut-through: only channels with room for the whole packet.
[[gnu::noinline]] std::uint64_t FlitRouterBank::with_room(FlitPlace input, FlitPlace port,
                                                          std::uint64_t mask) const {
  const std::uint32_t flits = fabric_.routes[flits_[input].flit.packet()].flits;
  std::uint64_t result = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t virtual_channel = lowest_bit(rest);
    if (outputs_[port + virtual_channel].credits >= flits) result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

[[gnu::noinline]] void FlitRouterBank::drop_small(FlitChannelRequest* requests, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    requests[i].mask = with_room(requests[i].input, requests[i].port, requests[i].mask);
  }
}

[[gnu::noinline]] FlitRequest FlitRouterBank::choose_output(FlitPlace input) const {
  const std::uint32_t router = fabric_.router_of(input);
  const auto room = [&](std::uint32_t number, std::uint64_t mask) {
    const FlitPlace port = fabric_.place(router, number);
    std::uint64_t usable = mask & free_[port / 64] >> port % 64;
    if (fabric_.is_cut_through) usable = with_room(input, port, usable);
    std::int64_t most = -1;
    for (std::uint64_t rest = usable; rest != 0; rest &= rest - 1) {
      const std::uint32_t virtual_channel = lowest_bit(rest);
      most = std::max<std::int64_t>(most, outputs_[port + virtual_channel].credits);
    }
    return most;
  };
  const std::uint32_t packet = flits_[input].flit.packet();
  const FlitRequest request = routes_.most_room(router, fabric_.channel_of(input), packet, room);
  return routes_.for_now(request);
}

// --- switch allocation
// ---------------------------------------------------------------------------------------

// Leaves the flits that may cross in crossings_. Returns who has lost, at the begin of switching_: what asks
// there is in crossings_ now.
[[gnu::noinline]] FlitCrossingList FlitRouterBank::allocate_switch() {
  const std::uint32_t virtual_channel_bits = virtual_channel_bits_;
  FlitCrossing* const requests = switching_.begin();
  const std::size_t request_count = switch_askers_;
  std::uint32_t* const contended_inputs = contended_inputs_.data();
  std::uint32_t* const contended_outputs = contended_.data();
  FlitChains<2>::List asked = ports_at_switch_.begin_list();
  std::size_t contended_input_count = 0;
  std::size_t contended_output_count = 0;
  for (std::uint32_t i = 0; i < request_count; ++i) {
    const FlitCrossing request = requests[i];
    const auto [is_input_contended, is_output_contended] =
        asked.add(i, {request.input() >> virtual_channel_bits, request.output() >> virtual_channel_bits});
    contended_inputs[contended_input_count] = i;
    contended_input_count += is_input_contended ? 1 : 0;
    contended_outputs[contended_output_count] = i;
    contended_output_count += is_output_contended ? 1 : 0;
  }
  ports_at_switch_.end_list(request_count);
  const FlitRouterPort* const ports = fabric_.port_table.data();
  for (std::size_t i = 0; i < contended_output_count; ++i) {
    switch_arbiter_.grant(requests, ports_at_switch_, contended_outputs[i], ports);
  }
  for (std::size_t i = 0; i < contended_input_count; ++i) {
    switch_arbiter_.accept(requests, ports_at_switch_, contended_inputs[i], ports);
  }
  FlitCrossing* const crossings = crossings_.data();
  std::size_t lost_count = 0;  // sorted out without a branch that nobody can predict
  for (std::size_t i = 0; i < request_count; ++i) {
    const FlitCrossing request = requests[i];
    requests[lost_count] = request.as_asked();
    crossings[i - lost_count] = request;
    lost_count += request.lost_count();
  }
  crossing_count_ = request_count - lost_count;
  return {requests, lost_count};
}

// The pointers of a match move.
[[gnu::always_inline]] inline void FlitRouterBank::accept(FlitCrossing crossing) {
  FlitRouterPort* const ports = fabric_.port_table.data();
  ports[port_index(crossing.output())].granted_input = crossing.input();
  ports[port_index(crossing.input())].accepted = crossing;
}

// --- switch traversal
// ----------------------------------------------------------------------------------------

template <bool is_plain>
[[gnu::noinline]] void FlitRouterBank::cross_switch(FlitCycle cycle, FlitCrossingList kept) {
  const FlitCrossing* const crossings = crossings_.data();
  const std::size_t count = crossing_count_;
  std::size_t followed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const FlitCrossing crossing = crossings[i];
    accept(crossing);
    traverse<is_plain>(crossing, cycle, followed, kept);
  }
  switching_.replace(switch_askers_, kept);
  bring_next(followed);
}

// The flit leaves its buffer, takes a credit of the next one, and gives its own back. Its input is added to
// those that ask the switch if the one behind it can.
template <bool is_plain>
[[gnu::always_inline]] inline void FlitRouterBank::traverse(FlitCrossing crossing, FlitCycle cycle,
                                                            std::size_t& followed,
                                                            FlitCrossingList& switching) {
  const FlitPlace place = crossing.input();
  FlitInputChannel& input = inputs_[place];
  const Flit flit = flits_[place].flit;
  const bool is_followed = --input.count != 0;
  FlitOutputChannel& output = outputs_[crossing.output()];
  --output.credits;

  FlitRouterPort& out = fabric_.port_table[port_index(crossing.output())];
  const FlitRouterPort& in = fabric_.port_table[port_index(place)];
  fabric_.count(out.use, flit);
  const FlitArrival arrival{out.across + crossing.output(), flit};
  if constexpr (is_plain) {
    fabric_.flits_on_wires.push(out.wires.flit_wire, arrival);
  } else {
    fabric_.flits_on_wires.push_late(out.wires.flit_wire, note_crossing(crossing, flit, cycle), arrival);
  }
  fabric_.credits_on_wires.push(in.wires.credit_wire, {in.across + place});

  if (flit.is_tail()) {
    free_[crossing.output() / 64] |= bit(crossing.output());
  } else {
    switching.add_if(is_followed && output.credits != 0, crossing);
  }
  followed_[followed] = place;
  followed += is_followed ? 1 : 0;
}

// The buffers of which a flit went and that are not empty: the one behind it is the first now. They were
// listed, because whether a buffer is one of them cannot be predicted. A ring that is empty begins anew, so
// that the rows of the first few are what is used.
[[gnu::always_inline]] inline void FlitRouterBank::bring_next(std::size_t followed) {
  for (std::size_t i = 0; i < followed; ++i) {
    const FlitPlace place = followed_[i];
    FlitBuffered& front = flits_[place];
    const bool was_tail = front.flit.is_tail();
    const FlitBuffered& second = flits_[(1 + front.second) * row_size_ + place];
    const std::uint32_t third = inputs_[place].count == 1 ? 0 : (front.second + 1U) & ring_mask_;
    front = {second.flit, second.request, static_cast<std::uint16_t>(third)};
    if (was_tail) allocating_.add(place);
  }
}

// What only some networks ask of a crossing. Returns by how many cycles its flit comes later.
[[gnu::noinline]] FlitCycle FlitRouterBank::note_crossing(const FlitCrossing& crossing, Flit flit,
                                                          FlitCycle cycle) {
  const std::uint32_t port = port_index(crossing.output());
  const FlitPort& wires = fabric_.port_table[port].wires;
  if (flit.is_head()) {
    if (is_traced_) fabric_.trace_head(port, flit.packet());
    if (routes_.is_adaptive(flits_[crossing.input()].request))
      FlitFabric::note_port(wires, fabric_.routes[flit.packet()]);
  }
  if (has_intervals_) output_free_[port] = cycle + fabric_.flit_cycles[wires.speed];
  return is_long_ ? delay_crossing(crossing.output(), cycle) : 0;
}

// How many cycles later than alone a flit granted in this cycle is on the wire, where a traversal takes
// several: the switch moves one set of flits at a time, and those of one output leave one after the other.
FlitCycle FlitRouterBank::delay_crossing(FlitPlace output, FlitCycle cycle) {
  const FlitCycle length = fabric_.timing.switch_traversal_cycles;
  FlitCycle& done = crossing_done_[output >> channel_bits_];
  const FlitCycle began = done - length + 1;
  if (cycle >= began) done = std::max(cycle, done) + length;
  const std::uint32_t port = port_index(output);
  const FlitCycle interval = fabric_.flit_cycles[fabric_.port_table[port].wires.speed];
  const FlitCycle sent = last_sent_[port] < 0 ? done : std::max(done, last_sent_[port] + interval);
  last_sent_[port] = sent;
  return sent - (cycle + length);
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
