#include "network/flit_routers.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "network/flit_router_bank.hpp"

namespace apenet {

template <std::size_t Words>
FlitRouterBank<Words>::FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes)
    : fabric_(fabric),
      routes_(routes),
      is_long_(fabric.timing.routing_cycles > 1 || fabric.timing.vc_allocation_cycles > 1 ||
               fabric.timing.switch_allocation_cycles > 1 || fabric.timing.switch_traversal_cycles > 1),
      has_intervals_(fabric.flit_cycles.back() > 1),
      is_routed_at_once_(fabric.timing.routing_cycles == 0),
      buffer_flits_(fabric.timing.buffer_flits),
      virtual_channels_(fabric.virtual_channels),
      channel_bits_(fabric.channel_bits),
      allocating_((std::size_t{block_routers} << channel_bits_) + Bits::list_slack),
      switching_(allocating_.size()),
      channel_requests_(allocating_.size()),
      crossings_(allocating_.size()),
      contended_(allocating_.size() + 1),
      channel_arbiter_(channel_bits_, virtual_channels_),
      switch_arbiter_(channel_bits_, fabric.ports, virtual_channels_),
      active_((fabric.router_count + 63) / 64),
      stages_(fabric.router_count),
      inputs_(std::size_t{fabric.router_count} << fabric.channel_bits),
      outputs_(inputs_.size()),
      flits_(inputs_.size() * fabric.timing.buffer_flits) {
  const auto last_port = static_cast<std::uint16_t>(fabric.ports - 1);
  const auto last_virtual_channel = static_cast<std::uint16_t>(fabric.virtual_channels - 1);
  const auto last_channel = static_cast<std::uint16_t>(fabric.channels - 1);
  for (std::size_t i = 0; i < fabric.port_table.size(); ++i) {
    FlitRouterPort& port = fabric.port_table[i];
    port.across = port.wires.far_end - static_cast<std::uint32_t>(i % fabric.ports) * virtual_channels_;
    port.granted_input = last_port;
    port.accepted_output = last_port;
    port.served_channel = last_virtual_channel;
  }
  for (FlitInputChannel& input : inputs_) input.output = last_channel;
  for (FlitOutputChannel& output : outputs_)
    output = {static_cast<std::uint16_t>(buffer_flits_), last_channel};
  for (FlitStages<Words>& stages : stages_) {
    for (std::uint32_t channel = 0; channel < fabric.channels; ++channel) stages.free.set(channel);
  }
  for (std::uint32_t channel = 0; channel < fabric.channels; ++channel) {
    numbers_.push_back({static_cast<std::uint8_t>(channel / fabric.virtual_channels),
                        static_cast<std::uint8_t>(channel % fabric.virtual_channels)});
  }
  if (has_intervals_) output_free_.resize(fabric.port_table.size());
  if (is_long_) {
    long_.resize(fabric.router_count);
    crossing_done_.resize(fabric.router_count, -1);
    last_sent_.resize(fabric.port_table.size(), -1);
  }
}

template <std::size_t Words>
void FlitRouterBank<Words>::tick(FlitCycle cycle) {
  is_traced_ = fabric_.simulation.is_traced();
  is_plain_ = !is_traced_ && !has_adaptive_ && !is_long_ && !has_intervals_;
  fabric_.flits_to(FlitPort::Kind::link)
      .take(
          cycle,
          [this](const FlitArrival& arrival) {
            __builtin_prefetch(&fabric_.routes[arrival.flit.packet()], 1);
          },
          [this](const FlitArrival& arrival) { write_buffer(arrival); });
  fabric_.credits_to(FlitPort::Kind::link).take(cycle, [this](FlitPlace place) { take_credit(place); });
  for (std::uint32_t block = 0; block < active_.size(); ++block) {
    if (active_[block] == 0) continue;
    list_requests(block, cycle);
    allocate_channels(block);
    allocate_switch();
    if (is_long_) {
      keep_crossings();
      for (const std::uint32_t router : long_routers_) finish_long(router, cycle);
    } else {
      cross_switch(cycle);
    }
  }
}

