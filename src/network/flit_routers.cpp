#include "network/flit_routers.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "network/flit_router_bank.hpp"

namespace apenet {

FlitRouterBank::FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes)
    : fabric_(fabric),
      routes_(routes),
      is_long_(fabric.timing.routing_cycles > 1 || fabric.timing.vc_allocation_cycles > 1 ||
               fabric.timing.switch_allocation_cycles > 1 || fabric.timing.switch_traversal_cycles > 1),
      has_intervals_(fabric.flit_cycles.back() > 1),
      has_speeds_(fabric.flit_cycles.size() > 1),
      is_routed_at_once_(fabric.timing.routing_cycles == 0),
      buffer_flits_(fabric.timing.buffer_flits),
      virtual_channel_bits_(fabric.virtual_channel_bits),
      channel_bits_(fabric.channel_bits),
      channel_mask_(fabric.channels - 1),
      allocating_((std::size_t{1} << block_bits) + list_slack),
      switching_(allocating_.size()),
      channel_requests_(allocating_.size()),
      crossings_(allocating_.size()),
      contended_(allocating_.size() + 1),
      contended_inputs_(allocating_.size() + 1),
      followed_(allocating_.size() + 1),
      asked_outputs_(std::size_t{1} << (block_bits - virtual_channel_bits_), allocating_.size() + 1),
      asked_channels_(std::size_t{1} << block_bits, allocating_.size() + 1),
      channel_arbiter_(fabric.channels),
      switch_arbiter_(virtual_channel_bits_),
      inputs_(std::size_t{fabric.router_count} << channel_bits_),
      outputs_(inputs_.size()),
      flits_(inputs_.size() * fabric.timing.buffer_flits) {
  stages_.resize((inputs_.size() + 63) / 64);
  active_.resize(fabric.block_count());
  const auto last_channel = static_cast<std::uint16_t>(channel_mask_);
  for (FlitInputChannel& input : inputs_) input.output = last_channel;
  for (FlitOutputChannel& output : outputs_)
    output = {static_cast<std::uint16_t>(buffer_flits_), last_channel};
  for (std::uint32_t router = 0; router < fabric.router_count; ++router) {
    for (std::uint32_t number = 0; number < fabric.ports; ++number) {
      const FlitPlace place = fabric.place(router, number);
      FlitRouterPort& port = fabric.port_table[port_index(place)];
      port.across = port.wires.far_end - place;
      stages_of(place).free |= low_bits(fabric.virtual_channels) << place % 64;
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
  for (std::uint32_t block = 0; block < active_.size(); ++block) {
    const bool has_flits = fabric_.flits_on_wires.take(
        cycle, block, [this](const FlitArrival& arrival) { write_buffer(arrival); });
    const bool has_credits = fabric_.credits_on_wires.take(
        cycle, block, [this](const FlitCredit& credit) { take_credit(credit.place); });
    if (!has_flits && !has_credits && active_[block] == 0) continue;
    is_changed_ = false;
    list_requests(block, cycle);
    allocate_channels(cycle);
    allocate_switch();
    if (is_long_) {
      keep_crossings(cycle);
      finish_long(block, cycle);
    } else {
      cross_switch(cycle);
    }
    active_[block] = is_changed_ ? 1 : 0;
  }
}

// --- buffer write
// --------------------------------------------------------------------------------------------

[[gnu::always_inline]] inline void FlitRouterBank::write_buffer(const FlitArrival& arrival) {
  const FlitPlace place = arrival.place;
  FlitInputChannel& input = inputs_[place];
  APENET_CHECK(input.count < buffer_flits_, "router %u, channel %u: a flit without a credit",
               fabric_.router_of(place), fabric_.channel_of(place));
  if (input.count++ != 0) {  // those before it first
    std::uint32_t slot = input.next + input.count - 2U;
    if (slot >= buffer_flits_) slot -= buffer_flits_;
    flits_[slot * inputs_.size() + place] = arrival.flit;
    return;
  }
  input.front = arrival.flit;
  if (arrival.flit.is_head()) {
    begin_header(place);
  } else if (outputs_[first_of_router(place) | input.output].credits != 0) {
    stages_of(place).switching |= FlitStages::bit(place);
  }
}

// A header has become the first flit of its buffer. Its route is computed at once, though the stage may end
// later: the answer is a function of router, input and packet alone. An adaptive routing's choice is not, and
// is left to VC allocation.
[[gnu::always_inline]] inline void FlitRouterBank::begin_header(FlitPlace place) {
  FlitInputChannel& input = inputs_[place];
  const std::uint32_t router = place >> channel_bits_;
  const std::uint32_t packet = input.front.packet();
  FlitPacketRoute& route = fabric_.routes[packet];
  input.wire_bytes = route.wire_bytes;
  const FlitRequest request = routes_.request(router, place & channel_mask_, packet, route.destination);
  input.request = request;
  ++route.routers;
  if (request.is_adaptive()) [[unlikely]] {
    has_adaptive_ = true;
  } else if (has_speeds_) {
    FlitFabric::note_port(fabric_.port(router, request.port()), route);
  }
  FlitStages& stages = stages_of(place);
  (is_routed_at_once_ ? stages.allocating : stages.routing) |= FlitStages::bit(place);
}

[[gnu::always_inline]] inline void FlitRouterBank::take_credit(FlitPlace place) {
  FlitOutputChannel& output = outputs_[place];
  if (output.credits++ != 0 || (stages_of(place).free & FlitStages::bit(place)) != 0) return;
  const FlitPlace holder = first_of_router(place) | output.last_granted;
  if (inputs_[holder].count != 0) stages_of(holder).switching |= FlitStages::bit(holder);
}

// --- what is asked for
// ---------------------------------------------------------------------------------------

[[gnu::noinline]] void FlitRouterBank::list_requests(std::uint32_t block, FlitCycle cycle) {
  const bool is_long = is_long_;
  const bool has_intervals = has_intervals_;
  FlitPlace* const allocating = allocating_.data();
  FlitPlace* const switching = switching_.data();
  std::size_t allocating_count = 0;
  std::size_t switching_count = 0;
  std::uint64_t changes = 0;  // what asks the switch is served
  const FlitPlace end =
      std::min((block + 1) << FlitFabric::block_bits, fabric_.place(fabric_.router_count, 0));
  for (FlitPlace first = block << FlitFabric::block_bits; first < end; first += 64) {
    if (is_long) begin_routing(first, cycle);
    FlitStages& stages = stages_of(first);
    std::uint64_t asks_channel = stages.allocating;
    std::uint64_t asks_switch = stages.switching;
    if (is_long) drop_busy(first, asks_channel, asks_switch);
    if (has_intervals) drop_delayed(first, cycle, asks_switch);
    if (!is_long) {
      changes |= stages.routing | asks_switch;
      stages.allocating |= std::exchange(stages.routing, 0);
    }
    if ((asks_channel | asks_switch) == 0) continue;
    allocating_count = list_bits(asks_channel, first, allocating, allocating_count);
    switching_count = list_bits(asks_switch, first, switching, switching_count);
  }
  allocating_count_ = allocating_count;
  switching_count_ = switching_count;
  is_changed_ |= changes != 0;
}

// Those whose link is still busy with the flit before when the switch would grant: they ask in a later cycle.
[[gnu::noinline]] void FlitRouterBank::drop_delayed(FlitPlace first, FlitCycle cycle,
                                                    std::uint64_t& switching) {
  const FlitCycle granted = cycle + fabric_.timing.switch_allocation_cycles - 1;
  for (std::uint64_t rest = switching; rest != 0; rest &= rest - 1) {
    const FlitPlace place = first + lowest_bit(rest);
    if (output_free_[port_index(first_of_router(place) | inputs_[place].output)] <= granted) continue;
    switching &= ~FlitStages::bit(place);
    is_changed_ = true;
  }
}

// Where a stage takes several cycles: who has begun route computation.
[[gnu::noinline]] void FlitRouterBank::begin_routing(FlitPlace first, FlitCycle cycle) {
  const FlitCycle done = cycle + fabric_.timing.routing_cycles - 1;
  FlitStages& stages = stages_of(first);
  for (std::uint64_t rest = stages.routing; rest != 0; rest &= rest - 1) {
    const FlitPlace place = first + lowest_bit(rest);
    FlitLongStages& work = long_[place >> channel_bits_];
    if (!work.routing.empty() && work.routing_done != done) continue;
    work.routing.push_back(place);
    work.routing_done = done;
    stages.routing &= ~FlitStages::bit(place);
  }
}

// A stage that is at work is not asked.
[[gnu::noinline]] void FlitRouterBank::drop_busy(FlitPlace first, std::uint64_t& allocating,
                                                 std::uint64_t& switching) const {
  const auto drop = [&](std::uint64_t& asks, const auto& is_busy) {
    for (std::uint64_t rest = asks; rest != 0; rest &= rest - 1) {
      const FlitPlace place = first + lowest_bit(rest);
      if (is_busy(long_[place >> channel_bits_])) asks &= ~FlitStages::bit(place);
    }
  };
  drop(allocating, [](const FlitLongStages& work) { return !work.channel_grants.empty(); });
  drop(switching, [](const FlitLongStages& work) { return !work.crossings.empty(); });
}

[[gnu::noinline]] void FlitRouterBank::keep_crossings(FlitCycle cycle) {
  for (std::size_t i = 0; i < crossing_count_; ++i) {
    const FlitCrossing& crossing = crossings_[i];
    accept(crossing);
    FlitLongStages& work = long_[crossing.input >> channel_bits_];
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
    for (const FlitPlace place : work.routing) stages_of(place).allocating |= FlitStages::bit(place);
    work.routing.clear();
  }
  if (work.channel_grants_done == cycle) {
    for (const FlitCrossing& grant : work.channel_grants) hold(grant.input, grant.output);
    work.channel_grants.clear();
  }
  if (work.crossings_done == cycle) {
    std::size_t followed = 0;
    for (const FlitCrossing& crossing : work.crossings) traverse(crossing, cycle, followed);
    bring_next(followed);
    work.crossings.clear();
  }
}

// --- VC allocation
// -------------------------------------------------------------------------------------------

[[gnu::noinline]] void FlitRouterBank::allocate_channels(FlitCycle cycle) {
  if (has_adaptive_) {
    for (std::size_t i = 0; i < allocating_count_; ++i) {
      FlitRequest& request = inputs_[allocating_[i]].request;
      if (request.is_adaptive()) request = choose_output(allocating_[i]);
    }
  }
  list_channel_requests();
  const FlitChannelRequest* const requests = channel_requests_.data();
  const std::size_t count = allocating_count_;
  const bool is_long = is_long_;
  bool is_changed = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (requests[i].mask == 0) continue;
    is_changed = true;
    if (is_long) {
      accept_long(requests[i], cycle);
    } else {
      hold(requests[i].input, choose(requests[i]));
    }
  }
  is_changed_ |= is_changed;
}

// What each asks for of what is free, and of that what it was granted. Pointers and numbers are copied out
// of the members: as the compiler sees it, any store may change those.
[[gnu::always_inline]] inline void FlitRouterBank::list_channel_requests() {
  const std::uint32_t channel_mask = channel_mask_;
  const bool is_cut_through = fabric_.is_cut_through;
  const FlitPlace* const places = allocating_.data();
  const std::size_t place_count = allocating_count_;
  const FlitStages* const stages = stages_.data();
  const FlitRouteUnit::Wanted* const wanted = routes_.wanted();
  const FlitInputChannel* const inputs = inputs_.data();
  FlitChannelRequest* const requests = channel_requests_.data();
  std::uint32_t* const contended = contended_.data();
  FlitPortChains::List asked = asked_channels_.begin_list();
  std::size_t contended_count = 0;
  for (std::uint32_t i = 0; i < place_count; ++i) {
    const FlitPlace place = places[i];
    const FlitRouteUnit::Wanted& want = wanted[inputs[place].request.index()];
    const FlitPlace port = (place & ~channel_mask) | want.first_channel;
    std::uint64_t mask = stages[std::size_t{port} / 64].free >> port % 64 & want.mask;
    if (is_cut_through) mask = with_room(place, port, mask);
    requests[i] = {place, port, mask};
    contended[contended_count] = i;
    contended_count += static_cast<std::size_t>(asked.add(i, (place & ~channel_mask) | want.first_wanted));
  }
  asked_channels_.end_list(place_count);
  for (std::size_t i = 0; i < contended_count; ++i) {
    const FlitPlace place = requests[contended[i]].input;
    const FlitRouteUnit::Wanted& want = wanted[inputs[place].request.index()];
    if (asked_channels_.ends_chain(contended[i], (place & ~channel_mask) | want.first_wanted)) {
      channel_arbiter_.grant(requests, asked_channels_, contended[i], &outputs_[requests[contended[i]].port]);
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

[[gnu::noinline]] void FlitRouterBank::accept_long(const FlitChannelRequest& request, FlitCycle cycle) {
  FlitLongStages& work = long_[request.input >> channel_bits_];
  work.channel_grants.push_back({request.input, choose(request)});
  work.channel_grants_done = cycle + fabric_.timing.vc_allocation_cycles - 1;
}

// VC allocation gave it: the input asks the switch from the next cycle on.
[[gnu::always_inline]] inline void FlitRouterBank::hold(FlitPlace input, FlitPlace output) {
  stages_of(output).free &= ~FlitStages::bit(output);
  FlitStages& stages = stages_of(input);
  const std::uint64_t bit = FlitStages::bit(input);
  stages.allocating &= ~bit;
  if (outputs_[output].credits != 0) stages.switching |= bit;
}

// Virtual cut-through: only channels with room for the whole packet.
[[gnu::noinline]] std::uint64_t FlitRouterBank::with_room(FlitPlace input, FlitPlace port,
                                                          std::uint64_t mask) const {
  const std::uint32_t flits = fabric_.routes[inputs_[input].front.packet()].flits;
  std::uint64_t result = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const std::uint32_t virtual_channel = lowest_bit(rest);
    if (outputs_[port + virtual_channel].credits >= flits) result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

[[gnu::noinline]] FlitRequest FlitRouterBank::choose_output(FlitPlace input) const {
  const std::uint32_t router = fabric_.router_of(input);
  const auto room = [&](std::uint32_t number, std::uint64_t mask) {
    const FlitPlace port = fabric_.place(router, number);
    std::uint64_t usable = mask & stages_of(port).free >> port % 64;
    if (fabric_.is_cut_through) usable = with_room(input, port, usable);
    std::int64_t most = -1;
    for (std::uint64_t rest = usable; rest != 0; rest &= rest - 1) {
      const std::uint32_t virtual_channel = lowest_bit(rest);
      most = std::max<std::int64_t>(most, outputs_[port + virtual_channel].credits);
    }
    return most;
  };
  const std::uint32_t packet = inputs_[input].front.packet();
  return routes_.most_room(router, fabric_.channel_of(input), packet, room).for_now();
}

// --- switch allocation
// ---------------------------------------------------------------------------------------

// Leaves the flits that may cross in crossings_.
[[gnu::noinline]] void FlitRouterBank::allocate_switch() {
  const std::uint32_t channel_mask = channel_mask_;
  const std::uint32_t virtual_channel_bits = virtual_channel_bits_;
  const FlitPlace* const places = switching_.data();
  const std::size_t place_count = switching_count_;
  const FlitInputChannel* const inputs = inputs_.data();
  FlitCrossing* const crossings = crossings_.data();
  // The list is in the order of places: those of an input port stand together.
  std::uint32_t* const contended_inputs = contended_inputs_.data();
  std::uint32_t* const contended_outputs = contended_.data();
  FlitPortChains::List asked = asked_outputs_.begin_list();
  std::size_t contended_input_count = 0;
  std::size_t contended_output_count = 0;
  std::uint32_t port_before = ~0U;
  for (std::uint32_t i = 0; i < place_count; ++i) {
    const FlitPlace input = places[i];
    const FlitPlace output = (input & ~channel_mask) | inputs[input].output;
    crossings[i] = {input, output};
    const std::uint32_t port = input >> virtual_channel_bits;
    contended_inputs[contended_input_count] = i;
    contended_input_count += static_cast<std::size_t>(port == std::exchange(port_before, port));
    contended_outputs[contended_output_count] = i;
    contended_output_count += static_cast<std::size_t>(asked.add(i, output >> virtual_channel_bits));
  }
  asked_outputs_.end_list(place_count);
  const FlitRouterPort* const ports = fabric_.port_table.data();
  for (std::size_t i = 0; i < contended_output_count; ++i) {
    const FlitPlace output = crossings[contended_outputs[i]].output;
    if (asked_outputs_.ends_chain(contended_outputs[i], output >> virtual_channel_bits)) {
      switch_arbiter_.grant(crossings, asked_outputs_, contended_outputs[i], ports);
    }
  }
  contended_inputs[contended_input_count] = 0;  // nobody stands before the first
  for (std::size_t i = 0; i < contended_input_count; ++i) {
    if (contended_inputs[i + 1] == contended_inputs[i] + 1) continue;  // there is one more of this port
    switch_arbiter_.accept(crossings, contended_inputs[i], ports);
  }
  std::size_t crossing_count = 0;  // those that lost are left out, without a branch that nobody can predict
  for (std::size_t i = 0; i < place_count; ++i) {
    const FlitCrossing crossing = crossings[i];
    crossings[crossing_count] = crossing;
    crossing_count += crossing.output != FlitCrossing::lost ? 1 : 0;
  }
  crossing_count_ = crossing_count;
}

// The pointers of a match move.
[[gnu::always_inline]] inline void FlitRouterBank::accept(const FlitCrossing& crossing) {
  const std::uint32_t input = port_index(crossing.input);
  const std::uint32_t output = port_index(crossing.output);
  FlitRouterPort* const ports = fabric_.port_table.data();
  ports[output].granted_input = input;
  ports[input].accepted_output = output;
  ports[input].served_channel = crossing.input;
}

// --- switch traversal
// ----------------------------------------------------------------------------------------

[[gnu::noinline]] void FlitRouterBank::cross_switch(FlitCycle cycle) {
  const FlitCrossing* const crossings = crossings_.data();
  const std::size_t count = crossing_count_;
  std::size_t followed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    accept(crossings[i]);
    traverse(crossings[i], cycle, followed);
  }
  bring_next(followed);
}

// The flit leaves its buffer, takes a credit of the next one, and gives its own back.
[[gnu::always_inline]] inline void FlitRouterBank::traverse(const FlitCrossing& crossing, FlitCycle cycle,
                                                            std::size_t& followed) {
  const FlitPlace place = crossing.input;
  FlitStages& stages = stages_of(place);
  const std::uint64_t bit = FlitStages::bit(place);
  FlitInputChannel& input = inputs_[place];
  const Flit flit = input.front;
  const std::uint32_t left = input.count - 1U;
  input.count = static_cast<std::uint16_t>(left);
  const std::uint32_t credits = --outputs_[crossing.output].credits;

  FlitRouterPort& out = fabric_.port_table[port_index(crossing.output)];
  const FlitRouterPort& in = fabric_.port_table[port_index(place)];
  out.use.count(flit, input.wire_bytes);
  FlitCycle arrives = cycle + out.wires.flit_delay;
  if (!is_plain_) arrives += note_crossing(crossing, flit, cycle);
  fabric_.flits_on_wires.push(arrives, out.wires.list, {out.across + crossing.output, flit});
  fabric_.credits_on_wires.push(cycle + in.wires.credit_delay, in.wires.list, {in.across + place});

  if (flit.is_tail()) stages_of(crossing.output).free |= FlitStages::bit(crossing.output);
  if (flit.is_tail() || left == 0 || credits == 0) stages.switching &= ~bit;
  followed_[followed] = place;
  followed += left != 0 ? 1 : 0;
}

// The buffers of which a flit went and that are not empty: the one behind it is the first now. They were
// listed, because whether a buffer is one of them cannot be predicted. A ring that is empty begins anew: few
// flits wait, and those in the first slots of all rings lie together.
[[gnu::always_inline]] inline void FlitRouterBank::bring_next(std::size_t followed) {
  for (std::size_t i = 0; i < followed; ++i) {
    const FlitPlace place = followed_[i];
    FlitInputChannel& input = inputs_[place];
    const bool was_tail = input.front.is_tail();
    input.front = flits_[input.next * inputs_.size() + place];
    const std::uint32_t next = input.next + 1U;
    input.next = static_cast<std::uint16_t>(input.count == 1 || next == buffer_flits_ ? 0 : next);
    if (was_tail) begin_header(place);
  }
}

// What only some networks ask of a crossing. Returns by how many cycles its flit comes later.
[[gnu::noinline]] FlitCycle FlitRouterBank::note_crossing(const FlitCrossing& crossing, Flit flit,
                                                          FlitCycle cycle) {
  const std::uint32_t port = port_index(crossing.output);
  const FlitPort& wires = fabric_.port_table[port].wires;
  if (flit.is_head()) {
    if (is_traced_) fabric_.trace_head(port, flit.packet());
    if (inputs_[crossing.input].request.is_adaptive())
      FlitFabric::note_port(wires, fabric_.routes[flit.packet()]);
  }
  if (has_intervals_) output_free_[port] = cycle + fabric_.flit_cycles[wires.speed];
  return is_long_ ? delay_crossing(crossing.output, cycle) : 0;
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
    throw std::invalid_argument("router.virtual_channels = " + std::to_string(fabric.virtual_channels) +
                                ": expected at most 64, and at most " + std::to_string(max_channels) +
                                " on the " + std::to_string(fabric.ports) +
                                " ports of a router (at most 64) for the flit engine");
  }
  return std::make_unique<FlitRouterBank>(fabric, routes);
}

}  // namespace apenet
