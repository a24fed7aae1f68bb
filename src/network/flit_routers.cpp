#include "network/flit_routers.hpp"

#include <stdexcept>
#include <string>

#include "kernel/check.hpp"
#include "network/flit_allocators.hpp"
#include "network/flit_pipeline.hpp"

namespace apenet {

namespace {

// Flat arrays by router and number within it, and one visit a cycle for a router in which anything can
// happen: 512 routers of 28 virtual channels are half a megabyte, and what a visit touches are a dozen lines
// of it. One visit evaluates and updates a router: what it sends is read in later cycles only (DelayLine),
// so that the order of visits cannot matter.
//
// A router is at rest, and costs nothing, when a visit changed none of its registers: until a flit or a
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

  void prepare(const FlitArrival& arrival) const;
  void prepare(std::uint32_t router) const;
  void write_buffer(const FlitArrival& arrival);
  void take_credit(const FlitPlace& place);
  [[nodiscard]] bool visit(std::uint32_t router, FlitCycle cycle);
  [[nodiscard]] bool visit_long(std::uint32_t router, FlitCycle cycle);
  void begin_header(std::uint32_t router, std::uint32_t channel);
  void compute_route(std::uint32_t router, std::uint32_t channel);
  template <typename Accept>
  void allocate_channels(std::uint32_t router, const Bits& channels, Accept accept);
  template <typename Accept>
  void allocate_switch(std::uint32_t router, FlitCycle cycle, const Bits& channels, Accept accept);
  [[nodiscard]] FlitRequest choose_output(std::uint32_t router, std::uint32_t channel) const;
  [[nodiscard]] std::uint64_t with_room(std::uint32_t router, std::uint32_t channel, std::uint32_t port,
                                        std::uint64_t mask) const;
  void traverse(std::uint32_t router, FlitCycle cycle, std::uint32_t input_port, std::uint32_t output_port,
                std::uint32_t virtual_channel);
  [[nodiscard]] FlitCycle cross(std::uint32_t router, std::uint32_t output_port, FlitCycle cycle);

  [[nodiscard]] std::size_t first_channel(std::uint32_t router) const {
    return std::size_t{router} * fabric_.channels;
  }
  [[nodiscard]] Flit front(std::uint32_t router, std::uint32_t channel) const {
    return inputs_[first_channel(router) + channel].front;
  }
  void activate(std::uint32_t router) { active_[router / 64] |= std::uint64_t{1} << router % 64; }

  FlitFabric& fabric_;
  const FlitRouteUnit& routes_;
  bool is_long_;        // some stage takes more than one cycle
  bool has_intervals_;  // some link takes more than one cycle a flit
  FlitChannelAllocator<Words> channel_allocator_;
  FlitSwitchAllocator switch_allocator_;
  bool has_delayed_ = false;  // a request waits for a link's interval to end

