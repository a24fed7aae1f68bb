#include "network/packet/engine.hpp"

#include <algorithm>

#include "kernel/check.hpp"

namespace apenet {

// --- queues: defined before their users so that a whole hop is inlined into one function
// --------------------------------------------------------------------------------------------------

// Call when the head of the queue is ready to leave.
inline void PacketEngine::request(std::uint32_t queue_index, std::uint32_t flight_index) {
  if (memo_.is_adaptive && (state_.control.gate != nullptr || state_.flights[flight_index].may_reroute))
      [[unlikely]] {
    request_with_care(queue_index, flight_index);
    return;
  }
  ask(queue_index, flight_index);
}

// A function of its own: its stack frame would cost every event.
void PacketEngine::request_with_care(std::uint32_t queue_index, std::uint32_t flight_index) {
  const Flight& flight = state_.flights[flight_index];
  if (state_.control.gate != nullptr && spec_.layout.is_injection(queue_index) &&
      !state_.control.gate->admits(flight.packet()))
    return;
  if (flight.may_reroute) choose_by_room(queue_index);
  ask(queue_index, flight_index);
}

// Call when the head of the queue will be ready at `ready`, later than now. Where the output is busy until
// after that, the head joins the waiting set at once: equivalent, and one event less.
void PacketEngine::await_turn(std::uint32_t queue_index, std::uint32_t flight_index, Time ready) {
  const Flight& flight = state_.flights[flight_index];
  const Time free_at = state_.free_at[flight.wanted_output];
  if (free_at <= ready ||
      (memo_.is_adaptive &&
       (flight.may_reroute || (state_.control.gate != nullptr && spec_.layout.is_injection(queue_index))))) {
    schedule_ready(queue_index, flight_index, ready);
    return;
  }
  waiting_.start(outputs_[flight.wanted_output], flight.wanted_output, queue_index);
  wake(flight.wanted_output, free_at, queue_index);
}

// Removes the head of the queue, whose tail leaves at tail_out. Its room, `bytes`, returns after that; `head`
// is the next packet.
inline void PacketEngine::leave_queue(std::uint32_t queue_index, std::uint32_t head, Time tail_out,
                                      std::uint32_t bytes, const Stage& stage) {
  Queue& queue = state_.queues[queue_index];
  Time back_at = queue.free_at + stage.spec.credit_latency;
  Time free_at = tail_out;
  if (spec_.is_wormhole && stage.spec.kind != StageKind::injection) [[unlikely]] {
    back_at = queue.free_at + credit_latency(queue);
    free_at += spec_.wormhole.header_gap();
  }
  if (back_at <= simulation_.now()) {
    queue.room_bytes += static_cast<std::int32_t>(queue.returning_bytes);
  } else if (queue.returning_bytes != 0) {
    credits_.add(queue, back_at, simulation_.now());
  }
  queue.free_at = tail_out;
  queue.returning_bytes = bytes;
  queue.head = head;
  if (queue.needed_bytes != 0 && bytes != 0) tell_room(queue_index);
  if (head != none) await_turn(queue_index, head, std::max(free_at, state_.flights[head].ready));
}

// Appends a packet.
inline void PacketEngine::enter_queue(std::uint32_t queue_index, std::uint32_t flight_index,
                                      Time header_gap) {
  Queue& queue = state_.queues[queue_index];
  const Flight& flight = state_.flights[flight_index];
  if (queue.head != none) {
    state_.flights[queue.tail].next = flight_index;
    queue.tail = flight_index;
    return;
  }
  queue.head = flight_index;
  queue.tail = flight_index;
  if (state_.control.is_halted) [[unlikely]]
    return;
  const Time ready = std::max(flight.ready, queue.free_at + header_gap);
  if (ready == simulation_.now()) {
    request(queue_index, flight_index);  // no latency in between: an event would only repeat what is known
  } else {
    await_turn(queue_index, flight_index, ready);
  }
}

// --- what a card sees
// -----------------------------------------------------------------------------------------

void PacketEngine::prepare(NodeId node, std::uint16_t channel) const {
  __builtin_prefetch(&state_.queues[spec_.layout.injection_queue(node, channel)]);
  __builtin_prefetch(&outputs_[spec_.layout.injection_output(node, channel)]);
  __builtin_prefetch(&state_.free_at[spec_.ejection_outputs[node]]);
  __builtin_prefetch(&state_.queues[spec_.ejection_outputs[node] * spec_.layout.virtual_channels]);
}

std::int64_t PacketEngine::inject(const Packet& packet, Time tail_time) {
  APENET_CHECK(packet.source < clients_.size() && packet.destination < clients_.size() &&
                   packet.channel < spec_.layout.fifos,
               "packet from %u to %u on channel %u; %zu nodes, %u channels", packet.source,
               packet.destination, packet.channel, clients_.size(), spec_.layout.fifos);
  APENET_CHECK(packet.wire_bytes > 0 && packet.wire_bytes <= spec_.max_packet_wire_bytes,
               "packet of %u bytes on the wire, limit %u", packet.wire_bytes, spec_.max_packet_wire_bytes);
  const Time now = simulation_.now();
  APENET_CHECK(tail_time >= now, "tail at %lld ps, before its header at %lld ps",
               static_cast<long long>(tail_time.ps()), static_cast<long long>(now.ps()));
  const std::uint32_t queue_index = spec_.layout.injection_queue(packet.source, packet.channel);
  Queue& queue = state_.queues[queue_index];
  credits_.settle(queue, Time::zero(), simulation_.now());
  APENET_CHECK(packet.wire_bytes <= static_cast<std::uint32_t>(queue.room_bytes),
               "packet of %u bytes, room %lld in channel %u of node %u", packet.wire_bytes,
               static_cast<long long>(queue.room_bytes), packet.channel, packet.source);
  queue.room_bytes -= static_cast<std::int32_t>(packet.wire_bytes);
  const std::uint32_t flight_index = new_flight();
  Flight& flight = state_.flights[flight_index];
  flight = {.tail_in = tail_time,
            .ready = now,
            .message = packet.message,
            .source = packet.source,
            .destination = packet.destination,
            .payload_bytes = packet.payload_bytes,
            .wire_bytes = packet.wire_bytes,
            .sequence = packet.sequence,
            .order = packet.order,
            .channel = packet.channel,
            .last = packet.last};
  if (spec_.keeps_numbers) [[unlikely]] {
    state_.numbers.resize(state_.flights.size());
    state_.numbers[flight_index] = state_.control.next_number.value++;
  }
  if (simulation_.is_traced()) [[unlikely]]
    trace(NetworkTrace::injected, Time::zero(), packet.source, flight);
  choose_injection(flight);
  enter_queue(queue_index, flight_index, Time::zero());
  return queue.room_bytes;
}

void PacketEngine::consumed(NodeId node, const Packet& packet) {
  // Not by the output's first_buffer: the two records are then read at the same time.
  std::int32_t& room_bytes =
      state_.queues[spec_.layout.ejection_buffer(node, packet.ejection_port)].room_bytes;
  room_bytes += static_cast<std::int32_t>(packet.wire_bytes);
  APENET_CHECK(room_bytes <= spec_.ejection_buffer_bytes,
               "node %u consumed more than arrived: room %d of %lld bytes", node, room_bytes,
               static_cast<long long>(spec_.ejection_buffer_bytes));
  const std::uint32_t output = spec_.ejection_outputs[node] + packet.ejection_port;
  if (outputs_[output].state.waiting > 0) arbitrate(output);
}

// --- events
// ---------------------------------------------------------------------------------------------------

// Few branches, since steps alternate unpredictably. The far round fetches queue, flight and output; the
// close round fetches what these refer to: the buffer behind the output, the times at which the outputs there
// become free, and the next packet of the queue. Record 0 stands in for a missing reference.
void PacketEngine::prepare(const Event& event, Ahead ahead) const {
  const auto queue_index = static_cast<std::uint32_t>(event.argument_a);
  const auto flight_index = static_cast<std::uint32_t>(event.argument_a >> 32U);
  const auto output_index = static_cast<std::uint32_t>(event.argument_b >> 8U);
  const Output& output = outputs_[output_index];
  const Flight& flight = state_.flights[flight_index];
  if (ahead == Ahead::far) {
    __builtin_prefetch(&state_.queues[queue_index]);
    __builtin_prefetch(&flight);
    __builtin_prefetch(&output);
    __builtin_prefetch(&state_.free_at[output_index]);
    return;
  }
  __builtin_prefetch(&state_.queues[output.buffer(flight.wanted_vc)]);
  credits_.prefetch(state_.queues[queue_index]);
  if (static_cast<Step>(event.argument_b & 0xffU) == Step::delivered) {
    // The first lines of the client object, whose type is unknown here.
    constexpr std::size_t client_bytes = 320;
    constexpr std::size_t line_bytes = 64;
    const char* const client = reinterpret_cast<const char*>(clients_[flight.destination]);
    for (std::size_t at = 0; at < client_bytes; at += line_bytes) __builtin_prefetch(client + at);
    return;
  }
  __builtin_prefetch(state_.flights.data() + flight.next);
  const Time* const free_at = &state_.free_at[output.spec.next_router * spec_.layout.ports];
  __builtin_prefetch(free_at);
  __builtin_prefetch(free_at + spec_.layout.ports - 1);
  if (memo_.dimension_order != nullptr) memo_.dimension_order->prepare(flight.destination);
}

void PacketEngine::handle_event(const Event& event) {
  if ((event.argument_b ^ state_.control.run) >> run_shift != 0) [[unlikely]]
    return;
  const auto queue_index = static_cast<std::uint32_t>(event.argument_a);
  const auto output_index = static_cast<std::uint32_t>(event.argument_b >> 8U);
  const auto flight_index = static_cast<std::uint32_t>(event.argument_a >> 32U);
  const auto step = static_cast<Step>(event.argument_b & 0xffU);
  if (step == Step::ready) {  // the most frequent step
    request(queue_index, flight_index);
  } else if (step == Step::wake) {
    if (outputs_[output_index].state.wake_at != simulation_.now()) return;
    outputs_[output_index].state.wake_at = Time::never();
    arbitrate(output_index);
  } else if (step == Step::delivered) {
    deliver(flight_index, output_index);
  } else {
    tell_injection_freed(queue_index);
  }
}

void PacketEngine::deliver(std::uint32_t flight_index, std::uint32_t output_index) {
  Flight& flight = state_.flights[flight_index];
  Packet packet = flight.packet();
  if (spec_.layout.has_several_ports) [[unlikely]]
    packet.ejection_port =
        static_cast<std::uint8_t>(output_index - spec_.ejection_outputs[flight.destination]);
  const Time head_time = flight.ready;
  if (simulation_.is_traced()) [[unlikely]]
    trace(NetworkTrace::delivered, Time::zero(), packet.destination, flight);
  flight.next = state_.free_flight;
  state_.free_flight = flight_index;
  NetworkClient* const client = clients_[packet.destination];
  APENET_CHECK(client != nullptr, "packet for node %u, which has no client", packet.destination);
  client->packet_arrived(packet, head_time);
}

// --- requests and arbitration
// ---------------------------------------------------------------------------------

// Grants the head of the queue the output that it wants, or makes it wait.
void PacketEngine::ask(std::uint32_t queue_index, std::uint32_t flight_index) {
  Flight& flight = state_.flights[flight_index];
  const std::uint32_t output_index = flight.wanted_output;
  Output& output = outputs_[output_index];
  const bool is_free = state_.free_at[output_index] <= simulation_.now();
  if (is_free && output.state.waiting == 0 && finds_room(output, queue_index, flight)) {
    output.state.last_granted = static_cast<std::uint16_t>(queue_index - output.spec.first_queue);
    grant(queue_index, flight_index, output_index);
    return;
  }
  waiting_.start(output, output_index, queue_index);
  if (is_free) {
    arbitrate(output_index);
  } else {
    wake(output_index, state_.free_at[output_index], queue_index);
  }
}

void PacketEngine::choose_among(Flight& flight, std::uint32_t queue_index, RouterId router) const {
  const RouteSteps steps = steps_of(flight, queue_index);
  std::uint32_t chosen = 0;
  flight.may_reroute = steps.choice() == RouteChoice::adaptive;
  if (steps.choice() == RouteChoice::random) {
    chosen = draw_step(steps.count(), draws_of(simulation_.seed(), flight.packet()), steps[0].port);
  }
  want(flight, router * spec_.layout.ports, steps[chosen]);
  if (!spec_.layout.has_several_ports) return;
  const std::uint32_t ejection = spec_.ejection_outputs[flight.destination];
  if (flight.wanted_output != ejection) return;
  const std::uint32_t input = queue_index / spec_.layout.virtual_channels % spec_.layout.ports;
  flight.wanted_output += spec_.ejection_ports.port(input, flight.channel);
}

void PacketEngine::choose_injection(Flight& flight) const {
  flight.may_reroute = false;
  flight.wanted_output = spec_.layout.injection_output(flight.source, flight.channel);
  flight.wanted_vc =
      static_cast<std::uint8_t>(spec_.layout.card_channel(flight.channel) % spec_.layout.virtual_channels);
}

// Where a queue finds too little room in its virtual channel, later queues of the round may not take that
// channel either: otherwise small packets could hold back a large one for ever.
void PacketEngine::arbitrate(std::uint32_t output_index) {
  Output& output = outputs_[output_index];
  if (output.state.waiting == 0) return;
  if (state_.free_at[output_index] > simulation_.now()) {
    wake(output_index, state_.free_at[output_index], waiting_.next(outputs_[output_index], output_index));
    return;
  }
  std::uint64_t refused = 0;  // a bit for each virtual channel
  const bool is_link = stages_[output.spec.stage].spec.kind == StageKind::link;
  const std::uint64_t unordered = is_link ? memo_.ring_channels : 0;
  std::uint32_t chosen = 0;
  std::uint32_t chosen_flight = none;
  bool any_reroutes = false;
  visit_in_turn(output_index, [&](std::uint32_t queue_index) {
    const std::uint32_t flight_index = state_.queues[queue_index].head;
    Flight& flight = state_.flights[flight_index];
    const std::uint64_t lanes = lanes_for(output, flight);
    // What goes on along a ring needs less room than what enters it, and is not held up by that.
    if ((refused & lanes & ~unordered) != 0) return false;
    if (!finds_room(output, queue_index, flight)) {
      refused |= lanes;
      any_reroutes |= flight.may_reroute;
      return false;
    }
    chosen = queue_index;
    chosen_flight = flight_index;
    return true;
  });
  std::vector<std::uint32_t> rerouting;
  if (any_reroutes) rerouting = take_refused(output_index, refused);
  if (chosen_flight == none) {
    await_room(output_index);
  } else {
    waiting_.stop(output, output_index, chosen);
    // A stream that waits only behind itself waits in the flit engine, too.
    if (output.state.waiting > 0 || chosen - output.spec.first_queue != output.state.last_granted)
      stages_[output.spec.stage].counters.waited += simulation_.now() - state_.flights[chosen_flight].ready;
    output.state.last_granted = static_cast<std::uint16_t>(chosen - output.spec.first_queue);
    grant(chosen, chosen_flight, output_index);
    if (output.state.waiting > 0)
      wake(output_index, state_.free_at[output_index], waiting_.next(outputs_[output_index], output_index));
  }
  for (const std::uint32_t queue_index : rerouting) turn_to_escape(queue_index);
}

// --- movement
// -------------------------------------------------------------------------------------------------

// Moves the head packet of the queue through the output now. docs/models/network.md, "One hop".
void PacketEngine::grant(std::uint32_t queue_index, std::uint32_t flight_index, std::uint32_t output_index) {
  Output& output = outputs_[output_index];
  Stage& stage = stages_[output.spec.stage];
  Flight& flight = state_.flights[flight_index];
  const std::uint32_t bytes = flight.wire_bytes;
  if (stage.memo.last_bytes != bytes) {
    stage.memo.last_bytes = bytes;
    stage.memo.last_duration = stage.spec.serialisation.duration(bytes);
    stage.memo.last_span = stage.spec.kind == StageKind::ejection
                               ? stage.memo.last_duration
                               : spec_.wormhole.span(bytes, stage.memo.last_duration);
  }
  const Time now = simulation_.now();
  Time header_out = now;
  if (stage.spec.has_errors) [[unlikely]]
    header_out = pass_errors(output_index, flight);
  const Time tail_out = std::max(header_out + stage.memo.last_span, flight.tail_in + stage.spec.tail_latency);
  // Packets of other virtual channels pass a link while flits wait for credits; a card sends one packet.
  const bool is_shared = spec_.is_wormhole && stage.spec.kind != StageKind::injection;
  const Time free_at = is_shared ? header_out + stage.memo.last_duration : tail_out;
  if (simulation_.is_traced()) [[unlikely]]
    trace_grant(output_index, header_out, tail_out, flight);
  state_.free_at[output_index] = free_at;
  output.counters.busy += free_at - now;
  ++output.counters.packets;
  output.counters.wire_bytes += bytes;
  // A packet that a fault may take back enters twice, and the second time counts: the client is told both.
  if (stage.spec.kind == StageKind::injection && (now > flight.ready || spec_.keeps_numbers))
    tell_entered(flight);

  const std::uint32_t buffer_index = output.buffer(flight.wanted_vc);
  std::uint32_t taken_bytes = bytes;
  std::uint32_t returning_bytes = flight.is_resent ? 0 : bytes;
  if (memo_.ring_channels != 0) [[unlikely]] {
    if (is_in_ring(output, flight.wanted_vc)) taken_bytes = spec_.max_packet_wire_bytes;
    returning_bytes = returned_bytes(queue_index, flight);
  }
  state_.queues[buffer_index].room_bytes -= static_cast<std::int32_t>(taken_bytes);
  const std::uint32_t next = flight.next;
  flight.next = none;
  flight.is_resent = false;
  flight.tail_in = tail_out + stage.spec.latency;
  flight.ready = header_out + stage.spec.header_latency;
  if (stage.spec.kind == StageKind::ejection) {
    if (flight.hops == 0) counters_.ports_only += stage.memo.last_duration;
    schedule(EventKind::link, output_index, flight.tail_in, Step::delivered, {0, flight_index, output_index});
    leave_queue(queue_index, next, tail_out, returning_bytes, stage);
    return;
  }
  flight.hops = static_cast<std::uint16_t>(flight.hops + (stage.spec.kind == StageKind::link ? 1U : 0U));
  // Before leave_queue, which takes as long as the prefetch of the next output.
  choose_output(flight, buffer_index, output);
  __builtin_prefetch(&outputs_[flight.wanted_output]);
  leave_queue(queue_index, next, tail_out, returning_bytes, stage);
  enter_queue(buffer_index, flight_index, spec_.wormhole.header_gap());
}

void PacketEngine::tell_entered(const Flight& flight) {
  NetworkClient* const client = clients_[flight.source];
  if (client != nullptr) client->packet_entered(flight.packet(), simulation_.now());
}

// --- records
// --------------------------------------------------------------------------------------------------

std::uint32_t PacketEngine::new_flight() {
  if (state_.free_flight == none) {
    state_.flights.emplace_back();
    return static_cast<std::uint32_t>(state_.flights.size() - 1);
  }
  const std::uint32_t index = state_.free_flight;
  state_.free_flight = state_.flights[index].next;
  return index;
}

void PacketEngine::trace(NetworkTrace what, Time until, std::uint32_t place, const Flight& flight) const {
  const bool is_injection = what == NetworkTrace::injected;
  simulation_.trace(network_record(what, simulation_.now(), until, spec_.rail, place,
                                   is_injection ? flight.destination : flight.source, flight.message,
                                   flight.sequence, flight.wire_bytes));
}

// Call before the output is taken: it then still knows until when it was busy before.
void PacketEngine::trace_grant(std::uint32_t output_index, Time header_out, Time tail_out,
                               const Flight& flight) const {
  const Time now = simulation_.now();
  const Time free = std::clamp(state_.free_at[output_index], std::min(flight.ready, now), now);
  const auto trace_span = [&](NetworkTrace what, Time from, Time until) {
    if (from >= until) return;
    simulation_.trace(network_record(what, from, until, spec_.rail, output_index / spec_.layout.ports,
                                     flight.source, flight.message, flight.sequence, flight.wire_bytes));
  };
  trace_span(NetworkTrace::waited, flight.ready, free);
  trace_span(NetworkTrace::blocked, free, now);
  trace_output(output_index, tail_out, flight);
  trace_span(NetworkTrace::resent, now, header_out);
}

void PacketEngine::trace_output(std::uint32_t output_index, Time tail_out, const Flight& flight) const {
  const StageKind kind = stages_[outputs_[output_index].spec.stage].spec.kind;
  if (kind == StageKind::injection) return;  // from the card into its own router
  if (kind == StageKind::ejection) {
    trace(NetworkTrace::ejected, Time::zero(), flight.destination, flight);
    return;
  }
  const auto link =
      std::lower_bound(spec_.links.begin(), spec_.links.end(), output_index) - spec_.links.begin();
  trace(NetworkTrace::crossed, tail_out, static_cast<std::uint32_t>(link), flight);
}

}  // namespace apenet