// --- buffer write
// --------------------------------------------------------------------------------------------

template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::write_buffer(const FlitArrival& arrival) {
  FlitInputChannel& input = inputs_[arrival.place];
  const std::uint32_t number = fabric_.router_of(arrival.place);
  const std::uint32_t channel = fabric_.channel_of(arrival.place);
  APENET_CHECK(input.count < buffer_flits_, "router %u, channel %u: a flit without a credit", number,
               channel);
  if (input.count++ != 0) {  // those before it first
    std::uint32_t slot = input.next + input.count - 2U;
    if (slot >= buffer_flits_) slot -= buffer_flits_;
    flits_[std::size_t{arrival.place} * buffer_flits_ + slot] = arrival.flit;
    return;
  }
  input.front = arrival.flit;
  activate(number);
  if (arrival.flit.is_head()) {
    begin_header(number, channel);
  } else {
    stages_[number].switching.set(channel);
  }
}

// A header has become the first flit of its buffer. Its route is computed at once, though the stage may end
// later: the answer is a function of router, input and packet alone. An adaptive routing's choice is not, and
// is left to VC allocation.
template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::begin_header(std::uint32_t router,
                                                                       std::uint32_t channel) {
  FlitInputChannel& input = inputs_[first_channel(router) | channel];
  const std::uint32_t packet = input.front.packet();
  FlitPacketRoute& route = fabric_.routes[packet];
  input.wire_bytes = route.wire_bytes;
  const FlitRequest request = routes_.request(router, channel, packet);
  input.request = request;
  if (request.is_adaptive()) [[unlikely]] {
    has_adaptive_ = true;
  } else {
    fabric_.count_hop(fabric_.port(router, request.port()), route);
  }
  FlitStages<Words>& stages = stages_[router];
  (is_routed_at_once_ ? stages.allocating : stages.routing).set(channel);
}

// Behind a tail: seldom.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::begin_next_header(std::uint32_t router, std::uint32_t channel) {
  begin_header(router, channel);
}

template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::take_credit(FlitPlace place) {
  FlitOutputChannel& output = outputs_[place];
  if (output.credits++ == 0) {
    const std::uint32_t router = fabric_.router_of(place);
    FlitStages<Words>& stages = stages_[router];
    if (!stages.free.test(fabric_.channel_of(place))) stages.credited.set(output.last_granted);
    activate(router);
  } else if (fabric_.is_cut_through) {
    activate(fabric_.router_of(place));
  }
}

// --- what is asked for
// ---------------------------------------------------------------------------------------

template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::list_requests(std::uint32_t block, FlitCycle cycle) {
  const bool is_long = is_long_;
  const bool has_intervals = has_intervals_;
  const std::uint32_t channel_bits = channel_bits_;
  FlitPlace* const allocating = allocating_.data();
  FlitPlace* const switching = switching_.data();
  std::size_t allocating_count = 0;
  std::size_t switching_count = 0;
  FlitStages<Words>* const all_stages = stages_.data();
  long_routers_.clear();
  std::uint64_t changes =
      0;  // routers with a register that this cycle changes: one that asks the switch is served
  for (std::uint64_t rest = std::exchange(active_[block], 0); rest != 0; rest &= rest - 1) {
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t router = block * block_routers + bit;
    FlitStages<Words>& stages = all_stages[router];
    Bits asks_channel = stages.allocating;
    Bits asks_switch = stages.switching;
    if (is_long) begin_long(router, cycle, asks_channel, asks_switch);
    asks_switch.keep(stages.credited);
    if (has_intervals) drop_delayed(router, cycle, asks_switch);
    if (!is_long) {
      Bits changing = stages.routing;
      changing.add(asks_switch);
      changes |= static_cast<std::uint64_t>(changing.any()) << bit;
      stages.allocating.add(stages.routing);
      stages.routing = {};
    }
    const FlitPlace first = router << channel_bits;
    allocating_count = asks_channel.list(first, allocating, allocating_count);
    switching_count = asks_switch.list(first, switching, switching_count);
  }
  allocating_count_ = allocating_count;
  switching_count_ = switching_count;
  active_[block] |= changes;
}

