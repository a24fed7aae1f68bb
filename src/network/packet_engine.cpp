#include "network/packet_engine.hpp"

#include <bit>

#include "kernel/check.hpp"

namespace apenet {

// --- what a card sees
// -----------------------------------------------------------------------------------------

std::int64_t PacketEngine::injection_room(NodeId node, std::uint16_t channel) const {
  APENET_CHECK(node < endpoints_.size() && channel < card_channels_, "node %u of %zu, channel %u of %u", node,
               endpoints_.size(), channel, card_channels_);
  return queues_[first_injection_queue_ + node * card_channels_ + channel].room_bytes;
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
  APENET_CHECK(packet.wire_bytes <= queue.room_bytes,
               "packet of %u bytes, room %lld in channel %u of node %u", packet.wire_bytes,
               static_cast<long long>(queue.room_bytes), packet.channel, packet.source);
  queue.room_bytes -= packet.wire_bytes;
  const std::uint32_t flight_index = new_flight();
  Flight& flight = flights_[flight_index];
  flight.packet = packet;
  flight.packet.hops = 0;
  flight.tail_in = tail_time;
  flight.ready = now;
  trace(static_cast<std::uint16_t>(NetworkTrace::injected), packet.source, packet);
  enter_queue(queue_index, flight_index, router_sources_[queue.router]);
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

void PacketEngine::schedule(EventSource& source, Time when, Step step, std::uint64_t index) {
  simulation_.schedule(source, when, *this, index, static_cast<std::uint64_t>(step));
}

void PacketEngine::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  switch (static_cast<Step>(event.argument_b)) {
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
      free_injection(index, static_cast<std::uint32_t>(event.argument_a >> 32));
      return;
  }
}

// The earliest of the wakes asked for is the one that counts: arbitration asks again for what it still needs.
void PacketEngine::wake(std::uint32_t output_index, Time when) {
  Output& output = outputs_[output_index];
  if (when >= output.wake_at) return;
  output.wake_at = when;
  schedule(link_sources_[output.router], when, Step::wake, output_index);
}

void PacketEngine::deliver(std::uint32_t flight_index) {
  Flight& flight = flights_[flight_index];
  const Packet packet = flight.packet;
  const Time head_time = flight.ready;
  flight.next = free_flight_;
  free_flight_ = flight_index;
  trace(static_cast<std::uint16_t>(NetworkTrace::delivered), packet.destination, packet);
  NetworkClient* const client = endpoints_[packet.destination].client;
  APENET_CHECK(client != nullptr, "packet for node %u, which has no client", packet.destination);
  client->packet_arrived(packet, head_time);
}

void PacketEngine::free_injection(std::uint32_t queue_index, std::uint32_t bytes) {
  queues_[queue_index].room_bytes += bytes;
  const std::uint32_t number = queue_index - first_injection_queue_;
  NetworkClient* const client = endpoints_[number / card_channels_].client;
  APENET_CHECK(client != nullptr, "node %u injected without a client", number / card_channels_);
  client->injection_freed(static_cast<std::uint16_t>(number % card_channels_));
}

// --- requests and arbitration
// ---------------------------------------------------------------------------------

// The head of the queue is ready to leave.
void PacketEngine::request(std::uint32_t queue_index) {
  Queue& queue = queues_[queue_index];
  choose_output(queue, queue_index);
  Output& output = outputs_[queue.wanted_output];
  const bool is_free = output.free_at <= simulation_.now();
  if (output.waiting == 0 && is_free &&
      has_room(output, queue.wanted_buffer, flights_[queue.head].packet.wire_bytes)) {
    output.last_granted = static_cast<std::uint16_t>(queue_index - output.first_queue);
    grant(queue_index);
    return;
  }
  const std::uint32_t bit = queue_index - output.first_queue;
  waiting_[queue.wanted_output * waiting_words_ + bit / 64] |= std::uint64_t{1} << bit % 64;
  ++output.waiting;
  if (is_free) {
    arbitrate(queue.wanted_output);
  } else {
    wake(queue.wanted_output, output.free_at);
  }
}

void PacketEngine::choose_output(Queue& queue, std::uint32_t queue_index) {
  const Packet& packet = flights_[queue.head].packet;
  if (is_injection(queue_index)) {
    queue.wanted_output = endpoints_[packet.source].injection_output;
    queue.wanted_buffer = outputs_[queue.wanted_output].first_buffer + packet.channel % virtual_channels_;
    return;
  }
  const RouteStep step = routing_->route(queue.router, packet.destination);
  queue.wanted_output = queue.router * ports_ + step.port;
  const Output& output = outputs_[queue.wanted_output];
  queue.wanted_buffer = output.first_buffer;
  if (output.kind == OutputKind::link) {
    const std::uint32_t lane = lanes_ == 1 ? 0 : packet.channel % lanes_;
    queue.wanted_buffer += step.channel_class * lanes_ + lane;
  }
}

// Calls visit(queue_index) for the waiting queues, round robin from behind the one granted last, until it
// says true.
template <typename Visit>
void PacketEngine::visit_waiting(std::uint32_t output_index, Visit visit) {
  const Output& output = outputs_[output_index];
  const std::uint64_t* const words = &waiting_[output_index * waiting_words_];
  const std::uint32_t start = output.last_granted + 1U == output.queue_count ? 0 : output.last_granted + 1U;
  for (std::uint32_t i = 0; i <= waiting_words_; ++i) {
    const std::uint32_t index = (start / 64 + i) % waiting_words_;
    const std::uint64_t from_start = ~std::uint64_t{0} << start % 64;
    std::uint64_t word = words[index];
    if (i == 0) word &= from_start;
    if (i == waiting_words_) word &= ~from_start;
    for (; word != 0; word &= word - 1) {
      if (visit(output.first_queue + index * 64 + static_cast<std::uint32_t>(std::countr_zero(word)))) return;
    }
  }
}

// A queue whose virtual channel lacks room keeps those behind it in the round from taking the channel:
// otherwise small packets could hold back a large one for ever.
void PacketEngine::arbitrate(std::uint32_t output_index) {
  Output& output = outputs_[output_index];
  if (output.waiting == 0) return;
  if (output.free_at > simulation_.now()) {
    wake(output_index, output.free_at);
    return;
  }
  std::uint64_t refused = 0;  // a bit for each virtual channel
  std::uint32_t chosen = none;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const Queue& queue = queues_[queue_index];
    const std::uint64_t bit = std::uint64_t{1} << (queue.wanted_buffer - output.first_buffer);
    if ((refused & bit) != 0) return false;
    if (!has_room(output, queue.wanted_buffer, flights_[queue.head].packet.wire_bytes)) {
      refused |= bit;
      return false;
    }
    chosen = queue_index;
    return true;
  });
  if (chosen == none) {
    await_room(output_index);
    return;
  }
  const std::uint32_t bit = chosen - output.first_queue;
  waiting_[output_index * waiting_words_ + bit / 64] &= ~(std::uint64_t{1} << bit % 64);
  --output.waiting;
  output.last_granted = static_cast<std::uint16_t>(bit);
  grant(chosen);
  if (output.waiting > 0) wake(output_index, output.free_at);
}

