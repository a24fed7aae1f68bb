#include "nic/hca/responder.hpp"

#include <algorithm>

namespace apenet::hca {

namespace {

// Upper byte of bus tags and event arguments.
enum ResponderTag : std::uint8_t {
  payload,           // which: index in Cards::being_written
  completion,        // which: index in Cards::inbound_names
  silent_message,    // which: connection; a message without payload and notification
  receive_reposted,  // which: port
  read_startable,    // which: connection
};

}  // namespace

Responder::Responder(Card& card, Transmitter& transmitter) : card_(card), transmitter_(transmitter) {
  state_.free_receives.assign(card.all.placement.processes_on(card.node),
                              card.all.description.receive_queue_entries);
}

bool Responder::needs_receive(const Descriptor& descriptor, const Packet& packet) const {
  if (descriptor.verb == Verb::send) return packet.sequence == 0;
  return descriptor.notify_target && packet.last;
}

// Takes a receive work request if the packet needs one. Returns true if the packet must be dropped.
bool Responder::is_refused(Connection& connection, const Packet& packet) {
  ReceiveSide& side = connection.receive;
  const Header header = header_of(packet);
  if (side.is_refusing && (header.id != side.refused_id || packet.sequence != side.refused_packet))
    return true;
  side.is_refusing = false;
  if (header.role != Role::request) return false;
  if (!needs_receive(card_.all.messages.descriptor(header.id), packet)) return false;
  std::int64_t& free = state_.free_receives[card_.all.placement.port(connection.target)];
  if (free > 0) {
    --free;
    return false;
  }
  side.is_refusing = true;
  side.refused_id = header.id;
  side.refused_packet = packet.sequence;
  ++card_.all.counters.not_ready;
  transmitter_.send_control({header.connection, Role::not_ready});
  return true;
}

void Responder::request_arrived(const Packet& packet, Time usable) {
  const Header header = header_of(packet);
  if (is_refused(card_.all.connections[header.connection], packet)) {
    ++card_.all.counters.refused_packets;
    card_.all.network.consumed(card_.node, packet);
    return;
  }
  const Descriptor& descriptor = card_.all.messages.descriptor(header.id);
  write_payload(packet, descriptor, usable);
  if (packet.last) take_message(packet, descriptor, usable);
}

void Responder::write_payload(const Packet& packet, const Descriptor& descriptor, Time usable) {
  const std::int64_t bytes = payload_of(card_.all.description, descriptor.bytes, packet.sequence);
  if (bytes > 0) {
    const std::uint32_t index = card_.all.state.being_written.add(packet);
    if (packet.last) card_.all.messages.enter(header_of(packet).id, Stage::bus, usable);
    card_.bus.write(Bus::Master::card, bytes, usable, *this, make_tag(payload, index));
  } else {
    card_.all.network.consumed(card_.node, packet);
  }
}

// The whole message has arrived: writes the completion queue entry after its payload, and no earlier than the
// packet has been checked completely.
void Responder::take_message(const Packet& packet, const Descriptor& descriptor, Time usable) {
  const Header header = header_of(packet);
  ReceiveSide& side = card_.all.connections[header.connection].receive;
  card_.all.state.inbound.push(side.inbound, {header.id, side.received++, header.asks_ack});
  const Time checked = std::max(usable, card_.now());
  if (wants_delivered(descriptor)) {
    card_.bus.write(Bus::Master::card, card_.all.description.cqe_bytes, checked, *this,
                    make_tag(completion, card_.all.state.inbound_names.add({header.connection, header.id})));
  } else if (descriptor.bytes == 0) {
    card_.all.simulation.schedule(card_.state.source, checked, *this,
                                  make_tag(silent_message, header.connection), header.id);
  }
}

void Responder::payload_written(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);
  const Header header = header_of(packet);
  if (packet.last && !wants_delivered(card_.all.messages.descriptor(header.id)))
    in_memory(header.connection, header.id);
}

// Executes messages in order, although one without payload may overtake an earlier write to memory.
void Responder::in_memory(ConnectionId id, MessageId message) {
  QueuePool<Inbound>& pool = card_.all.state.inbound;
  QueuePool<Inbound>::Queue& inbound = card_.all.connections[id].receive.inbound;
  std::uint64_t place = 0;
  while (pool.at(inbound, place).id != message) ++place;
  pool.at(inbound, place).is_complete = true;
  while (!inbound.empty() && pool.front(inbound).is_complete) execute(id, pool.pop(inbound));
}

