#include "nic/apelink_plus/receiver.hpp"

#include <algorithm>

namespace apenet::apelink_plus {

using apelink::EventWriter;
using apelink::message_of;
using apelink::Role;
using apelink::role_of;

namespace {

// Upper byte of event arguments; the rest is an index into Cards::writes.
enum ReceiverTag : std::uint8_t { set_up, payload_taken, payload_visible };

}  // namespace

Receiver::Receiver(apelink::Card& card, Cards& plus, EventWriter& events)
    : card_(card),
      plus_(plus),
      events_(events),
      tlb_(static_cast<std::size_t>(plus.description.tlb_entries)),
      state_{
          .translator_free_at = {},
          .engine_free_since = std::vector<Time>(static_cast<std::size_t>(plus.description.receive_engines)),
          .ring_used = std::vector<std::uint64_t>(card.all.placement.processes_on(card.node())),
          .arrivals = {},
          .waiting_events = {},
          .gpu_writes_begun = {},
          .gpu_writes_visible = {}},
      engines_(static_cast<std::size_t>(plus.description.receive_engines)) {}

void Receiver::packet_arrived(const Packet& packet, Time head_time) {
  if (is_dropped(packet)) {
    card_.all.network.consumed(card_.node(), packet);
    if (packet.last) events_.message_complete(message_of(packet));
    return;
  }
  const Time translated = translate(packet, head_time);
  plus_.state.arrivals.push(state_.arrivals, {packet, translated});
  dispatch();
}

bool Receiver::is_dropped(const Packet& packet) const {
  return role_of(packet) == Role::data &&
         card_.all.messages.descriptor(message_of(packet)).remote_memory == Memory::none;
}

std::int64_t Receiver::payload_bytes(const Packet& packet) const {
  if (!carries_payload(role_of(packet))) return 0;
  return payload_of(card_.all.description, card_.all.messages.descriptor(message_of(packet)).bytes,
                    packet.sequence);
}

// The first packet of a message allocates space for the whole message.
std::uint64_t Receiver::ring_address(const Packet& packet, const Descriptor& descriptor) {
  const MessageId id = message_of(packet);
  if (plus_.state.ring_offset.size() <= id) plus_.state.ring_offset.resize(id + 1);
  if (packet.sequence == 0) {
    std::uint64_t& used = state_.ring_used[card_.all.placement.port(descriptor.target)];
    plus_.state.ring_offset[id] = used;
    used += static_cast<std::uint64_t>(descriptor.bytes);
  }
  return plus_.state.ring_offset[id];
}

// Each process has two address spaces: its memory (even numbers) and its receive ring (odd numbers).
Receiver::Target Receiver::target_of(const Packet& packet) {
  const Descriptor& descriptor = card_.all.messages.descriptor(message_of(packet));
  const bool is_reply = role_of(packet) == Role::get_reply;
  const std::uint32_t port = card_.all.placement.port(is_reply ? descriptor.source : descriptor.target);
  if (descriptor.verb == Verb::send) {
    return {2 * port + 1, ring_address(packet, descriptor), descriptor.remote_memory};
  }
  if (is_reply) return {2 * port, descriptor.local_address, descriptor.local_memory};
  return {2 * port, descriptor.remote_address, descriptor.remote_memory};
}

Time Receiver::translate(const Packet& packet, Time head_time) {
  const Time began = std::max(head_time, state_.translator_free_at);
  state_.translator_free_at = began;
  const std::int64_t bytes = payload_bytes(packet);
  if (bytes == 0) return state_.translator_free_at;
  const Description& card = plus_.description;
  const Target target = target_of(packet);
  const auto page_bytes = static_cast<std::uint64_t>(card.page_bytes);
  const auto ring_pages = static_cast<std::uint64_t>(card.receive_ring_bytes) / page_bytes;
  const bool is_ring = target.space % 2 == 1;
  const std::uint64_t begin =
      target.address + packet.sequence * static_cast<std::uint64_t>(card.max_payload_bytes);
  const std::uint64_t last = (begin + static_cast<std::uint64_t>(bytes) - 1) / page_bytes;
  for (std::uint64_t page = begin / page_bytes; page <= last; ++page) {
    const bool is_hit = tlb_.look_up({target.space, is_ring ? page % ring_pages : page});
    state_.translator_free_at += is_hit ? card.tlb_hit : card.page_walk;
    ++(is_hit ? plus_.counters.tlb_hits : plus_.counters.page_walks);
  }
  translator_.take(head_time, began, state_.translator_free_at - began);
  if (packet.last) card_.all.messages.enter(message_of(packet), Stage::translation);
  return state_.translator_free_at;
}

void Receiver::dispatch() {
  while (!state_.arrivals.empty()) {
    const auto engine = std::min_element(state_.engine_free_since.begin(), state_.engine_free_since.end());
    if (*engine == Time::never()) return;
    const auto [packet, translated] = plus_.state.arrivals.pop(state_.arrivals);
    const Time begin = std::max(*engine, translated) + plus_.description.receive_setup;
    const auto number = static_cast<std::uint32_t>(engine - state_.engine_free_since.begin());
    engines_[number].take(translated, begin - plus_.description.receive_setup,
                          plus_.description.receive_setup);
    if (packet.last) {
      card_.all.messages.enter(message_of(packet), Stage::card_queue, translated);
      card_.all.messages.enter(message_of(packet), Stage::card, begin - plus_.description.receive_setup);
    }
    *engine = Time::never();
    const std::int64_t bytes = payload_bytes(packet);
    const Memory memory = bytes > 0 ? target_of(packet).memory : Memory::host;
    const std::uint32_t index = plus_.state.writes.add({packet, bytes, memory, number, begin});
    card_.all.simulation.schedule(card_.state.source, std::max(begin, card_.now()), *this,
                                  make_tag(set_up, index));
  }
}

// Engines are set up in packet order, so that the bus gets payloads and events in that order.
void Receiver::write(std::uint32_t index) {
  const Write& write = plus_.state.writes[index];
  const Packet packet = write.packet;
  if (write.memory == Memory::gpu) {
    ++state_.gpu_writes_begun;
    ++plus_.counters.gpu_writes;
  }
  if (write.bytes > 0) {
    if (packet.last) card_.all.messages.enter(message_of(packet), Stage::bus);
    card_.bus.write(Bus::Master::card, write.bytes, write.begin, *this, index);
  } else {
    taken(index);
  }
  tell(packet);
}

void Receiver::tell(const Packet& packet) {
  const EventWriter::About what = about(role_of(packet));
  const MessageId id = message_of(packet);
  if (what == EventWriter::About::delivered &&
      !(packet.last && wants_delivered(card_.all.messages.descriptor(id)))) {
    return;
  }
  plus_.state.events.push(state_.waiting_events,
                          {static_cast<std::uint8_t>(what), id, state_.gpu_writes_begun});
  write_events();
}

void Receiver::write_events() {
  while (!state_.waiting_events.empty() &&
         plus_.state.events.front(state_.waiting_events).gpu_writes_before <= state_.gpu_writes_visible) {
    const WaitingEvent event = plus_.state.events.pop(state_.waiting_events);
    events_.write(static_cast<EventWriter::About>(event.about), event.id, card_.now());
  }
}

void Receiver::bus_granted(const BusGrant& grant) {
  const auto index = static_cast<std::uint32_t>(grant.tag);
  const Write& write = plus_.state.writes[index];
  if (write.packet.last) {
    card_.all.messages.enter_bus(message_of(write.packet), grant.ready, grant.begin);
    card_.all.messages.enter(message_of(write.packet), Stage::card, grant.end);
  }
  const Time taken_at =
      write.memory == Memory::gpu ? card_.gpu->take_in(write.bytes, write.begin, grant.end) : grant.end;
  card_.all.simulation.schedule(card_.state.source, taken_at, *this, make_tag(payload_taken, index));
}

void Receiver::taken(std::uint32_t index) {
  const Write& write = plus_.state.writes[index];
  state_.engine_free_since[write.engine] = card_.now();
  engines_[write.engine].busy += card_.now() - write.begin;
  card_.all.network.consumed(card_.node(), write.packet);
  if (write.memory == Memory::gpu) {
    card_.all.simulation.schedule(card_.state.source, card_.now() + plus_.description.gpu.write_latency,
                                  *this, make_tag(payload_visible, index));
  } else {
    landed(plus_.state.writes.take(index).packet);
  }
  dispatch();
}

void Receiver::landed(const Packet& packet) {
  const MessageId id = message_of(packet);
  const bool is_silent = about(role_of(packet)) == EventWriter::About::delivered && packet.last &&
                         !wants_delivered(card_.all.messages.descriptor(id));
  if (is_silent) events_.message_complete(id);
}

void Receiver::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(tag_which(event.argument_a));
  switch (tag_what(event.argument_a)) {
    case set_up:
      write(index);
      break;
    case payload_taken:
      taken(index);
      break;
    case payload_visible:
      ++state_.gpu_writes_visible;
      landed(plus_.state.writes.take(index).packet);
      write_events();
      break;
    default:
      break;
  }
}

}  // namespace apenet::apelink_plus