// Nobody who waits has room. Wakes the output when the first of them will have; where the space is still
// occupied, leave_queue does so when the packet in it leaves.
void PacketEngine::await_room(std::uint32_t output_index) {
  const Output& output = outputs_[output_index];
  if (output.kind == OutputKind::ejection) return;  // consumed() arbitrates
  std::uint64_t seen = 0;
  visit_waiting(output_index, [&](std::uint32_t queue_index) {
    const std::uint32_t buffer_index = queues_[queue_index].wanted_buffer;
    const std::uint64_t bit = std::uint64_t{1} << (buffer_index - output.first_buffer);
    if ((seen & bit) != 0) return false;
    seen |= bit;
    Queue& buffer = queues_[buffer_index];
    const std::uint32_t bytes = flights_[queues_[queue_index].head].packet.wire_bytes;
    const Time time = room_time(buffer, bytes);
    if (time == Time::never()) {
      buffer.needed_bytes = bytes;
    } else {
      wake(output_index, time);
    }
    return false;
  });
}

// --- movement
// -------------------------------------------------------------------------------------------------

// The head packet of the queue leaves now through the output it wants. See docs/models/network.md, "One hop".
void PacketEngine::grant(std::uint32_t queue_index) {
  Queue& queue = queues_[queue_index];
  const std::uint32_t output_index = queue.wanted_output;
  Output& output = outputs_[output_index];
  const Stage& stage = stages_[output.stage];
  const std::uint32_t flight_index = queue.head;
  Flight& flight = flights_[flight_index];
  const std::uint32_t bytes = flight.packet.wire_bytes;
  const Time now = simulation_.now();
  const Time tail_through =
      output.kind == OutputKind::injection ? flight.tail_in : flight.tail_in + router_latency_;
  const Time tail_out = std::max(now + stage.serialisation.duration(bytes), tail_through);
  output.free_at = tail_out;
  output.busy += tail_out - now;
  ++output.packets;
  output.wire_bytes += bytes;
  trace(static_cast<std::uint16_t>(NetworkTrace::granted), output_index, flight.packet);
  EventSource& link_source = link_sources_[output.router];

  leave_queue(queue_index, tail_out, bytes);
  flight.tail_in = tail_out + stage.latency;
  flight.next = none;
  if (output.kind == OutputKind::ejection) {
    endpoints_[output.first_buffer].ejection_room_bytes -= bytes;
    flight.ready = now + stage.latency;
    schedule(link_source, flight.tail_in, Step::delivered, flight_index);
    return;
  }
  if (output.kind == OutputKind::link) ++flight.packet.hops;
  flight.ready = now + stage.latency + router_latency_;
  queues_[queue.wanted_buffer].room_bytes -= bytes;
  enter_queue(queue.wanted_buffer, flight_index, router_sources_[output.router]);
}

