#include "nic/extoll/velo.hpp"

#include <algorithm>

#include "kernel/check.hpp"

namespace apenet::extoll {

namespace {

// Upper byte of bus tags and event arguments.
enum VeloTag : std::uint8_t {
  next_write,  // which: message and number of the packet
  written,     // the same
  processed,   // the same
  slot,        // which: index in Cards::being_written
};

constexpr unsigned name_bits = 32;  // the packet's number is stored above

constexpr std::uint64_t packet_name(MessageId id, std::uint32_t sequence) {
  return std::uint64_t{sequence} << name_bits | id;
}
constexpr std::uint32_t sequence_of(std::uint64_t name) {
  return static_cast<std::uint32_t>(name >> name_bits);
}

}  // namespace

Velo::Velo(Card& card, RmaUnit& responder) : card_(card), responder_(responder) {
  const std::size_t ports = card.all.placement.processes_on(card.node);
  state_.trains.resize(ports);
  state_.mailboxes.resize(ports);
}

std::uint32_t Velo::packets_of(MessageId id) const {
  return library_packets(card_.all.description.velo_payload_bytes, card_.all.messages.descriptor(id).bytes);
}

void Velo::send(MessageId id) {
  QueuePool<MessageId>::Queue& trains =
      state_.trains[card_.all.placement.port(card_.all.messages.descriptor(id).source)];
  const bool is_next = trains.empty();
  card_.all.state.trains.push(trains, id);
  if (is_next) write_packets(trains, 0);
}

// Starts the processor's next writes: packet `sequence` of the first message, and after its last packet the
// first packet of the next message.
void Velo::write_packets(QueuePool<MessageId>::Queue& trains, std::uint32_t sequence) {
  while (!trains.empty()) {
    const MessageId id = card_.all.state.trains.front(trains);
    write_packet(id, sequence);
    ++sequence;
    if (sequence < packets_of(id)) {
      card_.all.simulation.schedule(card_.state.source,
                                    card_.now() + card_.all.messages.descriptor(id).packet_interval, *this,
                                    make_tag(next_write, packet_name(id, sequence)));
      return;
    }
    card_.all.state.trains.pop(trains);
    sequence = 0;
  }
}

void Velo::write_packet(MessageId id, std::uint32_t sequence) {
  const Description& description = card_.all.description;
  const std::int64_t bytes =
      payload_of(description.velo_payload_bytes, card_.all.messages.descriptor(id).bytes, sequence) +
      description.velo_status_bytes;
  // The latency of a processor write includes its bus clocks, which on an idle bus are already over.
  const Time clocks = std::min(card_.bus.occupancy(bytes), card_.now());
  card_.bus.write(Bus::Master::processor, bytes, card_.now() - clocks, *this,
                  make_tag(written, packet_name(id, sequence)));
}

void Velo::packet_written(MessageId id, std::uint32_t sequence) {
  const bool is_last = sequence + 1 == packets_of(id);
  if (is_last) {
    card_.all.messages.enter(id, Stage::card_queue);
    card_.all.messages.enter(id, Stage::card, std::max(card_.now(), state_.requester.free_at));
  }
  const Time done =
      state_.requester.take(card_, card_.now(), card_.all.description.velo_send_cycles, requester_);
  card_.all.simulation.schedule(card_.state.source, done, *this,
                                make_tag(processed, packet_name(id, sequence)));
  if (!is_last || !wants_sent(card_.all.messages.descriptor(id))) return;
  if (state_.outgoing.empty()) {
    card_.all.messages.sent(id);
  } else {
    card_.all.state.trains.push(state_.held_back, id);
  }
}

void Velo::pump() {
  while (!state_.outgoing.empty()) {
    const Packet& next = card_.all.state.velo_packets.front(state_.outgoing);
    if (card_.all.network.injection_room(card_.node, next.channel) < next.wire_bytes) {
      card_.all.messages.enter(message_of(next), Stage::queue_full);
      card_.all.network.await_injection_room(card_.node, next.channel);
      return;
    }
    ++card_.all.counters.packets;
    ++card_.all.counters.velo_packets;
    const Packet packet = card_.all.state.velo_packets.pop(state_.outgoing);
    if (packet.last) card_.all.messages.injects(message_of(packet));
    card_.all.network.inject(packet, card_.now());
    const bool was_held_back = packet.last && !state_.held_back.empty() &&
                               card_.all.state.trains.front(state_.held_back) == message_of(packet);
    if (was_held_back) card_.all.messages.sent(card_.all.state.trains.pop(state_.held_back));
  }
}

void Velo::packet_arrived(const Packet& packet, Time head_time) {
  const ProcessId process = card_.all.messages.descriptor(message_of(packet)).target;
  Mailbox& mailbox = state_.mailboxes[card_.all.placement.port(process)];
  card_.all.state.waiting.push(mailbox.waiting, packet);
  admit_waiting(mailbox, head_time);
  if (mailbox.waiting.empty()) return;
  ++card_.all.counters.packets_held_back;
  if (packet.last) card_.all.messages.enter(message_of(packet), Stage::receiver_full);
}

// A new packet that finds others waiting waits behind them. So the packets admitted with `earliest` are
// either the new packet or those for which slots have just become free.
void Velo::admit_waiting(Mailbox& mailbox, Time earliest) {
  const Description& description = card_.all.description;
  while (!mailbox.waiting.empty()) {
    if (mailbox.slots_in_use == description.velo_mailbox_entries) {
      if (!mailbox.whole.empty()) return;
      reassemble(mailbox);
    }
    const Packet packet = card_.all.state.waiting.pop(mailbox.waiting);
    take_slot(mailbox, packet);
    if (packet.last) {
      card_.all.messages.enter(message_of(packet), Stage::card_queue);
      card_.all.messages.enter(message_of(packet), Stage::card, std::max(earliest, state_.completer.free_at));
    }
    const Time usable = state_.completer.take(card_, earliest, description.velo_receive_cycles, completer_);
    card_.bus.write(Bus::Master::card, description.velo_payload_bytes + description.velo_status_bytes, usable,
                    *this, make_tag(slot, card_.all.state.being_written.add(packet)));
  }
}

void Velo::reassemble(Mailbox& mailbox) {
  ++card_.all.counters.trains_reassembled;
  mailbox.slots_in_use = 0;
  for (Beginning& beginning : mailbox.beginnings) beginning.slots = 0;
}

void Velo::take_slot(Mailbox& mailbox, const Packet& packet) {
  ++mailbox.slots_in_use;
  std::vector<Beginning>& beginnings = mailbox.beginnings;
  const MessageId id = message_of(packet);
  auto own = std::find_if(beginnings.begin(), beginnings.end(),
                          [id](const Beginning& beginning) { return beginning.id == id; });
  if (own == beginnings.end()) own = beginnings.insert(own, {id, 0});
  ++own->slots;
  if (!packet.last) return;
  card_.all.state.whole_messages.push(mailbox.whole, own->slots);
  beginnings.erase(own);
}

void Velo::give_back(ProcessId process) {
  Mailbox& mailbox = state_.mailboxes[card_.all.placement.port(process)];
  APENET_CHECK(!mailbox.whole.empty(), "process %u gives back what is not in its mailbox", process);
  mailbox.slots_in_use -= card_.all.state.whole_messages.pop(mailbox.whole);
  admit_waiting(mailbox, card_.now());
}

void Velo::slot_written(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);
  if (!packet.last) return;
  const MessageId id = message_of(packet);
  const bool acknowledges = wants_remote_done(card_.all.messages.descriptor(id));
  card_.all.messages.delivered(id, packets_of(id));
  if (acknowledges) responder_.command(id, Role::acknowledgement);
}

