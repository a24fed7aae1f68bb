#include "network/flit/engine.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

namespace {

FlitCycle longest_wire(const FlitTiming& timing) {
  std::uint32_t latency = timing.local.latency_cycles;
  std::uint32_t interval = timing.local.flit_cycles;
  for (const FlitLinkTiming& link : timing.links) {
    latency = std::max(latency, link.latency_cycles);
    interval = std::max(interval, link.flit_cycles);
  }
  // Before a flit crosses the switch itself, it waits for at most two sets of flits: the present and the
  // next.
  const FlitCycle crossing = FlitCycle{3} * timing.switch_traversal_cycles * interval;
  return FlitCycle{1} + latency + crossing + timing.buffer_write_cycles + timing.credit_cycles;
}

// cycles_ahead: the cycle in which the ports send, relative to that of DelayLine::begin_cycle().
std::vector<FlitPort> card_ports(FlitFabric& fabric, const Topology& topology, FlitCycle cycles_ahead) {
  const FlitTiming& timing = fabric.timing;
  std::vector<FlitPort> ports;
  const std::uint32_t count = topology.endpoint_count() * fabric.ports_of_node;
  for (std::uint32_t number = 0; number < count; ++number) {
    const PortRef attachment = topology.attachment(number / fabric.ports_of_node);
    FlitPort port;
    port.far_end = fabric.place(attachment.router, attachment.port + number % fabric.ports_of_node);
    port.kind = FlitPortKind::link;
    const FlitCycle latency = cycles_ahead + 1 + timing.local.latency_cycles;
    fabric.connect(port, latency + timing.buffer_write_cycles, latency + timing.credit_cycles);
    ports.push_back(port);
  }
  return ports;
}

}  // namespace

FlitEngine::FlitEngine(Simulation& simulation, const Topology& topology,
                       std::unique_ptr<const Routing> routing, const NetworkParameters& parameters)
    : simulation_(simulation),
      own_routing_(std::move(routing)),
      fabric_(simulation, parameters, topology.router_count(), topology.ports_per_router(),
              longest_wire(make_flit_timing(parameters))),
      route_unit_(*own_routing_, fabric_, parameters.description.channel_selection),
      sockets_(fabric_, route_unit_),
      sources_(fabric_, card_ports(fabric_, topology, 0), parameters.description.injection_buffer_bytes,
               parameters.description.channel_selection == NetworkDescription::ChannelSelection::lane,
               parameters.description.switching == NetworkDescription::Switching::virtual_cut_through),
      sinks_(fabric_, card_ports(fabric_, topology, 1), parameters.description.ejection_buffer_bytes),
      spec_{.fifos = parameters.fifos_of_node(),
            .max_packet_wire_bytes = parameters.max_packet_wire_bytes,
            .node_count = topology.endpoint_count(),
            .channel_selection = parameters.description.channel_selection,
            .keeps_numbers = parameters.description.arbitration == NetworkDescription::Arbitration::age,
            .links = {},
            .link_names = {}},
      clients_(spec_.node_count) {
  memo_.last_wire_bytes = spec_.max_packet_wire_bytes;
  memo_.last_length = fabric_.length(memo_.last_wire_bytes);
  state_.source = {EventKind::link, parameters.rail, 0};
  fabric_.rail = parameters.rail;
  fabric_.is_cut_through =
      parameters.description.switching == NetworkDescription::Switching::virtual_cut_through;
  fabric_.is_by_age = spec_.keeps_numbers;
  wire(topology);
  add_errors(topology, parameters.description.links);
  keep_bubbles(*own_routing_);
  routers_ = make_flit_routers(fabric_, route_unit_);
}

void FlitEngine::keep_bubbles(const Routing& routing) {
  const bool has_bubbles = routing.bubble_class() != Routing::no_class;
  const ChannelClasses classes(fabric_.virtual_channels, routing.class_count());
  fabric_.slot_flits = has_bubbles ? fabric_.timing.flits(spec_.max_packet_wire_bytes) : 0;
  fabric_.ring_channels = has_bubbles ? classes.mask(routing.bubble_class()) : 0;
}