  std::vector<std::uint64_t> active_;        // a bit each router
  std::vector<FlitStages<Words>> stages_;    // per router
  std::vector<FlitInputChannel> inputs_;     // per router and virtual channel
  std::vector<Flit> flits_;                  // behind the first: rings of buffer_flits, as inputs_
  std::vector<std::uint16_t> credits_;       // per router and output virtual channel
  std::vector<std::uint16_t> last_granted_;  // the same: grant pointers of VC allocation
  std::vector<FlitPortArbiters> arbiters_;   // per router and port
  std::vector<FlitCycle> output_free_;       // the same: first cycle of the next grant; has_intervals_
  std::vector<FlitLongStages<Words>> long_;  // per router; is_long_
  std::vector<FlitCycle> crossing_done_;     // per router: end of the switch's last traversal; is_long_
  std::vector<FlitCycle> last_sent_;         // per router and port: by the output queue; is_long_
  struct Channel {
    std::uint8_t port = 0;
    std::uint8_t virtual_channel = 0;
  };
  std::vector<Channel> numbers_;  // per virtual channel of a router
};

template <std::size_t Words>
FlitRouterBank<Words>::FlitRouterBank(FlitFabric& fabric, const FlitRouteUnit& routes)
    : fabric_(fabric),
      routes_(routes),
      is_long_(fabric.timing.routing_cycles > 1 || fabric.timing.vc_allocation_cycles > 1 ||
               fabric.timing.switch_allocation_cycles > 1 || fabric.timing.switch_traversal_cycles > 1),
      has_intervals_(fabric.flit_cycles.back() > 1),
      channel_allocator_(fabric.channels, fabric.virtual_channels),
      switch_allocator_(fabric.ports, fabric.virtual_channels),
      active_((fabric.router_count + 63) / 64),
      stages_(fabric.router_count),
      inputs_(first_channel(fabric.router_count)),
      flits_(inputs_.size() * fabric.timing.buffer_flits),
      credits_(inputs_.size(), static_cast<std::uint16_t>(fabric.timing.buffer_flits)),
      last_granted_(inputs_.size(), static_cast<std::uint16_t>(fabric.channels - 1)),
      arbiters_(fabric.port_table.size()) {
  const auto last_port = static_cast<std::uint16_t>(fabric.ports - 1);
  const auto last_channel = static_cast<std::uint16_t>(fabric.virtual_channels - 1);
  for (FlitPortArbiters& arbiter : arbiters_) arbiter = {last_port, last_port, last_channel};
  for (FlitInputChannel& input : inputs_) input.output = static_cast<std::uint16_t>(fabric.channels - 1);
  for (FlitStages<Words>& stages : stages_) {
    for (std::uint32_t channel = 0; channel < fabric.channels; ++channel) {
      stages.free.set(channel);
      stages.has_credit.set(channel);
    }
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
  fabric_.arrivals.take(
      cycle, [this](const FlitArrival& arrival) { prepare(arrival); },
      [this](const FlitArrival& arrival) { write_buffer(arrival); });
  fabric_.credits.take(
      cycle,
      [this](const FlitPlace& place) {
        __builtin_prefetch(&credits_[first_channel(place.router) + place.channel], 1);
      },
      [this](const FlitPlace& place) { take_credit(place); });
  for (std::size_t i = 0; i < active_.size(); ++i) {
    std::uint64_t stays = 0;
    for (std::uint64_t rest = active_[i]; rest != 0; rest &= rest - 1) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(rest));
      const auto router = static_cast<std::uint32_t>(i * 64) + bit;
      has_delayed_ = false;
      prepare(router + 1 == fabric_.router_count ? router : router + 1);
      const bool has_changed = is_long_ ? visit_long(router, cycle) : visit(router, cycle);
      stays |= static_cast<std::uint64_t>(has_changed || has_delayed_) << bit;
    }
    active_[i] = stays;
  }
}

// --- buffer write
// --------------------------------------------------------------------------------------------

// The state of all routers does not fit the first cache.
template <std::size_t Words>
void FlitRouterBank<Words>::prepare(const FlitArrival& arrival) const {
  const std::size_t index = first_channel(arrival.place.router) + arrival.place.channel;
  __builtin_prefetch(&inputs_[index], 1);
  __builtin_prefetch(&stages_[arrival.place.router], 1);
  if (arrival.flit.is_head()) __builtin_prefetch(&fabric_.routes[arrival.flit.packet()], 1);
}

// The next one to be visited, in a network under load.
template <std::size_t Words>
void FlitRouterBank<Words>::prepare(std::uint32_t router) const {
  const auto ask = [](const auto& array, std::size_t first, std::size_t count) {
    constexpr std::size_t line = 64;
    const char* const begin = reinterpret_cast<const char*>(array.data() + first);
    for (std::size_t byte = 0; byte < count * sizeof array[0]; byte += line) __builtin_prefetch(begin + byte);
  };
  const std::size_t first_port = std::size_t{router} * fabric_.ports;
  ask(inputs_, first_channel(router), fabric_.channels);
  ask(credits_, first_channel(router), fabric_.channels);
  ask(last_granted_, first_channel(router), fabric_.channels);
  ask(arbiters_, first_port, fabric_.ports);
  ask(fabric_.port_table, first_port, fabric_.ports);
  ask(fabric_.link_use, first_port, fabric_.ports);
}