void Velo::bus_granted(const BusGrant& grant) {
  if (card_.all.simulation.is_traced()) [[unlikely]]
    note_grant(grant);
  card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
}

void Velo::note_grant(const BusGrant& grant) const {
  const std::uint64_t which = tag_which(grant.tag);
  if (tag_what(grant.tag) == slot) {
    const Packet& packet = card_.all.state.being_written[static_cast<std::uint32_t>(which)];
    if (packet.last) card_.all.messages.enter_bus(message_of(packet), grant.ready, grant.begin);
  } else if (tag_what(grant.tag) == written) {
    const auto id = static_cast<MessageId>(which);
    if (sequence_of(which) + 1 == packets_of(id))
      card_.all.messages.enter_doorbell(id, grant.ready, grant.begin);
  }
}

void Velo::handle_event(const Event& event) {
  const std::uint64_t which = tag_which(event.argument_a);
  const auto id = static_cast<MessageId>(which);
  switch (tag_what(event.argument_a)) {
    case next_write:
      write_packets(state_.trains[card_.all.placement.port(card_.all.messages.descriptor(id).source)],
                    sequence_of(which));
      break;
    case written:
      packet_written(id, sequence_of(which));
      break;
    case processed: {
      const Description& description = card_.all.description;
      const std::uint32_t sequence = sequence_of(which);
      const std::int64_t bytes =
          payload_of(description.velo_payload_bytes, card_.all.messages.descriptor(id).bytes, sequence);
      Packet packet = make_packet(card_, id, Role::velo, bytes + description.velo_status_bytes);
      packet.sequence = sequence;
      packet.last = sequence + 1 == packets_of(id);
      card_.all.state.velo_packets.push(state_.outgoing, packet);
      pump();
      break;
    }
    case slot:
      slot_written(card_.all.state.being_written.take(static_cast<std::uint32_t>(which)));
      break;
    default:
      break;
  }
}

}  // namespace apenet::extoll
