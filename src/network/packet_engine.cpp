#include "network/packet_engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

// --- what a card sees
// -----------------------------------------------------------------------------------------

std::int64_t PacketEngine::injection_room(NodeId node, std::uint16_t channel) const {
  APENET_CHECK(node < endpoints_.size() && channel < card_channels_, "node %u of %zu, channel %u of %u", node,
               endpoints_.size(), channel, card_channels_);
  const Queue& queue = queues_[first_injection_queue_ + node * card_channels_ + channel];
  const bool is_back = queue.free_at <= simulation_.now();  // and with it all before it
  return queue.room_bytes + (is_back ? std::int64_t{queue.returning_bytes} : 0);
}

void PacketEngine::await_injection_room(NodeId node, std::uint16_t channel) {
  const std::uint32_t queue_index = first_injection_queue_ + node * card_channels_ + channel;
  Queue& queue = queues_[queue_index];
  if (queue.needed_bytes != 0) return;  // has asked already
  queue.needed_bytes = 1;
  if (queue.free_at > simulation_.now() && queue.returning_bytes != 0) tell_room(queue_index);
}

void PacketEngine::prepare(NodeId node, std::uint16_t channel) const {
  __builtin_prefetch(&queues_[first_injection_queue_ + node * card_channels_ + channel]);
  __builtin_prefetch(&outputs_[router_count_ * ports_ + node]);
  __builtin_prefetch(&queues_[endpoints_[node].ejection_output * virtual_channels_]);
}

void PacketEngine::inject(const Packet& packet, Time tail_time) {
  APENET_CHECK(packet.source < endpoints_.size() && packet.destination < endpoints_.size() &&
                   packet.channel < card_channels_,
               "packet from %u to %u on channel %u; %zu nodes, %u channels", packet.source,
               packet.destination, packet.channel, endpoints_.size(), card_channels_);
  APENET_CHECK(packet.wire_bytes > 0 && packet.wire_bytes <= max_packet_wire_bytes_,
               "packet of %u bytes on the wire, limit %u", packet.wire_bytes, max_packet_wire_bytes_);
  const Time now = simulation_.now();
  APENET_CHECK(tail_time >= now, "tail at %lld ps, before its header at %lld ps",
               static_cast<long long>(tail_time.ps()), static_cast<long long>(now.ps()));
  const std::uint32_t queue_index = first_injection_queue_ + packet.source * card_channels_ + packet.channel;
  Queue& queue = queues_[queue_index];
  settle_returns(queue, Time::zero());
  APENET_CHECK(packet.wire_bytes <= static_cast<std::uint32_t>(queue.room_bytes),
               "packet of %u bytes, room %lld in channel %u of node %u", packet.wire_bytes,
               static_cast<long long>(queue.room_bytes), packet.channel, packet.source);
  queue.room_bytes -= static_cast<std::int32_t>(packet.wire_bytes);
  const std::uint32_t flight_index = new_flight();
  Flight& flight = flights_[flight_index];
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
  if (keeps_numbers_) [[unlikely]] {
    numbers_.resize(flights_.size());
    numbers_[flight_index] = next_number_++;
  }
  trace(NetworkTrace::injected, Time::zero(), packet.source, flight);
  enter_queue(queue_index, flight_index);
}

void PacketEngine::consumed(NodeId node, const Packet& packet) {
  Endpoint& endpoint = endpoints_[node];
  endpoint.ejection_room_bytes += packet.wire_bytes;
  APENET_CHECK(endpoint.ejection_room_bytes <= ejection_buffer_bytes_,
               "node %u consumed more than arrived: room %lld of %lld bytes", node,
               static_cast<long long>(endpoint.ejection_room_bytes),
               static_cast<long long>(ejection_buffer_bytes_));
  if (outputs_[endpoint.ejection_output].waiting > 0) arbitrate(endpoint.ejection_output);
}

// --- events
// ---------------------------------------------------------------------------------------------------