void FlitEngine::wire(const Topology& topology) {
  const FlitTiming& timing = fabric_.timing;
  fabric_.flit_cycles = {timing.local.flit_cycles};
  for (const FlitLinkTiming& link : timing.links) fabric_.flit_cycles.push_back(link.flit_cycles);
  std::sort(fabric_.flit_cycles.begin(), fabric_.flit_cycles.end());
  fabric_.flit_cycles.erase(std::unique(fabric_.flit_cycles.begin(), fabric_.flit_cycles.end()),
                            fabric_.flit_cycles.end());
  const auto speed = [this](std::uint32_t flit_cycles) {
    const auto found = std::lower_bound(fabric_.flit_cycles.begin(), fabric_.flit_cycles.end(), flit_cycles);
    return static_cast<std::uint8_t>(found - fabric_.flit_cycles.begin());
  };
  for (RouterId router = 0; router < fabric_.router_count; ++router) {
    for (std::uint32_t number = 0; number < fabric_.ports; ++number) {
      const PortRef next = topology.neighbour({router, number});
      if (!next.is_connected()) continue;
      const FlitLinkTiming& link = timing.links[topology.link_class({router, number})];
      const std::size_t index = fabric_.port_index(router, number);
      FlitPort& port = fabric_.port_table[index].wires;
      port.far_end = fabric_.place(next.router, next.port);
      port.kind = FlitPortKind::link;
      port.speed = speed(link.flit_cycles);
      const FlitCycle latency = FlitCycle{1} + link.latency_cycles;
      fabric_.connect(port, timing.switch_traversal_cycles + latency + timing.buffer_write_cycles,
                      latency + timing.credit_cycles);
      fabric_.link_numbers[index] = static_cast<std::uint32_t>(spec_.links.size());
      spec_.links.push_back(index);
      spec_.link_names.push_back(topology.link_name({router, number}));
    }
  }
  for (std::uint32_t number = 0; number < topology.endpoint_count() * fabric_.ports_of_node; ++number) {
    const PortRef attachment = topology.attachment(number / fabric_.ports_of_node);
    const std::uint32_t router_port = attachment.port + number % fabric_.ports_of_node;
    const std::size_t index = fabric_.port_index(attachment.router, router_port);
    FlitPort& port = fabric_.port_table[index].wires;
    port.far_end = fabric_.place(number, 0);
    port.kind = FlitPortKind::local;
    fabric_.local_ports[attachment.router] |= std::uint64_t{1} << router_port % 64;
    port.speed = speed(timing.local.flit_cycles);
    const FlitCycle latency = FlitCycle{1} + timing.local.latency_cycles;
    fabric_.connect(port, timing.switch_traversal_cycles + latency, latency);
  }
}

void FlitEngine::add_errors(const Topology& topology, const std::vector<LinkDescription>& links) {
  const bool has_errors = std::any_of(links.begin(), links.end(),
                                      [](const LinkDescription& link) { return link.bit_error_rate > 0; });
  if (!has_errors) return;
  const FlitTiming& timing = fabric_.timing;
  const FlitCycle router_cycles = FlitCycle{timing.buffer_write_cycles} + timing.routing_cycles +
                                  timing.vc_allocation_cycles + timing.switch_allocation_cycles +
                                  timing.switch_traversal_cycles;
  std::vector<FlitRetries::Link> retried(fabric_.port_table.size());
  for (RouterId router = 0; router < fabric_.router_count; ++router) {
    for (std::uint32_t number = 0; number < fabric_.ports; ++number) {
      if (!topology.neighbour({router, number}).is_connected()) continue;
      const std::uint32_t link = topology.link_class({router, number});
      retried[fabric_.port_index(router, number)] = {
          .bit_error_rate = links[link].bit_error_rate,
          .number = router * fabric_.ports + number,
          .flit_cycles = timing.links[link].flit_cycles,
          .turnaround = 2 * (timing.links[link].latency_cycles + router_cycles)};
    }
  }
  retries_ = std::make_unique<FlitRetries>(fabric_, std::move(retried),
                                           std::size_t{fabric_.router_count} * fabric_.ports);
  fabric_.retries = retries_.get();
}

