#include "nic/hca/nic.hpp"

namespace apenet::hca {

Nic::Nic(const Card& card)
    : card_(card),
      contexts_(card_.all.description.context_cache_entries),
      transmitter_(card_, requester_, responder_),
      requester_(card_, contexts_, transmitter_),
      responder_(card_, transmitter_) {
  card_.all.network.attach(card_.node, *this);
}

bool Nic::context_is_here(const Packet& packet) {
  const Header header = header_of(packet);
  const bool to_target = header.role == Role::request || header.role == Role::read_request;
  return contexts_.use(header.connection, !to_target);
}

// Packets are accepted in the order of arrival: a packet whose context must be fetched blocks those behind
// it.
void Nic::packet_arrived(const Packet& packet, Time head_time) {
  if (state_.stalled.empty() && context_is_here(packet)) {
    take(packet, head_time);
    return;
  }
  const bool is_first = state_.stalled.empty();
  if (packet.last && header_of(packet).role == Role::request)
    card_.all.messages.enter(header_of(packet).id, Stage::translation);
  card_.all.state.arrivals.push(state_.stalled, {packet, head_time, card_.now()});
  if (is_first) fetch_context();
}

// For the first of the stalled packets.
void Nic::fetch_context() {
  ++card_.all.counters.context_misses;
  const Time span = card_.all.description.context_miss;
  fetches_.take(card_.all.state.arrivals.front(state_.stalled).at, card_.now(), span);
  card_.all.simulation.schedule(card_.state.source, card_.now() + span, *this);
}

void Nic::handle_event(const Event&) {
  bool is_here = true;
  while (is_here) {
    take(card_.all.state.arrivals.pop(state_.stalled).packet, card_.now());
    if (state_.stalled.empty()) return;
    is_here = context_is_here(card_.all.state.arrivals.front(state_.stalled).packet);
  }
  fetch_context();
}

void Nic::take(const Packet& packet, Time head_time) {
  const Time usable = head_time + card_.all.description.receive_latency;
  const Header header = header_of(packet);
  switch (header.role) {
    case Role::request:
      if (packet.last) card_.all.messages.enter(header.id, Stage::card);
      responder_.request_arrived(packet, usable);
      break;
    case Role::read_request:
      responder_.read_request_arrived(packet, usable);
      break;
    case Role::read_response:
      requester_.response_arrived(packet, usable);
      break;
    case Role::acknowledgement:
      card_.all.network.consumed(card_.node, packet);
      requester_.acknowledged(header.connection, packet.sequence, usable);
      break;
    case Role::not_ready:
      card_.all.network.consumed(card_.node, packet);
      requester_.not_ready(header.connection, usable);
      break;
  }
}

void Nic::injection_freed(std::uint16_t) {
  transmitter_.injection_freed();
}

}  // namespace apenet::hca