// An event's arguments: index | detail << 32 and step | more << 8 | run << 40. What stands beside the index
// is there to be fetched early: for `ready` the flight, and the output that it wants; for `wake` the queue
// that will probably go, and the flight at its head; for `delivered` the node. Every queue and every output
// is a source of its own, with one event of a step at a time: the step serves as its counter. (Two wakes of
// an output at the same time are the same.) So at one instant the inputs of a router come in the order of
// their numbers.
void PacketEngine::schedule(EventKind kind, std::uint32_t source, Time when, Step step, std::uint64_t index,
                            std::uint64_t detail) {
  EventSource event_source{kind, source, static_cast<std::uint64_t>(step)};
  simulation_.schedule(event_source, when, *this, index,
                       static_cast<std::uint64_t>(step) | detail << 8U | std::uint64_t{run_} << 40U);
}

// Injection FIFOs go on when a tail has left, like the card that waits for that: before the routers.
void PacketEngine::schedule_ready(std::uint32_t queue_index, Time when) {
  const std::uint32_t head = queues_[queue_index].head;
  schedule(is_injection(queue_index) ? EventKind::link : EventKind::router, queue_index, when, Step::ready,
           queue_index | std::uint64_t{head} << 32, flights_[head].wanted_output);
}

void PacketEngine::prepare(const Event& event, Ahead ahead) const {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  const auto step = static_cast<Step>(event.argument_b & 0xff);
  if (ahead == Ahead::close) {
    prepare_close(event, step, index);
    return;
  }
  switch (step) {
    case Step::ready:
      __builtin_prefetch(&queues_[index]);
      __builtin_prefetch(&flights_[event.argument_a >> 32]);
      __builtin_prefetch(&outputs_[static_cast<std::uint32_t>(event.argument_b >> 8)]);
      return;
    case Step::wake:
      __builtin_prefetch(&outputs_[index]);
      __builtin_prefetch(&queues_[event.argument_a >> 32]);
      __builtin_prefetch(&flights_[static_cast<std::uint32_t>(event.argument_b >> 8)]);
      return;
    case Step::delivered:
      __builtin_prefetch(&flights_[index]);
      __builtin_prefetch(&endpoints_[event.argument_a >> 32]);
      __builtin_prefetch(&outputs_[event.source()]);
      return;
    case Step::injection_freed:
      __builtin_prefetch(&queues_[index]);
      return;
  }
}

// The lines named by those that the first round brought.
void PacketEngine::prepare_close(const Event& event, Step step, std::uint32_t index) const {
  if (step == Step::delivered) {
    __builtin_prefetch(endpoints_[event.argument_a >> 32].client);
  } else if (step == Step::ready || step == Step::wake) {
    const bool is_ready = step == Step::ready;
    const Output& output = outputs_[is_ready ? static_cast<std::uint32_t>(event.argument_b >> 8) : index];
    const Flight& flight =
        flights_[is_ready ? event.argument_a >> 32 : static_cast<std::uint32_t>(event.argument_b >> 8)];
    if (stages_[output.stage].kind == StageKind::ejection) {
      __builtin_prefetch(&endpoints_[output.first_buffer]);
    } else {
      __builtin_prefetch(&queues_[output.first_buffer + flight.wanted_vc]);
    }
    if (flight.next != none) __builtin_prefetch(&flights_[flight.next]);
  }
}

void PacketEngine::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  if (event.argument_b >> 40 != run_) [[unlikely]]
    return;
  switch (static_cast<Step>(event.argument_b & 0xff)) {
    case Step::ready:
      request(index);
      return;
    case Step::wake:
      if (outputs_[index].wake_at != simulation_.now()) return;
      outputs_[index].wake_at = Time::never();
      arbitrate(index);
      return;
    case Step::delivered:
      deliver(index);
      return;
    case Step::injection_freed:
      tell_injection_freed(index);
      return;
  }
}

// The earliest of the wakes asked for is the one that counts: arbitration asks again for what it still needs.
void PacketEngine::wake(std::uint32_t output_index, Time when, std::uint32_t queue_index) {
  Output& output = outputs_[output_index];
  if (when >= output.wake_at) return;
  output.wake_at = when;
  schedule(EventKind::link, output_index, when, Step::wake, output_index | std::uint64_t{queue_index} << 32,
           queues_[queue_index].head);
}

