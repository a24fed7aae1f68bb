#include "nic/apelink/receiver.hpp"

#include <algorithm>

namespace apenet {

namespace {

// Upper byte of bus tags and of event arguments.
enum What : std::uint8_t {
  payload,          // which: index in ApelinkCards::being_written
  delivered_event,  // which: message
  remote_done_event,
  get_request_event,
  get_served,
};

}  // namespace

Receiver::Receiver(ApelinkCard& card, Transmitter& transmitter) : card_(card), transmitter_(transmitter) {}

void Receiver::packet_arrived(const Packet& packet, Time head_time) {
  const Time usable = head_time + card_.all.lookup_time;
  switch (role_of(packet)) {
    case PacketRole::data:
    case PacketRole::get_reply:
      take_payload(packet, usable);
      break;
    case PacketRole::acknowledgement:
      card_.all.network.consumed(card_.node, packet);
      write_event(remote_done_event, message_of(packet), usable);
      break;
    case PacketRole::get_request:
      card_.all.network.consumed(card_.node, packet);
      write_event(get_request_event, message_of(packet), usable);
      break;
  }
}

void Receiver::take_payload(const Packet& packet, Time usable) {
  const MessageId id = message_of(packet);
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const bool tells = packet.last && wants_delivered(descriptor);
  const std::int64_t bytes = payload_of(card_.all.description, descriptor.bytes, packet.sequence);
  if (bytes > 0) {
    const std::uint32_t index = card_.all.being_written.add(packet);
    card_.bus.write(Bus::Master::card, bytes, usable, *this, make_tag(payload, index));
  } else {
    payload_written(packet);
  }
  if (tells) write_event(delivered_event, id, usable);
}

void Receiver::payload_written(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);
  const MessageId id = message_of(packet);
  if (packet.last && !wants_delivered(card_.all.messages.descriptor(id))) message_complete(id);
}

// An event is written when the whole packet has been checked: not before its footer was there.
void Receiver::write_event(std::uint8_t what, MessageId id, Time earliest) {
  card_.bus.write(Bus::Master::card, card_.all.description.completion_bytes, std::max(earliest, card_.now()),
                  *this, make_tag(what, id));
}

void Receiver::message_complete(MessageId id) {
  const bool acknowledges = wants_remote_done(card_.all.messages.descriptor(id));
  card_.all.messages.delivered(id);
  if (acknowledges) transmitter_.acknowledge(id);
}

void Receiver::serve_get(MessageId id) {
  ++card_.all.counters.gets_served;
  driver_free_at_ = std::max(card_.now(), driver_free_at_) + card_.all.description.get_service;
  card_.all.simulation.schedule(card_.source, driver_free_at_ + card_.all.pio_write_latency, *this,
                                make_tag(get_served, id));
}

void Receiver::bus_granted(const BusGrant& grant) {
  card_.all.simulation.schedule(card_.source, grant.end, *this, grant.tag);
}

void Receiver::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(tag_which(event.argument_a));
  switch (tag_what(event.argument_a)) {
    case payload:
      payload_written(card_.all.being_written.take(which));
      break;
    case delivered_event:
      message_complete(which);
      break;
    case remote_done_event:
      card_.all.messages.remote_done(which);
      break;
    case get_request_event:
      serve_get(which);
      break;
    case get_served:
      transmitter_.doorbell(which, PacketRole::get_reply);
      break;
    default:
      break;
  }
}

}  // namespace apenet
