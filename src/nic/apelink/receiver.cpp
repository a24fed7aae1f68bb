#include "nic/apelink/receiver.hpp"

namespace apenet {

Receiver::Receiver(ApeCard& card, EventWriter& events, Slab<Packet>& being_written, Time lookup_time)
    : card_(card), events_(events), being_written_(being_written), lookup_time_(lookup_time) {}

void Receiver::packet_arrived(const Packet& packet, Time head_time) {
  const Time usable = head_time + lookup_time_;
  if (carries_payload(role_of(packet))) {
    take_payload(packet, usable);
  } else {
    card_.all.network.consumed(card_.node, packet);
    events_.write(about(role_of(packet)), message_of(packet), usable);
  }
}

void Receiver::take_payload(const Packet& packet, Time usable) {
  const MessageId id = message_of(packet);
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  const bool tells = packet.last && wants_delivered(descriptor);
  const std::int64_t bytes = payload_of(card_.all.description, descriptor.bytes, packet.sequence);
  if (bytes > 0) {
    card_.bus.write(Bus::Master::card, bytes, usable, *this, being_written_.add(packet));
  } else {
    payload_written(packet);
  }
  if (tells) events_.write(EventWriter::About::delivered, id, usable);
}

void Receiver::payload_written(const Packet& packet) {
  card_.all.network.consumed(card_.node, packet);
  const MessageId id = message_of(packet);
  if (packet.last && !wants_delivered(card_.all.messages.descriptor(id))) events_.message_complete(id);
}

void Receiver::bus_granted(const BusGrant& grant) {
  card_.all.simulation.schedule(card_.source, grant.end, *this, grant.tag);
}

void Receiver::prepare(const Event& event, Ahead ahead) const {
  if (ahead == Ahead::far) {
    prefetch(*this);
  } else {
    being_written_.prepare(static_cast<std::uint32_t>(event.argument_a));
  }
}

void Receiver::handle_event(const Event& event) {
  payload_written(being_written_.take(static_cast<std::uint32_t>(event.argument_a)));
}

}  // namespace apenet
