#include "nic/hca/transmitter.hpp"

#include <bit>

namespace apenet::hca {

Transmitter::Transmitter(Card& card, PacketSource& requests, PacketSource& responses)
    : card_(card), requests_(requests), responses_(responses) {
  state_.fifos.resize(static_cast<std::size_t>(card.all.description.virtual_lanes) * card.all.fifos.count());
}

void Transmitter::ready(const Stream& stream) {
  const std::uint16_t fifo =
      stream.is_response ? card_.fifo(stream.connection) : card_.request_fifo(stream.connection);
  card_.all.state.streams.push(state_.fifos[fifo].streams, stream);
  state_.busy_fifos |= std::uint64_t{1} << fifo;
  pump();
}

void Transmitter::send_control(const Control& control) {
  const std::uint16_t fifo = card_.fifo(control.connection);
  card_.all.state.controls.push(state_.fifos[fifo].controls, control);
  state_.busy_fifos |= std::uint64_t{1} << fifo;
  pump();
}

std::uint16_t Transmitter::least_loaded(std::uint16_t lane) const {
  return card_.all.fifos.least_loaded(lane, [this](std::uint16_t fifo) {
    const std::int64_t room = card_.all.network.injection_room(card_.node, fifo);
    return state_.fifos[fifo].waiting_bytes + state_.fifos[fifo].reserved_bytes - room;
  });
}

// Serves the FIFOs in turn. A FIFO that is refused stays refused until space or a read becomes free, so it is
// not asked again in this call.
void Transmitter::pump() {
  std::uint64_t candidates = state_.busy_fifos;
  while (candidates != 0) {
    const int steps = std::countr_zero(std::rotr(candidates, static_cast<int>(state_.next_fifo)));
    const unsigned fifo = (state_.next_fifo + static_cast<unsigned>(steps)) % max_fifos;
    state_.next_fifo = (fifo + 1) % max_fifos;
    const std::uint64_t bit = std::uint64_t{1} << fifo;
    if (!issue(static_cast<std::uint16_t>(fifo))) candidates &= ~bit;
    if (state_.fifos[fifo].streams.empty() && state_.fifos[fifo].controls.empty()) {
      state_.busy_fifos &= ~bit;
      candidates &= ~bit;
    }
  }
}

// If there is no room, requests a call of injection_freed().
bool Transmitter::has_room(std::uint16_t number, std::int64_t wire_bytes) {
  const std::int64_t room = card_.all.network.injection_room(card_.node, number);
  if (room - state_.fifos[number].reserved_bytes >= wire_bytes) return true;
  card_.all.network.await_injection_room(card_.node, number);
  return false;
}

// Sends the FIFO's acknowledgements, then one packet of the stream in turn. Returns false if no packet can
// enter it now.
bool Transmitter::issue(std::uint16_t number) {
  Fifo& fifo = state_.fifos[number];
  issue_controls(number);
  if (fifo.streams.empty() || !fifo.controls.empty()) return false;
  const Stream stream = card_.all.state.streams.front(fifo.streams);
  PacketSource& source = source_of(stream);
  if (!source.has_packet(stream.connection)) {
    card_.all.state.streams.pop(fifo.streams);
    return true;
  }
  const PacketSource::Next next = source.next_packet(stream.connection);
  // The queue pair has taken another FIFO since, in which it is queued too.
  if (next.packet.channel != number) [[unlikely]] {
    card_.all.state.streams.pop(fifo.streams);
    return true;
  }
  const MessageId id = header_of(next.packet).id;
  if (!has_room(number, next.packet.wire_bytes)) {
    card_.all.messages.enter(id, Stage::queue_full);
    return false;
  }
  if (next.read_bytes > 0 && state_.read_count >= card_.all.outstanding_reads) {
    card_.all.messages.enter(id, Stage::bus_busy);
    return false;
  }
  if (next.read_bytes > 0 && next.packet.last) card_.all.messages.enter(id, Stage::bus);

  card_.all.state.streams.pop(fifo.streams);
  fifo.reserved_bytes += next.packet.wire_bytes;
  card_.all.state.pending.push(fifo.pending, {next.packet, next.read_bytes > 0});
  if (source.packet_issued(stream.connection)) card_.all.state.streams.push(fifo.streams, stream);
  if (next.read_bytes > 0) {
    card_.all.state.payload_reads.push(state_.reads, {number, next.packet.last, id});
    ++state_.read_count;
    card_.bus.read(next.read_bytes, *this, 0);
  } else {
    inject_what_needs_no_data(fifo);
  }
  return true;
}

void Transmitter::issue_controls(std::uint16_t number) {
  Fifo& fifo = state_.fifos[number];
  while (!fifo.controls.empty()) {
    const Control control = card_.all.state.controls.front(fifo.controls);
    const Packet packet = make_control(control);
    if (!has_room(number, packet.wire_bytes)) return;
    card_.all.state.controls.pop(fifo.controls);
    if (control.role == Role::acknowledgement) {
      card_.all.connections[control.connection].receive.ack_waits = false;
      ++card_.all.counters.acknowledgements;
    }
    inject(packet, card_.now());
  }
}

// An acknowledgement reports what is executed now, not when it was requested, because later requests have
// been merged into it.
Packet Transmitter::make_control(const Control& control) {
  const Connection& connection = card_.all.connections[control.connection];
  Packet packet;
  packet.source = card_.node;
  packet.destination = card_.all.placement.node(connection.source);
  packet.message = encode({.connection = control.connection, .role = control.role});
  packet.sequence = connection.receive.executed;
  packet.channel = card_.fifo(control.connection);
  packet.last = true;
  set_sizes(packet, card_.all.description, 0, card_.all.description.aeth_bytes);
  return packet;
}

void Transmitter::inject(const Packet& packet, Time tail_time) {
  ++card_.all.counters.packets;
  if (packet.last && header_of(packet).role == Role::request)
    card_.all.messages.injects(header_of(packet).id);
  card_.all.network.inject(packet, tail_time);
}

void Transmitter::inject_what_needs_no_data(Fifo& fifo) {
  while (!fifo.pending.empty() && !card_.all.state.pending.front(fifo.pending).needs_data) {
    const Packet packet = card_.all.state.pending.pop(fifo.pending).packet;
    fifo.reserved_bytes -= packet.wire_bytes;
    inject(packet, card_.now());
  }
}

void Transmitter::bus_granted(const BusGrant& grant) {
  const PayloadRead read = card_.all.state.payload_reads.pop(state_.reads);
  --state_.read_count;
  if (read.is_last) card_.all.messages.enter_bus(read.id, grant.ready, grant.begin);
  card_.all.simulation.schedule(card_.state.source, grant.first_data, *this, read.fifo,
                                static_cast<std::uint64_t>(grant.end.ps()));
  pump();
}

void Transmitter::handle_event(const Event& event) {
  Fifo& fifo = state_.fifos[event.argument_a];
  const Packet packet = card_.all.state.pending.pop(fifo.pending).packet;
  fifo.reserved_bytes -= packet.wire_bytes;
  inject(packet, Time::from_ps(static_cast<std::int64_t>(event.argument_b)));
  inject_what_needs_no_data(fifo);
}

}  // namespace apenet::hca