void PacketEngine::deliver(std::uint32_t flight_index) {
  Flight& flight = flights_[flight_index];
  const Packet packet = flight.packet();
  const Time head_time = flight.ready;
  trace(NetworkTrace::delivered, Time::zero(), packet.destination, flight);
  flight.next = free_flight_;
  free_flight_ = flight_index;
  NetworkClient* const client = endpoints_[packet.destination].client;
  APENET_CHECK(client != nullptr, "packet for node %u, which has no client", packet.destination);
  client->packet_arrived(packet, head_time);
}

void PacketEngine::tell_injection_freed(std::uint32_t queue_index) {
  queues_[queue_index].needed_bytes = 0;
  const std::uint32_t number = queue_index - first_injection_queue_;
  NetworkClient* const client = endpoints_[number / card_channels_].client;
  APENET_CHECK(client != nullptr, "node %u injected without a client", number / card_channels_);
  client->injection_freed(static_cast<std::uint16_t>(number % card_channels_));
}

// --- requests and arbitration
// ---------------------------------------------------------------------------------

// The head of the queue is ready to leave.
void PacketEngine::request(std::uint32_t queue_index) {
  if (gate_ != nullptr && is_injection(queue_index) &&
      !gate_->admits(flights_[queues_[queue_index].head].packet())) [[unlikely]] {
    return;
  }
  if (flights_[queues_[queue_index].head].may_turn) choose_by_room(queue_index);
  ask(queue_index);
}

// The head of the queue takes the output that it wants, or waits for it.
void PacketEngine::ask(std::uint32_t queue_index) {
  const Flight& flight = flights_[queues_[queue_index].head];
  const std::uint32_t output_index = flight.wanted_output;
  Output& output = outputs_[output_index];
  const std::uint32_t number = queue_index - first_queue(output.owner);
  const bool is_free = output.free_at <= simulation_.now();
  if (output.waiting == 0 && is_free && has_room(output, flight.wanted_vc, flight.wire_bytes)) {
    output.last_granted = static_cast<std::uint16_t>(number);
    grant(queue_index, output_index);
    return;
  }
  waiting_word(output_index, number / 64) |= std::uint64_t{1} << number % 64;
  ++output.waiting;
  if (is_free) {
    arbitrate(output_index);
  } else {
    wake(output_index, output.free_at, queue_index);
  }
}

// A packet of an adaptive routing chooses again when it is ready: until then the first step is only a guess
// at what it will touch.
void PacketEngine::choose_output(Flight& flight, std::uint32_t queue_index) const {
  const std::uint32_t owner = owner_of(queue_index);
  flight.may_turn = false;
  if (owner >= router_count_) {
    flight.wanted_output = router_count_ * ports_ + flight.source;
    flight.wanted_vc = static_cast<std::uint8_t>(flight.channel % virtual_channels_);
    return;
  }
  const RouteSteps steps = steps_of(flight, queue_index);
  std::uint32_t chosen = 0;
  if (steps.choice() != RouteChoice::only) {
    flight.may_turn = steps.choice() == RouteChoice::adaptive;
    if (!flight.may_turn) chosen = draw_step(steps.count(), simulation_.seed(), flight.packet(), owner);
  }
  want(flight, owner, steps[chosen]);
}

// Calls visit(queue_index) for the waiting queues, round robin from behind the one granted last, until it
// says true.
template <typename Visit>
void PacketEngine::visit_waiting(std::uint32_t output_index, Visit visit) {
  const Output& output = outputs_[output_index];
  const std::uint32_t first = first_queue(output.owner);
  const std::uint32_t start =
      output.last_granted + 1U == stages_[output.stage].queue_count ? 0 : output.last_granted + 1U;
  for (std::uint32_t i = 0; i <= waiting_words_; ++i) {
    const std::uint32_t index = (start / 64 + i) % waiting_words_;
    const std::uint64_t from_start = ~std::uint64_t{0} << start % 64;
    std::uint64_t word = waiting_word(output_index, index);
    if (i == 0) word &= from_start;
    if (i == waiting_words_) word &= ~from_start;
    for (; word != 0; word &= word - 1) {
      if (visit(first + index * 64 + static_cast<std::uint32_t>(std::countr_zero(word)))) return;
    }
  }
}