// The wires become shorter, because the replacement has buffer write and credit delay inside.
void FlitEngine::plug(RouterId router, const FlitRouterMaker& maker) {
  const auto lead_to_socket = [this](FlitPort& port) {
    port.kind = FlitPortKind::socket;
    fabric_.connect(port, fabric_.flits_on_wires.delay(port.flit_wire) - fabric_.timing.buffer_write_cycles,
                    fabric_.credits_on_wires.delay(port.credit_wire) - fabric_.timing.credit_cycles);
  };
  const auto leads_there = [&](const FlitPort& port) { return fabric_.router_of(port.far_end) == router; };
  for (FlitRouterPort& port : fabric_.port_table) {
    if (port.wires.kind == FlitPortKind::link && leads_there(port.wires)) lead_to_socket(port.wires);
  }
  sources_.for_each_entry([&](FlitPort& port) {
    if (leads_there(port)) lead_to_socket(port);
  });
  sinks_.for_each_exit([&](FlitPort& port) {
    if (leads_there(port)) lead_to_socket(port);
  });
  sockets_.plug(router, maker);
}

void FlitEngine::attach(NodeId node, NetworkClient& client) {
  clients_.at(node) = &client;
}

std::int64_t FlitEngine::injection_room(NodeId node, std::uint16_t channel) const {
  APENET_CHECK(node < spec_.node_count && channel < spec_.fifos, "node %u of %u, channel %u of %u", node,
               spec_.node_count, channel, spec_.fifos);
  return sources_.room(node, channel);
}

void FlitEngine::await_injection_room(NodeId node, std::uint16_t channel) {
  sources_.await_room(node, channel);
}

void FlitEngine::wake(FlitCycle cycle) {
  if (!state_.is_awake) schedule_cycle(cycle);
}

void FlitEngine::schedule_cycle(FlitCycle cycle) {
  state_.next_cycle = std::max(state_.next_cycle, cycle);
  state_.is_awake = true;
  simulation_.schedule(state_.source, fabric_.timing.time(state_.next_cycle + 1), *this, 0,
                       static_cast<std::uint64_t>(Step::cycle) | std::uint64_t{state_.halts} << 8U);
}

[[gnu::always_inline]] inline void FlitEngine::begin_route(std::uint32_t index, const Packet& packet) {
  fabric_.state.routes[index] = first_route(packet, memo_.last_length);
  if (spec_.keeps_numbers) [[unlikely]]
    number(index);
}

[[gnu::noinline]] void FlitEngine::number(std::uint32_t index) {
  fabric_.state.numbers.resize(fabric_.state.packets.size());
  fabric_.state.numbers[index] = fabric_.state.next_number++;
}

// The fast path is for a packet that finds a free entry of the table and has the time and the length of the
// previous packet: the cached cycle and length hold, and the engine is awake. Rare work is in functions that
// are called last, so that this one has few registers to save.
std::int64_t FlitEngine::inject(const Packet& packet, Time tail_time) {
  APENET_CHECK(packet.source < spec_.node_count && packet.destination < spec_.node_count &&
                   packet.channel < spec_.fifos,
               "packet from %u to %u on channel %u; %u nodes, %u channels", packet.source, packet.destination,
               packet.channel, spec_.node_count, spec_.fifos);
  const std::uint32_t index = state_.free_packet;
  if (index == FlitPacket::none || packet.wire_bytes != memo_.last_wire_bytes ||
      simulation_.now() != memo_.last_time) [[unlikely]] {
    return prepare_and_inject(packet, tail_time);
  }
  FlitPacket& place = fabric_.state.packets[index];
  state_.free_packet = place.next;
  place.packet = packet;
  place.length = memo_.last_length;
  place.start = memo_.last_cycle;
  place.span = 0;
  place.next = FlitPacket::none;
  const std::int64_t room = sources_.add(index, packet);
  if (tail_time != memo_.last_time || simulation_.is_traced()) [[unlikely]]
    return note_injection(index, packet, tail_time, room);
  begin_route(index, packet);
  return room;
}