template <std::size_t Words>
void FlitRouterBank<Words>::write_buffer(const FlitArrival& arrival) {
  const std::uint32_t router = arrival.place.router;
  const std::uint32_t channel = arrival.place.channel;
  const std::size_t index = first_channel(router) + channel;
  FlitInputChannel& input = inputs_[index];
  const std::uint32_t buffer_flits = fabric_.timing.buffer_flits;
  APENET_CHECK(input.count < buffer_flits, "router %u, channel %u: a flit without a credit", router, channel);
  if (input.count++ != 0) {  // those before it first
    std::uint32_t slot = input.next + input.count - 2U;
    if (slot >= buffer_flits) slot -= buffer_flits;
    flits_[index * buffer_flits + slot] = arrival.flit;
    return;
  }
  input.front = arrival.flit;
  activate(router);
  if (arrival.flit.is_head()) {
    begin_header(router, channel);
  } else {
    stages_[router].switching.set(channel);
  }
}

// A header has become the first flit of its buffer.
template <std::size_t Words>
void FlitRouterBank<Words>::begin_header(std::uint32_t router, std::uint32_t channel) {
  FlitStages<Words>& stages = stages_[router];
  compute_route(router, channel);
  if (fabric_.timing.routing_cycles > 0) {
    stages.routing.set(channel);
    return;
  }
  stages.allocating.set(channel);
}

template <std::size_t Words>
void FlitRouterBank<Words>::take_credit(const FlitPlace& place) {
  std::uint16_t& credits = credits_[first_channel(place.router) + place.channel];
  if (credits++ == 0) {
    stages_[place.router].has_credit.set(place.channel);
    activate(place.router);
  } else if (fabric_.is_cut_through) {
    activate(place.router);
  }
}

// --- one cycle
// -----------------------------------------------------------------------------------------------

// Evaluate with the registers as they stand, then update: VC allocation before the switch, because channels
// that a tail sets free in this cycle are free in the next one; routes last, for the same reason.
template <std::size_t Words>
bool FlitRouterBank<Words>::visit(std::uint32_t router, FlitCycle cycle) {
  FlitStages<Words>& stages = stages_[router];
  const Bits routing = stages.routing;
  bool has_changed = routing.any();
  Bits granted;
  if (stages.allocating.any()) {
    allocate_channels(router, stages.allocating, [&](std::uint32_t input, std::uint32_t output) {
      granted.set(input);
      stages.free.reset(output);
    });
    stages.allocating.remove(granted);
    has_changed |= granted.any();
  }
  if (stages.switching.any()) {
    allocate_switch(router, cycle, stages.switching,
                    [&](std::uint32_t input, std::uint32_t output, std::uint32_t channel) {
                      traverse(router, cycle, input, output, channel);
                      has_changed = true;
                    });
  }
  stages.switching.add(granted);
  stages.routing.remove(routing);
  stages.allocating.add(routing);
  return has_changed;
}

template <std::size_t Words>
bool FlitRouterBank<Words>::visit_long(std::uint32_t router, FlitCycle cycle) {
  FlitStages<Words>& stages = stages_[router];
  FlitLongStages<Words>& work = long_[router];
  const FlitTiming& timing = fabric_.timing;
  if (!work.routing.is_busy() && stages.routing.any()) {
    work.routing = {stages.routing, cycle + timing.routing_cycles - 1};
    stages.routing = {};
  }
  bool has_granted = false;
  if (!work.allocating.is_busy() && stages.allocating.any()) {
    work.channel_grants.clear();
    allocate_channels(router, stages.allocating, [&](std::uint32_t input, std::uint32_t output) {
      work.channel_grants.push_back({static_cast<std::uint16_t>(input), static_cast<std::uint16_t>(output)});
    });
    work.allocating = {stages.allocating, cycle + timing.vc_allocation_cycles - 1};
    stages.allocating = {};
  }
  if (!work.switching.is_busy() && stages.switching.any()) {
    work.switch_grants.clear();
    allocate_switch(
        router, cycle, stages.switching,
        [&](std::uint32_t input, std::uint32_t output, std::uint32_t channel) {
          work.switch_grants.push_back({static_cast<std::uint8_t>(input), static_cast<std::uint8_t>(output),
                                        static_cast<std::uint8_t>(channel)});
        });
    work.switching = {stages.switching, cycle + timing.switch_allocation_cycles - 1};
    stages.switching = {};
  }

  if (work.routing.is_busy() && work.routing.done == cycle) {
    stages.allocating.add(work.routing.channels);
    work.routing.channels = {};
    has_granted = true;
  }
  if (work.allocating.is_busy() && work.allocating.done == cycle) {
    for (const FlitChannelGrant& grant : work.channel_grants) {
      if (!stages.free.test(grant.output)) continue;  // taken meanwhile, by a grant of an earlier set
      stages.free.reset(grant.output);
      stages.switching.set(grant.input);
      work.allocating.channels.reset(grant.input);
      has_granted = true;
    }
    stages.allocating.add(work.allocating.channels);
    work.allocating.channels = {};
  }
  if (work.switching.is_busy() && work.switching.done == cycle) {
    stages.switching.add(work.switching.channels);
    work.switching.channels = {};
    for (const FlitSwitchGrant& grant : work.switch_grants) {
      traverse(router, cycle, grant.input_port, grant.output_port, grant.virtual_channel);
      has_granted = true;
    }
  }
  return has_granted || work.routing.is_busy() || work.allocating.is_busy() || work.switching.is_busy();
}