// The first in the round; requires that one waits.
std::uint32_t PacketEngine::next_waiting(std::uint32_t output_index) {
  std::uint32_t next = none;
  visit_waiting(output_index, [&next](std::uint32_t queue_index) {
    next = queue_index;
    return true;
  });
  return next;
}

// A queue whose virtual channel lacks room keeps those behind it in the round from taking the channel:
// otherwise small packets could hold back a large one for ever.
void PacketEngine::arbitrate(std::uint32_t output_index) {
  Output& output = outputs_[output_index];
  if (output.waiting == 0) return;
  if (output.free_at > simulation_.now()) {
    wake(output_index, output.free_at, next_waiting(output_index));
    return;
  }
  std::uint64_t refused = 0;  // a bit for each virtual channel
  std::uint32_t chosen = none;
  bool somebody_turns = false;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = flights_[queues_[queue_index].head];
    const std::uint64_t bit = std::uint64_t{1} << flight.wanted_vc;
    if ((refused & bit) != 0) return false;
    if (!has_room(output, flight.wanted_vc, flight.wire_bytes)) {
      refused |= bit;
      somebody_turns |= flight.may_turn;
      return false;
    }
    chosen = queue_index;
    return true;
  });
  std::vector<std::uint32_t> turning;
  if (somebody_turns) turning = take_refused(output_index, refused);
  if (chosen == none) {
    await_room(output_index);
  } else {
    const std::uint32_t number = chosen - first_queue(output.owner);
    stop_waiting(output_index, number);
    output.last_granted = static_cast<std::uint16_t>(number);
    grant(chosen, output_index);
    if (output.waiting > 0) wake(output_index, output.free_at, next_waiting(output_index));
  }
  for (const std::uint32_t queue_index : turning) turn_to_escape(queue_index);
}

void PacketEngine::stop_waiting(std::uint32_t output_index, std::uint32_t number) {
  waiting_word(output_index, number / 64) &= ~(std::uint64_t{1} << number % 64);
  --outputs_[output_index].waiting;
}

// Those who may turn leave the output if the virtual channel that they want has no room.
std::vector<std::uint32_t> PacketEngine::take_refused(std::uint32_t output_index, std::uint64_t refused) {
  std::vector<std::uint32_t> turning;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = flights_[queues_[queue_index].head];
    if (flight.may_turn && (refused >> flight.wanted_vc & 1U) != 0) turning.push_back(queue_index);
    return false;
  });
  const std::uint32_t first = first_queue(outputs_[output_index].owner);
  for (const std::uint32_t queue_index : turning) stop_waiting(output_index, queue_index - first);
  return turning;
}

// Nobody who waits has room. Wakes the output when the first of them will have; where the space is still
// occupied, leave_queue does so when the packet in it leaves.
void PacketEngine::await_room(std::uint32_t output_index) {
  const Output& output = outputs_[output_index];
  if (stages_[output.stage].kind == StageKind::ejection) return;  // consumed() arbitrates
  std::uint64_t seen = 0;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Flight& flight = flights_[queues_[queue_index].head];
    const std::uint64_t bit = std::uint64_t{1} << flight.wanted_vc;
    if ((seen & bit) != 0) return false;
    seen |= bit;
    Queue& buffer = queues_[output.first_buffer + flight.wanted_vc];
    const Time time = room_time(buffer, flight.wire_bytes);
    if (time == Time::never()) {
      buffer.needed_bytes = flight.wire_bytes;
    } else {
      wake(output_index, time, queue_index);
    }
    return false;
  });
}

// --- movement
// -------------------------------------------------------------------------------------------------