[[gnu::noinline]] std::int64_t FlitEngine::prepare_and_inject(const Packet& packet, Time tail_time) {
  if (state_.free_packet == FlitPacket::none) {
    state_.free_packet = static_cast<std::uint32_t>(fabric_.state.packets.size());
    APENET_CHECK(state_.free_packet < Flit::max_packets, "%u packets in flight", state_.free_packet);
    fabric_.state.packets.emplace_back();
    fabric_.state.routes.emplace_back();
  }
  if (packet.wire_bytes != memo_.last_wire_bytes) {
    APENET_CHECK(packet.wire_bytes > 0 && packet.wire_bytes <= spec_.max_packet_wire_bytes,
                 "packet of %u bytes on the wire, limit %u", packet.wire_bytes, spec_.max_packet_wire_bytes);
    memo_.last_wire_bytes = packet.wire_bytes;
    memo_.last_length = fabric_.length(memo_.last_wire_bytes);
  }
  memo_.last_time = simulation_.now();
  memo_.last_cycle = fabric_.timing.cycle_from(memo_.last_time);
  wake(memo_.last_cycle);
  return inject(packet, tail_time);
}

[[gnu::noinline]] std::int64_t FlitEngine::note_injection(std::uint32_t index, const Packet& packet,
                                                          Time tail_time, std::int64_t room) {
  APENET_CHECK(tail_time >= memo_.last_time, "tail at %lld ps, before its header at %lld ps",
               static_cast<long long>(tail_time.ps()), static_cast<long long>(memo_.last_time.ps()));
  if (tail_time != memo_.last_time) sources_.delay_tail(index, fabric_.timing.cycle_from(tail_time));
  if (simulation_.is_traced()) trace(NetworkTrace::injected, packet.source, packet);
  begin_route(index, packet);
  return room;
}

void FlitEngine::consumed(NodeId node, const Packet& packet) {
  const std::uint32_t port = fabric_.port_of(node, packet.ejection_port);
  if (sinks_.release(port, packet.wire_bytes)) [[unlikely]]
    admit_waiting(port);
}

[[gnu::noinline]] void FlitEngine::admit_waiting(std::uint32_t ejection_port) {
  sinks_.admit_next(ejection_port);
  wake(fabric_.timing.cycle_from(simulation_.now()));
}

// Gives the client a copy: what it injects in the call may take over the packet's entry of the table.
[[gnu::always_inline]] inline void FlitEngine::deliver(std::uint32_t index, Time head_time) {
  Packet packet = fabric_.state.packets[index].packet;
  packet.hops =
      static_cast<std::uint16_t>(fabric_.state.routes[index].routers - 1);  // the links between them
  fabric_.state.packets[index].next = std::exchange(state_.free_packet, index);
  if (simulation_.is_traced()) [[unlikely]]
    trace(NetworkTrace::delivered, packet.destination, packet);
  NetworkClient* const client = clients_[packet.destination];
  APENET_CHECK(client != nullptr, "packet for node %u, which has no client", packet.destination);
  client->packet_arrived(packet, head_time);
}

void FlitEngine::tell_freed(NodeId node, std::uint16_t channel) const {
  NetworkClient* const client = clients_[node];
  APENET_CHECK(client != nullptr, "node %u injected without a client", node);
  client->injection_freed(channel);
}

void FlitEngine::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  const bool is_void = static_cast<std::uint32_t>(event.argument_b) >> 8U != state_.halts;
  switch (static_cast<Step>(event.argument_b & 0xffU)) {
    case Step::cycle:
      if (!is_void) [[likely]]
        run_cycle();
      return;
    case Step::delivered:
      if (!is_void) deliver(index, std::exchange(state_.head_times[index], Time::never()));
      return;
    case Step::injection_freed: {
      const auto channel = static_cast<std::uint16_t>(event.argument_a >> 32U);
      if (sources_.free({index, channel, static_cast<std::uint32_t>(event.argument_b >> 32U)})) {
        tell_freed(index, channel);
      }
      return;
    }
  }
}

