#include "nic/extoll/rma_unit.hpp"

#include <algorithm>
#include <bit>

namespace apenet::extoll {

namespace {

// Upper byte of bus tags and event arguments.
enum RmaTag : std::uint8_t {
  command_written,  // which: message, with the role in the bits above
  decoded,          // which: port
  payload_read,
  payload_data,        // second argument: end of the burst
  payload_read_whole,  // which: message
  notification,        // the same
};

constexpr unsigned message_bits = 32;

// Returns the first port with its bit set, starting at `turn`.
unsigned in_turn(std::uint64_t bits, unsigned turn) {
  const int steps = std::countr_zero(std::rotr(bits, static_cast<int>(turn)));
  return (turn + static_cast<unsigned>(steps)) % static_cast<unsigned>(RmaUnit::max_ports);
}

constexpr std::uint64_t bit(unsigned port) {
  return std::uint64_t{1} << port;
}

}  // namespace

RmaUnit::RmaUnit(Card& card, Channel channel, std::int64_t command_cycles)
    : card_(card), channel_(channel), command_cycles_(command_cycles) {
  state_.ports.resize(card.all.placement.processes_on(card.node));
}

unsigned RmaUnit::port_of(MessageId id, Role role) const {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const bool is_answer = role == Role::get_response || role == Role::acknowledgement;
  return card_.all.placement.port(is_answer ? descriptor.target : descriptor.source);
}

void RmaUnit::post(MessageId id, Role role) {
  const std::int64_t bytes = card_.all.description.rma_command_bytes;
  // The latency of a processor write includes its bus clocks, which on an idle bus are already over.
  const Time clocks = std::min(card_.bus.occupancy(bytes), card_.now());
  card_.bus.write(Bus::Master::processor, bytes, card_.now() - clocks, *this,
                  make_tag(command_written, static_cast<std::uint64_t>(role) << message_bits | id));
}

void RmaUnit::command(MessageId id, Role role) {
  const unsigned port = port_of(id, role);
  if (state_.ports[port].commands.empty()) state_.waiting |= bit(port);
  if (role == Role::put) card_.all.messages.enter(id, Stage::card_queue);
  card_.all.state.commands.push(state_.ports[port].commands, {id, role, card_.now()});
  decode_next();
}

void RmaUnit::decode_next() {
  if (state_.decoding || state_.waiting == 0) return;
  const unsigned port = in_turn(state_.waiting, state_.next_decode);
  state_.next_decode = (port + 1) % max_ports;
  state_.waiting &= ~bit(port);
  state_.decoding = true;
  const Time span = card_.cycles(command_cycles_);
  const Command& next = card_.all.state.commands.front(state_.ports[port].commands);
  decoder_.take(next.there, card_.now(), span);
  if (next.role == Role::put) card_.all.messages.enter(next.id, Stage::card);
  card_.all.simulation.schedule(card_.state.source, card_.now() + span, *this, make_tag(decoded, port));
}

void RmaUnit::finish_command(unsigned port) {
  card_.all.state.commands.pop(state_.ports[port].commands);
  state_.ports[port].next_packet = 0;
  state_.decoded &= ~bit(port);
  if (!state_.ports[port].commands.empty()) state_.waiting |= bit(port);
  decode_next();
}

// Serves the ports in turn. A port that is refused stays refused until space or a read becomes free, so it is
// not asked again in this call.
void RmaUnit::pump() {
  std::uint64_t candidates = state_.decoded;
  while (candidates != 0) {
    const unsigned port = in_turn(candidates, state_.next_issue);
    state_.next_issue = (port + 1) % max_ports;
    if (!issue_packet(port) || (state_.decoded & bit(port)) == 0) candidates &= ~bit(port);
  }
}

// If there is no room, requests a call of injection_freed().
bool RmaUnit::has_room(std::int64_t wire_bytes) {
  const auto channel = static_cast<std::uint16_t>(channel_);
  if (card_.all.network.injection_room(card_.node, channel) - state_.reserved_bytes >= wire_bytes)
    return true;
  card_.all.network.await_injection_room(card_.node, channel);
  return false;
}

Packet RmaUnit::packet_of(const Command& command, std::uint32_t sequence) const {
  const Description& description = card_.all.description;
  if (command.role == Role::acknowledgement) {
    Packet packet = make_packet(card_, command.id, command.role, 0);
    packet.last = true;
    return packet;
  }
  if (command.role == Role::get_request) {
    Packet packet = make_packet(card_, command.id, command.role, description.rma_command_bytes);
    packet.last = true;
    return packet;
  }
  const std::int64_t bytes = card_.all.messages.descriptor(command.id).bytes;
  const std::int64_t payload = payload_of(description.rma_max_payload_bytes, bytes, sequence);
  Packet packet = make_packet(card_, command.id, command.role, description.rma_header_bytes + payload);
  packet.sequence = sequence;
  packet.last = std::int64_t{sequence} * description.rma_max_payload_bytes + payload == bytes;
  return packet;
}

bool RmaUnit::issue_packet(unsigned port) {
  const Command command = card_.all.state.commands.front(state_.ports[port].commands);
  const Descriptor& descriptor = card_.all.messages.descriptor(command.id);
  const Packet packet = packet_of(command, state_.ports[port].next_packet);
  const bool carries_payload =
      command.role == Role::get_response || (command.role == Role::put && !descriptor.from_cpu);
  const bool from_memory = carries_payload && descriptor.bytes > 0;
  if (!has_room(packet.wire_bytes)) {
    if (command.role == Role::put) card_.all.messages.enter(command.id, Stage::queue_full);
    return false;
  }
  if (from_memory && state_.read_count >= card_.all.outstanding_reads) {
    card_.all.messages.enter(command.id, Stage::bus_busy);
    return false;
  }
  if (from_memory && packet.last) card_.all.messages.enter(command.id, Stage::bus);

  const bool is_reported =
      packet.last &&
      (command.role == Role::get_response ? wants_served(descriptor) || descriptor.is_lock
                                          : command.role != Role::acknowledgement && wants_sent(descriptor));
  state_.reserved_bytes += packet.wire_bytes;
  card_.all.state.pending.push(state_.pending, {packet, from_memory});
  ++state_.ports[port].next_packet;
  if (from_memory) {
    const std::int64_t bytes =
        payload_of(card_.all.description.rma_max_payload_bytes, descriptor.bytes, packet.sequence);
    card_.all.state.reads.push(state_.reads, {command.id, packet.last, is_reported});
    ++state_.read_count;
    card_.bus.read(bytes, *this, make_tag(payload_read, 0));
  } else {
    inject_what_needs_no_data();
    if (is_reported) payload_gone(command.id);
  }
  if (packet.last) finish_command(port);
  return true;
}

void RmaUnit::inject(const Packet& packet, Time tail_time) {
  ++card_.all.counters.packets;
  if (role_of(packet) == Role::acknowledgement) ++card_.all.counters.acknowledgements;
  state_.reserved_bytes -= packet.wire_bytes;
  if (packet.last && role_of(packet) == Role::put) card_.all.messages.injects(message_of(packet));
  card_.all.network.inject(packet, tail_time);
}

void RmaUnit::inject_what_needs_no_data() {
  while (!state_.pending.empty() && !card_.all.state.pending.front(state_.pending).needs_data) {
    inject(card_.all.state.pending.pop(state_.pending).packet, card_.now());
  }
}

// The requester tells the origin, the responder the target.
void RmaUnit::payload_gone(MessageId id) {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const bool is_responder = channel_ == Channel::response;
  if (is_responder && descriptor.is_lock) card_.all.messages.execute(id);
  if (is_responder && !wants_served(descriptor)) return;
  card_.bus.write(Bus::Master::card, card_.all.description.rma_notification_bytes, card_.now(), *this,
                  make_tag(notification, id));
}

void RmaUnit::payload_granted(const BusGrant& grant) {
  const Read read = card_.all.state.reads.pop(state_.reads);
  --state_.read_count;
  if (read.is_last) card_.all.messages.enter_bus(read.id, grant.ready, grant.begin);
  card_.all.simulation.schedule(card_.state.source, grant.first_data, *this, make_tag(payload_data, 0),
                                static_cast<std::uint64_t>(grant.end.ps()));
  if (read.is_reported) {
    card_.all.simulation.schedule(card_.state.source, grant.end, *this,
                                  make_tag(payload_read_whole, read.id));
  }
  pump();
}

void RmaUnit::bus_granted(const BusGrant& grant) {
  if (tag_what(grant.tag) == payload_read) {
    payload_granted(grant);
  } else {
    const std::uint64_t which = tag_which(grant.tag);
    if (tag_what(grant.tag) == command_written && static_cast<Role>(which >> message_bits) == Role::put)
      card_.all.messages.enter_doorbell(static_cast<MessageId>(which), grant.ready, grant.begin);
    card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
  }
}

void RmaUnit::handle_event(const Event& event) {
  const std::uint64_t which = tag_which(event.argument_a);
  const auto id = static_cast<MessageId>(which);
  switch (tag_what(event.argument_a)) {
    case command_written:
      command(id, static_cast<Role>(which >> message_bits));
      break;
    case decoded:
      state_.decoding = false;
      state_.decoded |= bit(static_cast<unsigned>(which));
      decode_next();
      pump();
      break;
    case payload_data:
      inject(card_.all.state.pending.pop(state_.pending).packet,
             Time::from_ps(static_cast<std::int64_t>(event.argument_b)));
      inject_what_needs_no_data();
      break;
    case payload_read_whole:
      payload_gone(id);
      break;
    case notification:
      if (channel_ == Channel::response) {
        card_.all.messages.served(id);
      } else {
        card_.all.messages.sent(id);
      }
      break;
    default:
      break;
  }
}

}  // namespace apenet::extoll