void Responder::execute(ConnectionId id, const Inbound& inbound) {
  ReceiveSide& side = card_.all.connections[id].receive;
  const Descriptor descriptor = card_.all.messages.descriptor(inbound.id);
  side.executed = inbound.number + 1;
  card_.all.messages.enter(inbound.id, Stage::acknowledgement);
  card_.all.messages.delivered(inbound.id);
  if (wants_delivered(descriptor)) {
    card_.all.simulation.schedule(card_.state.source, card_.now() + card_.all.description.receive_repost,
                                  *this,
                                  make_tag(receive_reposted, card_.all.placement.port(descriptor.target)));
  }
  if (!inbound.asks_ack || side.ack_waits) return;
  side.ack_waits = true;
  transmitter_.send_control({id, Role::acknowledgement});
}

void Responder::read_request_arrived(const Packet& packet, Time usable) {
  const Header header = header_of(packet);
  Connection& connection = card_.all.connections[header.connection];
  card_.all.network.consumed(card_.node, packet);
  if (is_refused(connection, packet)) {
    ++card_.all.counters.refused_packets;
    return;
  }
  ++connection.receive.received;
  ++card_.all.counters.reads_served;
  card_.all.state.reads_to_serve.push(connection.receive.reads, header.id);
  card_.all.simulation.schedule(card_.state.source,
                                std::max(usable, card_.now()) + card_.all.description.read_service, *this,
                                make_tag(read_startable, header.connection));
}

void Responder::start_read(ConnectionId id) {
  ReceiveSide& side = card_.all.connections[id].receive;
  ++side.reads_startable;
  if (side.response_is_ready) return;
  side.response_is_ready = true;
  transmitter_.ready({id, true});
}

bool Responder::has_packet(ConnectionId id) const {
  return card_.all.connections[id].receive.response_is_ready;
}

PacketSource::Next Responder::next_packet(ConnectionId id) const {
  const Connection& connection = card_.all.connections[id];
  const Description& card = card_.all.description;
  const MessageId message = card_.all.state.reads_to_serve.front(connection.receive.reads);
  const std::int64_t bytes = card_.all.messages.descriptor(message).bytes;
  const std::uint32_t sequence = connection.receive.next_packet;
  Next next;
  Packet& packet = next.packet;
  packet.source = card_.node;
  packet.destination = card_.all.placement.node(connection.source);
  packet.message = encode({.id = message, .connection = id, .role = Role::read_response});
  packet.sequence = sequence;
  packet.channel = card_.fifo(id);
  packet.last = sequence + 1 == packets_of(card, bytes);
  next.read_bytes = payload_of(card, bytes, sequence);
  set_sizes(packet, card, next.read_bytes, sequence == 0 || packet.last ? card.aeth_bytes : 0);
  return next;
}

bool Responder::packet_issued(ConnectionId id) {
  ReceiveSide& side = card_.all.connections[id].receive;
  const MessageId message = card_.all.state.reads_to_serve.front(side.reads);
  ++side.next_packet;
  if (side.next_packet < packets_of(card_.all.description, card_.all.messages.descriptor(message).bytes))
    return true;
  card_.all.state.reads_to_serve.pop(side.reads);
  side.next_packet = 0;
  side.response_is_ready = --side.reads_startable > 0;
  return side.response_is_ready;
}

void Responder::note_grant(const BusGrant& grant) const {
  const auto which = static_cast<std::uint32_t>(tag_which(grant.tag));
  if (tag_what(grant.tag) == completion) {
    card_.all.messages.enter_bus(card_.all.state.inbound_names[which].id, grant.ready, grant.begin);
  } else if (card_.all.state.being_written[which].last) {
    const MessageId id = header_of(card_.all.state.being_written[which]).id;
    card_.all.messages.enter_bus(id, grant.ready, grant.begin);
    card_.all.messages.enter(id, Stage::card, grant.end);
  }
}

void Responder::bus_granted(const BusGrant& grant) {
  if (card_.all.simulation.is_traced()) [[unlikely]]
    note_grant(grant);
  card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
}

void Responder::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(tag_which(event.argument_a));
  switch (tag_what(event.argument_a)) {
    case payload:
      payload_written(card_.all.state.being_written.take(which));
      break;
    case completion: {
      const InboundName name = card_.all.state.inbound_names.take(which);
      in_memory(name.connection, name.id);
      break;
    }
    case silent_message:
      in_memory(which, static_cast<MessageId>(event.argument_b));
      break;
    case receive_reposted:
      ++state_.free_receives[which];
      break;
    case read_startable:
      start_read(which);
      break;
    default:
      break;
  }
}

}  // namespace apenet::hca