// --- route computation
// ---------------------------------------------------------------------------------------

// At once when the header is first, though its stage may end later: the answer is a function of router, input
// and packet alone. An adaptive routing's choice is not, and is left to VC allocation.
template <std::size_t Words>
void FlitRouterBank<Words>::compute_route(std::uint32_t router, std::uint32_t channel) {
  FlitInputChannel& input = inputs_[first_channel(router) + channel];
  const std::uint32_t packet = front(router, channel).packet();
  FlitPacketRoute& route = fabric_.routes[packet];
  input.wire_bytes = route.wire_bytes;
  input.request = routes_.request(router, channel, packet);
  if (input.request.set == FlitRouteUnit::adaptive_set) return;
  fabric_.count_hop(std::size_t{router} * fabric_.ports + input.request.port,
                    fabric_.is_local(router, input.request.port), route);
}

// --- VC allocation
// -------------------------------------------------------------------------------------------

template <std::size_t Words>
template <typename Accept>
void FlitRouterBank<Words>::allocate_channels(std::uint32_t router, const Bits& channels, Accept accept) {
  const std::size_t base = first_channel(router);
  const Bits& free = stages_[router].free;
  const std::uint32_t virtual_channels = fabric_.virtual_channels;
  channels.for_each([&](std::uint32_t channel) {
    FlitRequest request = inputs_[base + channel].request;
    if (request.set == FlitRouteUnit::adaptive_set) request = choose_output(router, channel);
    std::uint64_t mask =
        routes_.mask(request) & free.field(request.port * virtual_channels, virtual_channels);
    if (fabric_.is_cut_through) mask = with_room(router, channel, request.port, mask);
    if (mask != 0) channel_allocator_.request(channel, request.port, mask);
  });
  channel_allocator_.allocate(&inputs_[base], &last_granted_[base], accept);
}

// Virtual cut-through: only channels with room for the whole packet.
template <std::size_t Words>
std::uint64_t FlitRouterBank<Words>::with_room(std::uint32_t router, std::uint32_t channel,
                                               std::uint32_t port, std::uint64_t mask) const {
  const std::uint32_t flits = fabric_.routes[front(router, channel).packet()].flits;
  const std::size_t base = first_channel(router) + port * fabric_.virtual_channels;
  std::uint64_t result = 0;
  for (std::uint64_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto virtual_channel = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (credits_[base + virtual_channel] >= flits) result |= std::uint64_t{1} << virtual_channel;
  }
  return result;
}

template <std::size_t Words>
FlitRequest FlitRouterBank<Words>::choose_output(std::uint32_t router, std::uint32_t channel) const {
  const std::uint32_t packet = front(router, channel).packet();
  return routes_.most_room(router, channel, packet, [&](std::uint32_t port, std::uint64_t mask) {
    std::uint64_t usable =
        mask & stages_[router].free.field(port * fabric_.virtual_channels, fabric_.virtual_channels);
    if (fabric_.is_cut_through) usable = with_room(router, channel, port, usable);
    const std::size_t base = first_channel(router) + port * fabric_.virtual_channels;
    std::int64_t most = -1;
    for (std::uint64_t rest = usable; rest != 0; rest &= rest - 1) {
      const auto virtual_channel = static_cast<std::uint32_t>(std::countr_zero(rest));
      most = std::max<std::int64_t>(most, credits_[base + virtual_channel]);
    }
    return most;
  });
}

