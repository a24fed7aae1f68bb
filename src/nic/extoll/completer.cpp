#include "nic/extoll/completer.hpp"

#include <algorithm>

namespace apenet::extoll {

namespace {

// Upper byte of bus tags and event arguments.
enum CompleterTag : std::uint8_t {
  payload,                 // which: index in Cards::being_written
  delivered_notification,  // which: message
  remote_done_notification,
};

}  // namespace

void Completer::packet_arrived(const Packet& packet, Time head_time) {
  const MessageId id = message_of(packet);
  if (role_of(packet) == Role::get_request) {
    card_.all.network.consumed(card_.node, packet);
    ++card_.all.counters.gets_served;
    responder_.command(id, Role::get_response);
    return;
  }
  const Time usable = state_.pace.take(card_, head_time, card_.all.description.rma_completer_cycles, engine_);
  if (role_of(packet) == Role::acknowledgement) {
    card_.all.network.consumed(card_.node, packet);
    notify(remote_done_notification, id, usable);
  } else {
    take_payload(packet, usable);
  }
}

void Completer::take_payload(const Packet& packet, Time usable) {
  const MessageId id = message_of(packet);
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const bool tells = packet.last && wants_delivered(descriptor);
  const std::int64_t bytes =
      payload_of(card_.all.description.rma_max_payload_bytes, descriptor.bytes, packet.sequence);
  if (packet.last) card_.all.messages.enter(id, Stage::bus, usable);
  if (bytes > 0) {
    card_.bus.write(Bus::Master::card, bytes, usable, *this,
                    make_tag(payload, card_.all.state.being_written.add(packet)));
  } else {
    payload_written(packet);
  }
  if (tells) notify(delivered_notification, id, usable);
}

void Completer::payload_written(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);
  const MessageId id = message_of(packet);
  if (packet.last && !wants_delivered(card_.all.messages.descriptor(id))) message_complete(id);
}

// Writes a notification, no earlier than the whole packet has been checked, including its footer.
void Completer::notify(std::uint8_t what, MessageId id, Time earliest) {
  card_.bus.write(Bus::Master::card, card_.all.description.rma_notification_bytes,
                  std::max(earliest, card_.now()), *this, make_tag(what, id));
}

void Completer::message_complete(MessageId id) {
  const bool acknowledges = wants_remote_done(card_.all.messages.descriptor(id));
  card_.all.messages.delivered(id);
  if (acknowledges) responder_.command(id, Role::acknowledgement);
}

void Completer::note_grant(const BusGrant& grant) const {
  const auto which = static_cast<std::uint32_t>(tag_which(grant.tag));
  if (tag_what(grant.tag) != payload) {
    card_.all.messages.enter_bus(which, grant.ready, grant.begin);
  } else if (card_.all.state.being_written[which].last) {
    const MessageId id = message_of(card_.all.state.being_written[which]);
    card_.all.messages.enter_bus(id, grant.ready, grant.begin);
    card_.all.messages.enter(id, Stage::card, grant.end);
  }
}

void Completer::bus_granted(const BusGrant& grant) {
  if (card_.all.simulation.is_traced()) [[unlikely]]
    note_grant(grant);
  card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
}

void Completer::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(tag_which(event.argument_a));
  switch (tag_what(event.argument_a)) {
    case payload:
      payload_written(card_.all.state.being_written.take(which));
      break;
    case delivered_notification:
      message_complete(which);
      break;
    case remote_done_notification:
      card_.all.messages.remote_done(which);
      break;
    default:
      break;
  }
}

}  // namespace apenet::extoll