// Those whose link is still busy with the flit before when the switch would grant: they ask in a later cycle.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::drop_delayed(std::uint32_t router, FlitCycle cycle,
                                                           Bits& switching) {
  const FlitCycle granted = cycle + fabric_.timing.switch_allocation_cycles - 1;
  Bits(switching).for_each([&](std::uint32_t channel) {
    const std::uint32_t port = inputs_[router << channel_bits_ | channel].request.port();
    if (output_free_[std::size_t{router} * fabric_.ports + port] <= granted) return;
    switching.reset(channel);
    activate(router);
  });
}

// A stage that is at work is not asked.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::begin_long(std::uint32_t router, FlitCycle cycle,
                                                         Bits& allocating, Bits& switching) {
  FlitLongStages<Words>& work = long_[router];
  const FlitTiming& timing = fabric_.timing;
  long_routers_.push_back(router);
  if (!work.routing.any()) {
    work.routing = std::exchange(stages_[router].routing, {});
    work.routing_done = cycle + timing.routing_cycles - 1;
  }
  if (work.channel_grants.empty()) {
    work.channel_grants_done = cycle + timing.vc_allocation_cycles - 1;
  } else {
    allocating = {};
  }
  if (work.crossings.empty()) {
    work.crossings_done = cycle + timing.switch_allocation_cycles - 1;
  } else {
    switching = {};
  }
}

template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::keep_crossings() {
  for (std::size_t i = 0; i < switching_count_; ++i) {
    const FlitCrossing& crossing = crossings_[i];
    if (crossing.output_port == FlitSwitchArbiter::lost) continue;
    accept(crossing, fabric_.channel_of(crossing.input));
    long_[fabric_.router_of(crossing.input)].crossings.push_back(crossing);
  }
}

// Where somebody asks somebody is served, so that a router without a stage at work changes nothing.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::finish_long(std::uint32_t router, FlitCycle cycle) {
  FlitStages<Words>& stages = stages_[router];
  FlitLongStages<Words>& work = long_[router];
  if (!work.is_busy()) return;
  activate(router);
  if (work.routing_done == cycle) stages.allocating.add(std::exchange(work.routing, {}));
  if (work.channel_grants_done == cycle) {
    for (const FlitChannelGrant& grant : work.channel_grants) {
      stages.allocating.reset(grant.input);
      hold(router, grant.input, grant.output);
    }
    work.channel_grants.clear();
  }
  if (work.crossings_done == cycle) {
    for (const FlitCrossing& crossing : work.crossings) traverse(crossing, cycle);
    work.crossings.clear();
  }
}

// --- VC allocation
// -------------------------------------------------------------------------------------------