// --- switch allocation
// ---------------------------------------------------------------------------------------

template <std::size_t Words>
template <typename Accept>
void FlitRouterBank<Words>::allocate_switch(std::uint32_t router, FlitCycle cycle, const Bits& channels,
                                            Accept accept) {
  const FlitInputChannel* const inputs = &inputs_[first_channel(router)];
  const std::size_t first_port = std::size_t{router} * fabric_.ports;
  FlitPortArbiters* const arbiters = &arbiters_[first_port];
  const Bits& has_credit = stages_[router].has_credit;
  channels.for_each([&](std::uint32_t channel) {
    const FlitInputChannel& input = inputs[channel];
    if (!has_credit.test(input.output)) return;
    if (has_intervals_ && output_free_[first_port + input.output_port] > cycle) {
      has_delayed_ = true;
      return;
    }
    const Channel& number = numbers_[channel];
    switch_allocator_.request(number.port, input.output_port, number.virtual_channel,
                              arbiters[number.port].served_channel);
  });
  switch_allocator_.allocate(arbiters, accept);
}

// --- switch traversal
// ----------------------------------------------------------------------------------------

// The flit leaves its buffer, takes a credit of the next one, and gives its own back.
template <std::size_t Words>
void FlitRouterBank<Words>::traverse(std::uint32_t router, FlitCycle cycle, std::uint32_t input_port,
                                     std::uint32_t output_port, std::uint32_t virtual_channel) {
  const std::size_t base = first_channel(router);
  const std::size_t first_port = std::size_t{router} * fabric_.ports;
  const std::uint32_t channel = input_port * fabric_.virtual_channels + virtual_channel;
  FlitInputChannel& input = inputs_[base + channel];
  const Flit flit = input.front;
  if (--input.count != 0) {
    const std::uint32_t buffer_flits = fabric_.timing.buffer_flits;
    input.front = flits_[(base + channel) * buffer_flits + input.next];
    if (++input.next == buffer_flits) input.next = 0;
  }
  FlitStages<Words>& stages = stages_[router];
  if (--credits_[base + input.output] == 0) stages.has_credit.reset(input.output);

  const FlitPort& out = fabric_.port_table[first_port + output_port];
  fabric_.count_flit(first_port + output_port, flit, input.wire_bytes);
  if (flit.is_head() && input.request.set == FlitRouteUnit::adaptive_set) {
    fabric_.count_hop(first_port + output_port, out.kind == FlitPort::Kind::local,
                      fabric_.routes[flit.packet()]);
  }
  FlitCycle arrives = cycle + out.flit_delay;
  if (is_long_) arrives += cross(router, output_port, cycle);
  if (has_intervals_) output_free_[first_port + output_port] = cycle + fabric_.flit_cycles[out.speed];
  const auto there = static_cast<std::uint16_t>(out.neighbour_channel + input.output -
                                                output_port * fabric_.virtual_channels);
  fabric_.send(out.kind, arrives, {{out.neighbour, there}, flit});

  const FlitPort& in = fabric_.port_table[first_port + input_port];
  const auto upstream = static_cast<std::uint16_t>(in.neighbour_channel + virtual_channel);
  fabric_.send_credit(in.kind, cycle + in.credit_delay, {in.neighbour, upstream});

  if (flit.is_tail()) stages.free.set(input.output);
  if (flit.is_tail() || input.count == 0) stages.switching.reset(channel);
  if (flit.is_tail() && input.count != 0) begin_header(router, channel);
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
  const FlitCycle interval = fabric_.flit_cycles[fabric_.port_table[index].speed];
  const FlitCycle sent = last_sent_[index] < 0 ? done : std::max(done, last_sent_[index] + interval);
  last_sent_[index] = sent;
  return sent - (cycle + length);
}

}  // namespace

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