// The head of the queue goes; its tail at tail_out. The space returns after that, and the next packet
// follows.
void PacketEngine::leave_queue(std::uint32_t queue_index, Time tail_out, std::uint32_t bytes) {
  Queue& queue = queues_[queue_index];
  queue.free_at = tail_out;
  queue.head = flights_[queue.head].next;
  if (is_injection(queue_index)) {
    schedule(link_sources_[queue.router], tail_out, Step::injection_freed,
             queue_index | std::uint64_t{bytes} << 32);
  } else {
    add_return(queue, tail_out + credit_latency_, bytes);
    if (queue.needed_bytes != 0) {
      const Time time = room_time(queue, queue.needed_bytes);
      if (time != Time::never()) {
        queue.needed_bytes = 0;
        wake(queue.upstream_output, std::max(time, outputs_[queue.upstream_output].free_at));
      }
    }
  }
  if (queue.head == none) {
    queue.tail = none;
  } else {
    schedule(router_sources_[queue.router], std::max(tail_out, flights_[queue.head].ready), Step::ready,
             queue_index);
  }
}

void PacketEngine::enter_queue(std::uint32_t queue_index, std::uint32_t flight_index, EventSource& source) {
  Queue& queue = queues_[queue_index];
  if (queue.tail != none) {
    flights_[queue.tail].next = flight_index;
    queue.tail = flight_index;
    return;
  }
  queue.head = flight_index;
  queue.tail = flight_index;
  const Time ready = std::max(flights_[flight_index].ready, queue.free_at);
  if (ready == simulation_.now()) {
    request(queue_index);  // no latency in between: an event would only repeat what is known
  } else {
    schedule(source, ready, Step::ready, queue_index);
  }
}

// --- records
// --------------------------------------------------------------------------------------------------

// Credits that have come back are counted only when somebody looks.
bool PacketEngine::has_room(const Output& output, std::uint32_t buffer, std::uint32_t bytes) {
  if (output.kind == OutputKind::ejection) return endpoints_[buffer].ejection_room_bytes >= bytes;
  Queue& queue = queues_[buffer];
  while (queue.room_bytes < bytes && queue.first_return != none) {
    CreditReturn& credit = returns_[queue.first_return];
    if (credit.time > simulation_.now()) return false;
    queue.room_bytes += credit.bytes;
    const std::uint32_t next = credit.next;
    credit.next = free_return_;
    free_return_ = queue.first_return;
    queue.first_return = next;
    if (next == none) queue.last_return = none;
  }
  return queue.room_bytes >= bytes;
}

// When credits already on their way will make the room; never() when those do not suffice.
Time PacketEngine::room_time(const Queue& queue, std::uint32_t bytes) const {
  std::int64_t room_bytes = queue.room_bytes;
  for (std::uint32_t i = queue.first_return; i != none; i = returns_[i].next) {
    room_bytes += returns_[i].bytes;
    if (room_bytes >= bytes) return returns_[i].time;
  }
  return Time::never();
}

void PacketEngine::add_return(Queue& queue, Time time, std::uint32_t bytes) {
  std::uint32_t index = free_return_;
  if (index == none) {
    index = static_cast<std::uint32_t>(returns_.size());
    returns_.emplace_back();
  } else {
    free_return_ = returns_[index].next;
  }
  returns_[index] = {time, bytes, none};
  if (queue.last_return == none) {
    queue.first_return = index;
  } else {
    returns_[queue.last_return].next = index;
  }
  queue.last_return = index;
}

std::uint32_t PacketEngine::new_flight() {
  if (free_flight_ == none) {
    flights_.emplace_back();
    return static_cast<std::uint32_t>(flights_.size() - 1);
  }
  const std::uint32_t index = free_flight_;
  free_flight_ = flights_[index].next;
  flights_[index].next = none;
  return index;
}

void PacketEngine::trace(std::uint16_t what, std::uint32_t place, const Packet& packet) const {
  if (!simulation_.is_traced()) return;
  simulation_.trace({simulation_.now(), EventKind::link, what, place, packet.message,
                     std::uint64_t{packet.source} << 32 | packet.sequence});
}

}  // namespace apenet