// Pointers and numbers are copied out of the members: as the compiler sees it, any store may change those.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::allocate_channels(std::uint32_t block) {
  const std::uint32_t channel_bits = channel_bits_;
  const std::uint32_t virtual_channels = virtual_channels_;
  const bool is_cut_through = fabric_.is_cut_through;
  const FlitPlace* const places = allocating_.data();
  const std::size_t place_count = allocating_count_;
  const FlitStages<Words>* const stages = stages_.data();
  const std::uint64_t* const masks = routes_.masks();
  FlitInputChannel* const inputs = inputs_.data();
  FlitChannelRequest* const requests = channel_requests_.data();
  FlitContention contention(contended_.data());
  if (has_adaptive_) {
    for (std::size_t i = 0; i < place_count; ++i) {
      FlitRequest& request = inputs[places[i]].request;
      if (request.is_adaptive()) request = choose_output(places[i]);
    }
  }
  std::size_t count = 0;
  std::uint64_t changes = 0;  // as in list_requests
  for (std::size_t i = 0; i < place_count; ++i) {
    const FlitPlace place = places[i];
    const std::uint32_t router = place >> channel_bits;
    const FlitRequest request = inputs[place].request;
    std::uint64_t mask =
        masks[request.set()] & stages[router].free.field(request.port() * virtual_channels, virtual_channels);
    if (is_cut_through) mask = with_room(place, request.port(), mask);
    const std::uint64_t asks = mask != 0 ? 1 : 0;
    requests[count] = {place, request.port(), mask};
    contention.note(static_cast<std::uint32_t>(count), router, 0, asks << request.port());
    changes |= asks << router % block_routers;  // one of the router's is served
    count += asks;
  }
  active_[block] |= changes;
  contention.for_each(
      [&](std::uint32_t one) { channel_arbiter_.grant(requests, count, one, outputs_.data()); });
  if (is_long_) {
    for (std::size_t i = 0; i < count; ++i) {
      if (requests[i].mask != 0) accept_long(requests[i]);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      if (requests[i].mask != 0) accept(requests[i]);
    }
  }
}

// Of the virtual channels that the input was granted, the next one. Returns the router's number of it.
template <std::size_t Words>
[[gnu::always_inline]] inline std::uint32_t FlitRouterBank<Words>::choose(const FlitChannelRequest& request) {
  FlitInputChannel& input = inputs_[request.input];
  const std::uint32_t base = request.port * virtual_channels_;
  // Below the port's first it is a large number, and then, or beyond its last, there is nothing behind it.
  const std::uint32_t last = std::min(input.output - base, 63U);
  const std::uint32_t output = base + first_behind(request.mask, last);
  input.output = static_cast<std::uint16_t>(output);
  const std::uint32_t router = request.input >> channel_bits_;
  const FlitPlace first = router << channel_bits_;
  outputs_[first | output].last_granted = static_cast<std::uint16_t>(request.input ^ first);
  return output;
}

template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::accept(const FlitChannelRequest& request) {
  const std::uint32_t output = choose(request);
  const std::uint32_t router = request.input >> channel_bits_;
  const std::uint32_t channel = request.input ^ router << channel_bits_;
  stages_[router].allocating.reset(channel);
  hold(router, channel, output);
}

template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::accept_long(const FlitChannelRequest& request) {
  const std::uint32_t output = choose(request);
  long_[request.input >> channel_bits_].channel_grants.push_back(
      {static_cast<std::uint16_t>(fabric_.channel_of(request.input)), static_cast<std::uint16_t>(output)});
}

// VC allocation gave it: the input asks the switch from the next cycle on.
template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::hold(std::uint32_t router, std::uint32_t input,
                                                               std::uint32_t output) {
  FlitStages<Words>& stages = stages_[router];
  stages.free.reset(output);
  stages.switching.set(input);
  stages.credited.set(input);
  if (outputs_[first_channel(router) | output].credits == 0) stages.credited.reset(input);
}

