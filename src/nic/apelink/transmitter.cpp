#include "nic/apelink/transmitter.hpp"

#include <algorithm>
#include <bit>

namespace apenet::apelink {

namespace {

// Upper byte of bus tags and event arguments.
enum TransmitterTag : std::uint8_t {
  descriptor_write,  // which: queue and entry number
  descriptor_fetch,
  descriptor_decoded,  // which: queue; second argument: message
  payload_read,        // which: PayloadRead
  payload_data,        // which: Memory and channel; second argument: end of the burst
  payload_gone,        // which: message
  sent_event,
};

constexpr unsigned entry_number_bits = 32;

constexpr std::uint64_t entry_name(std::size_t queue, std::uint32_t number) {
  return std::uint64_t{queue} << entry_number_bits | number;
}

constexpr unsigned channel_bits = 16;

// The purpose of a payload read: memory and channel of the packet, and whether the source must be notified
// (after the last packet of a message that requests it).
struct PayloadRead {
  Memory memory;
  std::uint16_t channel;
  bool reports_sent;
  bool is_last;
  MessageId id;
};

constexpr std::uint64_t pack(const PayloadRead& read) {
  return std::uint64_t{read.is_last} << 53U | std::uint64_t{read.reports_sent} << 52U |
         static_cast<std::uint64_t>(read.memory) << 48U | std::uint64_t{read.channel} << 32U | read.id;
}

constexpr PayloadRead payload_read_of(std::uint64_t which) {
  return {static_cast<Memory>(which >> 48U & 0xfU), static_cast<std::uint16_t>(which >> 32U),
          (which >> 52U & 1U) != 0, which >> 53U != 0, static_cast<MessageId>(which)};
}

// The memory from which a packet's payload is read. For the reply to a get, the target's card reads it.
constexpr Memory memory_read(const Descriptor& descriptor, Role role) {
  return role == Role::get_reply ? descriptor.remote_memory : descriptor.local_memory;
}

}  // namespace

Transmitter::Transmitter(Card& card)
    : card_(card), queues_(card.all.take_queues(card.all.placement.processes_on(card.node()))) {}

std::size_t Transmitter::queue_index(MessageId id, Role role) const {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const ProcessId owner = role == Role::get_reply ? descriptor.target : descriptor.source;
  return card_.all.placement.port(owner) * channel_count() + descriptor.channel;
}

void Transmitter::post(MessageId id, Role role) {
  const std::size_t index = queue_index(id, role);
  Queue& queue = queues_[index];
  const QueuedDescriptor entry{id, role, Time::never()};
  const auto capacity = static_cast<std::size_t>(card_.all.description.descriptor_fifo_entries);
  if (queue.size < capacity && queue.in_host_memory.empty()) {
    write_descriptor(index, entry);
  } else {
    ++card_.all.counters.descriptors_held_back;
    card_.all.messages.enter(id, Stage::card_queue);
    card_.all.state.entries.push(queue.in_host_memory, entry);
  }
}

void Transmitter::write_descriptor(std::size_t index, const QueuedDescriptor& entry) {
  Queue& queue = queues_[index];
  const Descriptor& descriptor = card_.all.messages.descriptor(entry.id);
  const bool carries_payload = descriptor.from_cpu && entry.role == Role::data;
  const std::int64_t bytes =
      card_.all.description.descriptor_bytes + (carries_payload ? descriptor.bytes : 0);
  const std::uint32_t number = queue.head_number + queue.size;
  card_.all.state.entries.push(queue.fifo, entry);
  ++queue.size;
  // The latency of a processor write includes its bus clocks, which on an idle bus are already over.
  const Time clocks = std::min(card_.bus.occupancy(bytes), card_.now());
  card_.bus.write(Bus::Master::processor, bytes, card_.now() - clocks, *this,
                  make_tag(descriptor_write, entry_name(index, number)));
}

void Transmitter::fetch_descriptor(std::size_t index) {
  Queue& queue = queues_[index];
  const std::uint32_t number = queue.head_number + queue.size;
  card_.all.state.entries.push(queue.fifo, card_.all.state.entries.pop(queue.in_host_memory));
  ++queue.size;
  card_.bus.read(card_.all.description.descriptor_bytes, *this,
                 make_tag(descriptor_fetch, entry_name(index, number)));
}

void Transmitter::descriptor_granted(const BusGrant& grant) {
  const std::uint64_t which = tag_which(grant.tag);
  const std::size_t index = which >> entry_number_bits;
  const auto number = static_cast<std::uint32_t>(which);
  Queue& queue = queues_[index];
  QueuedDescriptor& entry = card_.all.state.entries.at(queue.fifo, number - queue.head_number);
  entry.present_at = grant.end;
  if (tag_what(grant.tag) == descriptor_write) {
    card_.all.messages.enter_doorbell(entry.id, grant.ready, grant.begin);
  } else {
    card_.all.messages.enter_bus(entry.id, grant.ready, grant.begin);
  }
  card_.all.messages.enter(entry.id, Stage::card_queue, grant.end);
  if (number == queue.head_number) decode_head(index);
}

void Transmitter::decode_head(std::size_t index) {
  Queue& queue = queues_[index];
  const bool is_decoded = (state_.decoded >> index & 1U) != 0;
  if (queue.decoding || is_decoded || queue.fifo.empty()) return;
  const QueuedDescriptor& head = card_.all.state.entries.front(queue.fifo);
  if (head.present_at == Time::never()) return;
  queue.decoding = true;
  const Time begin = std::max(card_.now(), head.present_at);
  decoder(index).take(head.present_at, begin, card_.all.decode_time);
  card_.all.messages.enter(head.id, Stage::card, begin);
  card_.all.simulation.schedule(card_.state.source, begin + card_.all.decode_time, *this,
                                make_tag(descriptor_decoded, index), head.id);
}

void Transmitter::finish_head(std::size_t index) {
  Queue& queue = queues_[index];
  card_.all.state.entries.pop(queue.fifo);
  --queue.size;
  ++queue.head_number;
  state_.decoded &= ~(std::uint64_t{1} << index);
  queue.next_packet = 0;
  if (!queue.in_host_memory.empty()) fetch_descriptor(index);
  decode_head(index);
}

void Transmitter::acknowledge(MessageId id) {
  card_.all.state.acknowledgements.push(channel(card_.all.messages.descriptor(id).channel).acknowledgements,
                                        id);
  ++state_.acknowledgements;
  pump();
}

void Transmitter::injection_freed(std::uint16_t) {
  pump();
}

// Serves the queues in turn. A queue that is refused stays refused until space or a read becomes free, so it
// is not asked again in this call. It keeps its turn: otherwise, if space becomes free for one packet at a
// time, the same queue would always get it.
void Transmitter::pump() {
  if (state_.acknowledgements > 0) issue_acknowledgements();
  std::uint64_t candidates = state_.decoded;
  while (candidates != 0) {
    const int steps = std::countr_zero(std::rotr(candidates, static_cast<int>(state_.next_queue)));
    const unsigned index = (state_.next_queue + static_cast<unsigned>(steps)) % max_queues;
    const std::uint64_t bit = std::uint64_t{1} << index;
    const bool is_issued = issue_packet(index);
    if (is_issued) state_.next_queue = (index + 1) % max_queues;
    if (!is_issued || (state_.decoded & bit) == 0) candidates &= ~bit;
  }
}

// If there is no room, requests a call of injection_freed().
bool Transmitter::has_room(std::uint16_t number, std::int64_t wire_bytes) {
  const std::int64_t room = card_.all.network.injection_room(card_.node(), number);
  if (room - channel(number).reserved_bytes >= wire_bytes) return true;
  card_.all.network.await_injection_room(card_.node(), number);
  return false;
}

Packet Transmitter::make_packet(MessageId id, Role role, std::uint32_t sequence) const {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const CommonDescription& card = card_.all.description;
  const bool to_source = role == Role::get_reply || role == Role::acknowledgement;
  const bool has_payload = carries_payload(role);
  const std::int64_t payload = has_payload ? payload_of(card, descriptor.bytes, sequence) : 0;
  Packet packet;
  packet.source = card_.node();
  packet.destination = card_.all.placement.node(to_source ? descriptor.source : descriptor.target);
  packet.payload_bytes = static_cast<std::uint32_t>(payload);
  packet.wire_bytes =
      static_cast<std::uint32_t>(padded(card, payload) + card.header_bytes + card.footer_bytes);
  packet.message = packet_message(id, role, !wants_delivered(descriptor));
  packet.sequence = sequence;
  packet.channel = descriptor.channel;
  packet.last = !has_payload || std::int64_t{sequence} * card.max_payload_bytes + payload == descriptor.bytes;
  return packet;
}

void Transmitter::issue_acknowledgements() {
  for (std::size_t i = 0; i < channel_count(); ++i) {
    QueuePool<MessageId>::Queue& waiting = channel(i).acknowledgements;
    while (!waiting.empty()) {
      const Packet packet =
          make_packet(card_.all.state.acknowledgements.front(waiting), Role::acknowledgement, 0);
      if (!has_room(packet.channel, packet.wire_bytes)) break;
      card_.all.state.acknowledgements.pop(waiting);
      --state_.acknowledgements;
      ++card_.all.counters.acknowledgements;
      inject(packet, card_.now());
    }
  }
}

bool Transmitter::issue_packet(std::size_t index) {
  Queue& queue = queues_[index];
  const QueuedDescriptor head = card_.all.state.entries.front(queue.fifo);
  const Descriptor& descriptor = card_.all.messages.descriptor(head.id);
  const Packet packet = make_packet(head.id, head.role, queue.next_packet);
  const bool from_cpu = head.role == Role::data && descriptor.from_cpu;
  const bool from_memory = carries_payload(head.role) && !from_cpu && descriptor.bytes > 0;
  const Memory memory = memory_read(descriptor, head.role);
  if (!has_room(packet.channel, packet.wire_bytes)) {
    card_.all.messages.enter(head.id, Stage::queue_full);
    return false;
  }
  if (from_memory && state_.read_count >= card_.all.outstanding_reads) {
    card_.all.messages.enter(head.id, Stage::bus_busy);
    return false;
  }
  if (from_memory && packet.last) card_.all.messages.enter(head.id, Stage::bus);

  const bool reports_sent = packet.last && head.role == Role::data && wants_sent(descriptor);
  Channel& way = channel(packet.channel);
  way.reserved_bytes += packet.wire_bytes;
  card_.all.state.pending.push(way.pending, {packet, memory, from_memory ? Time::never() : Time::zero()});
  ++queue.next_packet;
  if (packet.last) finish_head(index);
  if (from_memory) {
    const std::uint64_t tag =
        make_tag(payload_read, pack({memory, packet.channel, reports_sent, packet.last, head.id}));
    ++state_.read_count;
    if (memory == Memory::gpu) {
      card_.gpu->read(packet.payload_bytes, *this, tag);
    } else {
      card_.bus.read(packet.payload_bytes, *this, tag);
    }
  } else {
    inject_what_has_its_data(packet.channel);
    if (reports_sent) report_sent(head.id);
  }
  return true;
}

void Transmitter::inject(const Packet& packet, Time tail_time) {
  ++card_.all.counters.packets;
  if (packet.last) card_.all.messages.injects(message_of(packet));
  card_.all.network.inject(packet, tail_time);
}

void Transmitter::inject_what_has_its_data(std::uint16_t number) {
  Channel& way = channel(number);
  while (!way.pending.empty() && card_.all.state.pending.front(way.pending).tail_time != Time::never()) {
    const Pending next = card_.all.state.pending.pop(way.pending);
    way.reserved_bytes -= next.packet.wire_bytes;
    inject(next.packet, std::max(next.tail_time, card_.now()));
  }
}

void Transmitter::payload_comes(std::uint16_t number, Memory memory, Time tail_time) {
  const QueuePool<Pending>::Queue& pending = channel(number).pending;
  std::uint64_t place = 0;
  const auto waits_for_it = [&](const Pending& packet) {
    return packet.memory == memory && packet.tail_time == Time::never();
  };
  while (!waits_for_it(card_.all.state.pending.at(pending, place))) ++place;
  card_.all.state.pending.at(pending, place).tail_time = tail_time;
  inject_what_has_its_data(number);
}

void Transmitter::report_sent(MessageId id) {
  card_.bus.write(Bus::Master::card, card_.all.description.completion_bytes, card_.now(), *this,
                  make_tag(sent_event, id));
}

void Transmitter::bus_granted(const BusGrant& grant) {
  switch (tag_what(grant.tag)) {
    case descriptor_write:
    case descriptor_fetch:
      descriptor_granted(grant);
      break;
    case payload_read:
      payload_granted(grant);
      break;
    default:
      card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
      break;
  }
}

void Transmitter::payload_granted(const BusGrant& grant) {
  const PayloadRead read = payload_read_of(tag_which(grant.tag));
  const auto place = static_cast<std::uint64_t>(read.memory);
  --state_.read_count;
  if (read.is_last) card_.all.messages.enter_bus(read.id, grant.ready, grant.begin);
  card_.all.simulation.schedule(card_.state.source, grant.first_data, *this,
                                make_tag(payload_data, place << channel_bits | read.channel),
                                static_cast<std::uint64_t>(grant.end.ps()));
  if (read.reports_sent) {
    card_.all.simulation.schedule(card_.state.source, grant.end, *this, make_tag(payload_gone, read.id));
  }
  pump();
}

void Transmitter::prepare(const Event& event, Ahead ahead) const {
  const std::uint64_t which = tag_which(event.argument_a);
  const std::uint8_t what = tag_what(event.argument_a);
  if (ahead == Ahead::far) {
    prefetch(*this);
    prefetch(card_);
    __builtin_prefetch(queues_);
    return;
  }
  if (what != payload_data) prefetch(card_.bus);
  if (what == descriptor_decoded) {
    card_.all.messages.prepare(static_cast<MessageId>(event.argument_b));
    card_.all.state.entries.prepare(queues_[which].fifo);
  } else if (what == payload_data) {
    const auto number = static_cast<std::uint16_t>(which);
    card_.all.state.pending.prepare(channel(number).pending);
    card_.all.network.prepare(card_.node(), number);
  }
}

void Transmitter::handle_event(const Event& event) {
  const std::uint64_t which = tag_which(event.argument_a);
  switch (tag_what(event.argument_a)) {
    case descriptor_decoded:
      queues_[which].decoding = false;
      state_.decoded |= std::uint64_t{1} << which;
      pump();
      break;
    case payload_data:
      payload_comes(static_cast<std::uint16_t>(which), static_cast<Memory>(which >> channel_bits),
                    Time::from_ps(static_cast<std::int64_t>(event.argument_b)));
      break;
    case payload_gone:
      report_sent(static_cast<MessageId>(which));
      break;
    case sent_event:
      card_.all.messages.sent(static_cast<MessageId>(which));
      break;
    default:
      break;
  }
}

}  // namespace apenet::apelink