// The head packet of the queue leaves now through the output. See docs/models/network.md, "One hop".
void PacketEngine::grant(std::uint32_t queue_index, std::uint32_t output_index) {
  Output& output = outputs_[output_index];
  const Stage& stage = stages_[output.stage];
  const std::uint32_t flight_index = queues_[queue_index].head;
  Flight& flight = flights_[flight_index];
  const std::uint32_t bytes = flight.wire_bytes;
  const Time now = simulation_.now();
  const Time header_out = stage.bit_error_rate > 0 ? pass_errors(output_index, flight) : now;
  const Time tail_out =
      std::max(header_out + stage.serialisation.duration(bytes), flight.tail_in + stage.tail_latency);
  output.free_at = tail_out;
  output.busy += tail_out - now;
  ++output.packets;
  output.wire_bytes += bytes;
  if (simulation_.is_traced()) [[unlikely]]
    trace_grant(output_index, tail_out, flight);

  leave_queue(queue_index, tail_out, flight.is_resent ? 0 : bytes);
  flight.is_resent = false;
  flight.tail_in = tail_out + stage.latency;
  flight.next = none;
  if (stage.kind == StageKind::ejection) {
    endpoints_[output.first_buffer].ejection_room_bytes -= bytes;
    flight.ready = header_out + stage.latency;
    schedule(EventKind::link, output_index, flight.tail_in, Step::delivered,
             flight_index | std::uint64_t{output.first_buffer} << 32);
    return;
  }
  if (stage.kind == StageKind::link) ++flight.hops;
  flight.ready = header_out + stage.latency + router_latency_;
  const std::uint32_t buffer_index = output.first_buffer + flight.wanted_vc;
  queues_[buffer_index].room_bytes -= static_cast<std::int32_t>(bytes);
  enter_queue(buffer_index, flight_index);
}

// The head of the queue goes; its tail at tail_out. Its space, if it has any, returns after that, and the
// next packet follows.
void PacketEngine::leave_queue(std::uint32_t queue_index, Time tail_out, std::uint32_t bytes) {
  Queue& queue = queues_[queue_index];
  const Time credit_latency = is_injection(queue_index) ? Time::zero() : credit_latency_;
  settle_returns(queue, credit_latency);
  if (queue.returning_bytes != 0) add_return(queue, queue.free_at + credit_latency);
  queue.free_at = tail_out;
  queue.returning_bytes = bytes;
  queue.head = flights_[queue.head].next;
  if (queue.needed_bytes != 0 && bytes != 0) tell_room(queue_index);
  if (queue.head != none) schedule_ready(queue_index, std::max(tail_out, flights_[queue.head].ready));
}

void PacketEngine::enter_queue(std::uint32_t queue_index, std::uint32_t flight_index) {
  Queue& queue = queues_[queue_index];
  Flight& flight = flights_[flight_index];
  choose_output(flight, queue_index);
  if (queue.head != none) {
    flights_[queue.tail].next = flight_index;
    queue.tail = flight_index;
    return;
  }
  queue.head = flight_index;
  queue.tail = flight_index;
  if (is_halted_) [[unlikely]]
    return;
  const Time ready = std::max(flight.ready, queue.free_at);
  if (ready == simulation_.now()) {
    request(queue_index);  // no latency in between: an event would only repeat what is known
  } else {
    schedule_ready(queue_index, ready);
  }
}

// --- records
// --------------------------------------------------------------------------------------------------

// Credits that have come back are counted only when somebody looks, or when the next one sets out.
bool PacketEngine::has_room(const Output& output, std::uint32_t vc, std::uint32_t bytes) {
  if (stages_[output.stage].kind == StageKind::ejection) {
    return endpoints_[output.first_buffer].ejection_room_bytes >= bytes;
  }
  Queue& queue = queues_[output.first_buffer + vc];
  const auto needed = static_cast<std::int32_t>(bytes);
  if (queue.room_bytes >= needed) return true;
  settle_returns(queue, credit_latency_);
  return queue.room_bytes >= needed;
}