// Virtual cut-through: only channels with room for the whole packet.
template <std::size_t Words>
[[gnu::noinline]] std::uint64_t FlitRouterBank<Words>::with_room(FlitPlace input, std::uint32_t port,
                                                                 std::uint64_t mask) const {
  const std::uint32_t flits = fabric_.routes[inputs_[input].front.packet()].flits;
  const FlitOutputChannel* const outputs =
      &outputs_[first_channel(input >> channel_bits_) + port * virtual_channels_];
  std::uint64_t result = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto virtual_channel = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (outputs[virtual_channel].credits >= flits) result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

template <std::size_t Words>
[[gnu::noinline]] FlitRequest FlitRouterBank<Words>::choose_output(FlitPlace input) const {
  const std::uint32_t router = fabric_.router_of(input);
  const auto room = [&](std::uint32_t port, std::uint64_t mask) {
    const std::uint32_t base = port * virtual_channels_;
    std::uint64_t usable = mask & stages_[router].free.field(base, virtual_channels_);
    if (fabric_.is_cut_through) usable = with_room(input, port, usable);
    std::int64_t most = -1;
    for (std::uint64_t rest = usable; rest != 0; rest &= rest - 1) {
      const auto virtual_channel = static_cast<std::uint32_t>(std::countr_zero(rest));
      most = std::max<std::int64_t>(most, outputs_[first_channel(router) + base + virtual_channel].credits);
    }
    return most;
  };
  const std::uint32_t packet = inputs_[input].front.packet();
  return routes_.most_room(router, fabric_.channel_of(input), packet, room).for_now();
}

// --- switch allocation
// ---------------------------------------------------------------------------------------

// Leaves the flits that may cross in crossings_, among those that lost.
template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::allocate_switch() {
  const std::uint32_t channel_bits = channel_bits_;
  const std::uint32_t port_count = fabric_.ports;
  const FlitPlace* const places = switching_.data();
  const std::size_t place_count = switching_count_;
  const FlitInputChannel* const inputs = inputs_.data();
  const FlitChannelNumber* const numbers = numbers_.data();
  FlitRouterPort* const ports = fabric_.port_table.data();
  FlitCrossing* const crossings = crossings_.data();
  FlitContention contention(contended_.data());
  for (std::size_t i = 0; i < place_count; ++i) {
    const FlitPlace place = places[i];
    const std::uint32_t router = place >> channel_bits;
    const std::uint32_t input = numbers[place ^ router << channel_bits].port;
    const std::uint32_t output = inputs[place].request.port();
    const std::uint32_t first_port = router * port_count;
    crossings[i] = {place, static_cast<std::uint16_t>(input), static_cast<std::uint16_t>(output),
                    first_port + input, first_port + output};
    contention.note(static_cast<std::uint32_t>(i), router, std::uint64_t{1} << input,
                    std::uint64_t{1} << output);
  }
  std::uint32_t done = ~0U;
  contention.for_each([&](std::uint32_t one) {
    const std::uint32_t first_port = crossings[one].input_index - crossings[one].input_port;
    if (first_port == done) return;
    done = first_port;
    switch_arbiter_.arbitrate(crossings, place_count, one, &ports[first_port]);
  });
}

// The pointers of a match move.
template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::accept(const FlitCrossing& crossing,
                                                                 std::uint32_t channel) {
  FlitRouterPort& input = fabric_.port_table[crossing.input_index];
  fabric_.port_table[crossing.output_index].granted_input = crossing.input_port;
  input.accepted_output = crossing.output_port;
  input.served_channel = numbers_[channel].virtual_channel;
}

// --- switch traversal
// ----------------------------------------------------------------------------------------

template <std::size_t Words>
[[gnu::noinline]] void FlitRouterBank<Words>::cross_switch(FlitCycle cycle) {
  for (std::size_t i = 0; i < switching_count_; ++i) {
    const FlitCrossing& crossing = crossings_[i];
    if (crossing.output_port == FlitSwitchArbiter::lost) continue;
    accept(crossing, fabric_.channel_of(crossing.input));
    traverse(crossing, cycle);
  }
}

// The flit leaves its buffer, takes a credit of the next one, and gives its own back.
template <std::size_t Words>
[[gnu::always_inline]] inline void FlitRouterBank<Words>::traverse(const FlitCrossing& crossing,
                                                                   FlitCycle cycle) {
  const std::uint32_t router = crossing.input >> channel_bits_;
  const FlitPlace first = router << channel_bits_;
  const std::uint32_t channel = crossing.input ^ first;
  FlitStages<Words>& stages = stages_[router];
  FlitInputChannel& input = inputs_[crossing.input];
  const Flit flit = input.front;
  const std::uint32_t output = input.output;
  const std::uint32_t left = input.count - 1U;
  input.count = static_cast<std::uint16_t>(left);
  if (left != 0) {
    input.front = flits_[std::size_t{crossing.input} * buffer_flits_ + input.next];
    if (++input.next == buffer_flits_) input.next = 0;
  }
  if (--outputs_[first | output].credits == 0) stages.credited.reset(channel);

  FlitRouterPort& out = fabric_.port_table[crossing.output_index];
  out.use.count(flit, input.wire_bytes);
  FlitCycle arrives = cycle + out.wires.flit_delay;
  if (!is_plain_) arrives += note_crossing(crossing, flit, cycle);
  fabric_.flits_to(out.wires.kind).push(arrives, {out.across + output, flit});
  const FlitRouterPort& in = fabric_.port_table[crossing.input_index];
  fabric_.credits_to(in.wires.kind).push(cycle + in.wires.credit_delay, in.across + channel);

  if (flit.is_tail()) stages.free.set(output);
  if (flit.is_tail() || left == 0) stages.switching.reset(channel);
  if (flit.is_tail() && left != 0) begin_next_header(router, channel);
}

// What only some networks ask of a crossing. Returns by how many cycles its flit comes later.
template <std::size_t Words>
[[gnu::noinline]] FlitCycle FlitRouterBank<Words>::note_crossing(const FlitCrossing& crossing, Flit flit,
                                                                 FlitCycle cycle) {
  const FlitPort& wires = fabric_.port_table[crossing.output_index].wires;
  if (flit.is_head()) {
    if (is_traced_) fabric_.trace_head(crossing.output_index, flit.packet());
    if (inputs_[crossing.input].request.is_adaptive())
      fabric_.count_hop(wires, fabric_.routes[flit.packet()]);
  }
  if (has_intervals_) output_free_[crossing.output_index] = cycle + fabric_.flit_cycles[wires.speed];
  return is_long_ ? cross(fabric_.router_of(crossing.input), crossing.output_port, cycle) : 0;
}

// How many cycles later than alone a flit granted in this cycle is on the wire, where a traversal takes
// several: the switch moves one set of flits at a time, and those of one output leave one after the other.
template <std::size_t Words>
FlitCycle FlitRouterBank<Words>::cross(std::uint32_t router, std::uint32_t output_port, FlitCycle cycle) {
  const FlitCycle length = fabric_.timing.switch_traversal_cycles;
  FlitCycle& done = crossing_done_[router];
  const FlitCycle began = done - length + 1;
  if (cycle >= began) done = std::max(cycle, done) + length;
  const std::size_t index = std::size_t{router} * fabric_.ports + output_port;
  const FlitCycle interval = fabric_.flit_cycles[fabric_.port_table[index].wires.speed];
  const FlitCycle sent = last_sent_[index] < 0 ? done : std::max(done, last_sent_[index] + interval);
  last_sent_[index] = sent;
  return sent - (cycle + length);
}

std::unique_ptr<FlitRouters> make_flit_routers(FlitFabric& fabric, const FlitRouteUnit& routes) {
  constexpr std::uint32_t max_channels = 512;
  if (fabric.channels > max_channels || fabric.ports > 64 || fabric.virtual_channels > 64) {
    throw std::invalid_argument("router.virtual_channels = " + std::to_string(fabric.virtual_channels) +
                                ": expected at most 64, and at most " + std::to_string(max_channels) +
                                " on the " + std::to_string(fabric.ports) +
                                " ports of a router (at most 64) for the flit engine");
  }
  if (fabric.channels <= 64) return std::make_unique<FlitRouterBank<1>>(fabric, routes);
  if (fabric.channels <= 128) return std::make_unique<FlitRouterBank<2>>(fabric, routes);
  if (fabric.channels <= 256) return std::make_unique<FlitRouterBank<4>>(fabric, routes);
  return std::make_unique<FlitRouterBank<8>>(fabric, routes);
}

}  // namespace apenet