void FlitEngine::run_cycle() {
  const FlitCycle cycle = state_.next_cycle++;
  fabric_.flits_on_wires.begin_cycle(cycle);
  fabric_.credits_on_wires.begin_cycle(cycle);
  sockets_.tick(cycle);
  routers_->tick(cycle);
  if (retries_) [[unlikely]]
    retries_->tick(cycle);
  sources_.tick(cycle, left_);
  sinks_.tick(cycle + 1, arrived_);

  const Time cycle_begin = fabric_.timing.time(cycle);
  for (const std::uint32_t index : left_.entered) {
    const Packet& packet = fabric_.state.packets[index].packet;
    if (clients_[packet.source] != nullptr) clients_[packet.source]->packet_entered(packet, cycle_begin);
  }
  left_.entered.clear();
  for (const FlitSources::Freed& freed : left_.freed) tell_freed(freed.node, freed.channel);
  left_.freed.clear();
  for (const FlitSources::Freed& sent : left_.sent) {
    simulation_.schedule(
        state_.source, fabric_.timing.time(cycle + fabric_.timing.local.flit_cycles), *this,
        sent.node | std::uint64_t{sent.channel} << 32U,
        static_cast<std::uint64_t>(Step::injection_freed) | std::uint64_t{sent.wire_bytes} << 32U);
  }
  left_.sent.clear();
  // The slowest port of the path determines when the tail's last byte arrives: in this cycle if every port of
  // the path takes one cycle per flit.
  const int prompt = fabric_.flit_cycles.front() == 1 ? 0 : -1;
  const FlitCycle next = cycle + 1;
  for (const FlitSinks::Arrived& arrived : arrived_) {
    const Time head_time = arrived.head == next ? cycle_begin : fabric_.timing.time(arrived.head - 1);
    const std::uint8_t slowest = fabric_.state.routes[arrived.packet].slowest;
    if (slowest == prompt) [[likely]] {
      deliver(arrived.packet, head_time);
    } else {
      if (arrived.packet >= state_.head_times.size())
        state_.head_times.resize(arrived.packet + std::size_t{1}, Time::never());
      state_.head_times[arrived.packet] = head_time;
      simulation_.schedule(state_.source, fabric_.timing.time(cycle + fabric_.flit_cycles[slowest]), *this,
                           arrived.packet,
                           static_cast<std::uint64_t>(Step::delivered) | std::uint64_t{state_.halts} << 8U);
    }
  }
  arrived_.clear();
  state_.is_awake = false;
  if (is_quiescent()) {
    memo_.last_time = Time::never();
  } else {
    wake(state_.next_cycle);
  }
}

bool FlitEngine::is_quiescent() const {
  return routers_->is_quiescent() && sources_.is_quiescent() && sinks_.is_quiescent() &&
         sockets_.is_quiescent() && fabric_.are_wires_empty() && (!retries_ || retries_->is_quiescent());
}

LinkStatistics FlitEngine::link_statistics(std::uint32_t link) const {
  const std::size_t index = spec_.links.at(link);
  const FlitLinkUse& use = fabric_.port_table[index].use;
  auto cycles =
      static_cast<FlitCycle>(use.flits * fabric_.flit_cycles[fabric_.port_table[index].wires.speed]);
  if (retries_) cycles += retries_->lost_cycles(index);
  const BitErrors::Counters errors = retries_ ? retries_->errors(index) : BitErrors::Counters{};
  return {spec_.link_names[link],
          use.packets,
          use.flits * fabric_.timing.flit_bytes - use.padding_bytes,
          fabric_.timing.time(cycles),
          errors.corrupted,
          errors.retransmitted_bytes};
}

std::vector<std::string> FlitEngine::warnings() const {
  std::vector<std::string> warnings;
  warnings.reserve(fabric_.timing.rounded.size());
  for (const std::string& rounded : fabric_.timing.rounded) {
    warnings.push_back("the flit engine counts whole cycles of the router's clock: " + rounded);
  }
  return warnings;
}

void FlitEngine::trace(NetworkTrace what, std::uint32_t place, const Packet& packet) const {
  const bool is_injection = what == NetworkTrace::injected;
  simulation_.trace(network_record(what, simulation_.now(), Time::zero(), fabric_.rail, place,
                                   is_injection ? packet.destination : packet.source, packet.message,
                                   packet.sequence, packet.wire_bytes));
}

}  // namespace apenet