// When credits already on their way will make the room; never() when those do not suffice.
Time PacketEngine::room_time(const Queue& queue, std::uint32_t bytes) const {
  std::int64_t room_bytes = queue.room_bytes;
  if (queue.earlier_returns != none) {
    const std::uint32_t last = queue.earlier_returns;
    std::uint32_t index = last;
    do {
      index = returns_[index].next;
      room_bytes += returns_[index].bytes;
      if (room_bytes >= bytes) return returns_[index].time;
    } while (index != last);
  }
  room_bytes += queue.returning_bytes;
  return queue.returning_bytes != 0 && room_bytes >= bytes ? queue.free_at + credit_latency_ : Time::never();
}

// Counts what has come back.
void PacketEngine::settle_returns(Queue& queue, Time credit_latency) {
  const Time now = simulation_.now();
  while (queue.earlier_returns != none) {
    CreditReturn& last = returns_[queue.earlier_returns];
    const std::uint32_t index = last.next;
    CreditReturn& first = returns_[index];
    if (first.time > now) return;
    queue.room_bytes += static_cast<std::int32_t>(first.bytes);
    if (index == queue.earlier_returns) {
      queue.earlier_returns = none;
    } else {
      last.next = first.next;
    }
    first.next = free_return_;
    free_return_ = index;
  }
  if (queue.returning_bytes != 0 && queue.free_at + credit_latency <= now) {
    queue.room_bytes += static_cast<std::int32_t>(queue.returning_bytes);
    queue.returning_bytes = 0;
  }
}

// Another packet follows before the credit of the last one is back.
void PacketEngine::add_return(Queue& queue, Time time) {
  std::uint32_t index = free_return_;
  if (index == none) {
    index = static_cast<std::uint32_t>(returns_.size());
    returns_.emplace_back();
  } else {
    free_return_ = returns_[index].next;
  }
  returns_[index] = {time, queue.returning_bytes, index};
  if (queue.earlier_returns != none) std::swap(returns_[index].next, returns_[queue.earlier_returns].next);
  queue.earlier_returns = index;
}

// Somebody waits for room in this queue, and a packet has just set out.
void PacketEngine::tell_room(std::uint32_t queue_index) {
  Queue& queue = queues_[queue_index];
  if (is_injection(queue_index)) {
    if (queue.needed_bytes == told_bytes) return;
    queue.needed_bytes = told_bytes;
    schedule(EventKind::link, queue_index, queue.free_at, Step::injection_freed, queue_index);
    return;
  }
  const Time time = room_time(queue, queue.needed_bytes);
  if (time == Time::never()) return;
  queue.needed_bytes = 0;
  const std::uint32_t upstream = upstream_[queue_index / virtual_channels_];
  if (outputs_[upstream].waiting == 0) return;
  wake(upstream, std::max(time, outputs_[upstream].free_at), next_waiting(upstream));
}

std::uint32_t PacketEngine::new_flight() {
  if (free_flight_ == none) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t index = free_flight_;
  free_flight_ = flights_[index].next;
  return index;
}

void PacketEngine::trace(NetworkTrace what, Time until, std::uint32_t place, const Flight& flight) const {
  if (!simulation_.is_traced()) return;
  const bool is_injection = what == NetworkTrace::injected;
  simulation_.trace(network_record(what, simulation_.now(), until, place,
                                   is_injection ? flight.destination : flight.source, flight.message,
                                   flight.sequence, flight.wire_bytes));
}

void PacketEngine::trace_grant(std::uint32_t output_index, Time tail_out, const Flight& flight) const {
  const StageKind kind = stages_[outputs_[output_index].stage].kind;
  if (kind == StageKind::injection) return;  // from the card into its own router
  if (kind == StageKind::ejection) {
    trace(NetworkTrace::ejected, Time::zero(), flight.destination, flight);
    return;
  }
  const auto link = std::lower_bound(links_.begin(), links_.end(), output_index) - links_.begin();
  trace(NetworkTrace::crossed, tail_out, static_cast<std::uint32_t>(link), flight);
}

}  // namespace apenet
