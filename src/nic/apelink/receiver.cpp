#include "nic/apelink/receiver.hpp"

namespace apenet::apelink {

void Receiver::packet_arrived(const Packet& packet, Time head_time) {
  const Time usable = head_time + card_.all.lookup_time;
  if (carries_payload(role_of(packet))) {
    take_payload(packet, usable);
  } else {
    card_.all.network.consumed(card_.node(), packet);
    events_.write(about(role_of(packet)), message_of(packet), usable);
  }
}

void Receiver::take_payload(const Packet& packet, Time usable) {
  const bool is_empty = packet.payload_bytes == 0;
  // The end of an empty message is written even if nobody is told: it must not overtake the data before it,
  // which are still on their way over the bus.
  const bool tells = packet.last && (is_empty || !is_silent(packet));
  const MessageId id = message_of(packet);
  if (packet.last) card_.all.messages.enter(id, Stage::bus, usable);
  if (!is_empty) {
    card_.bus.write(Bus::Master::card, packet.payload_bytes, usable, *this,
                    card_.all.state.being_written.add(packet));
  } else {
    payload_written(packet);
  }
  if (tells) events_.write(EventWriter::About::delivered, id, usable);
}

void Receiver::payload_written(const Packet& packet) {
  card_.all.network.consumed(card_.node(), packet);
  if (packet.last && is_silent(packet) && packet.payload_bytes > 0)
    events_.message_complete(message_of(packet));
}

void Receiver::bus_granted(const BusGrant& grant) {
  if (card_.all.simulation.is_traced()) [[unlikely]]
    note_grant(card_.all.state.being_written[static_cast<std::uint32_t>(grant.tag)], grant);
  card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
}

void Receiver::note_grant(const Packet& packet, const BusGrant& grant) const {
  if (!packet.last) return;
  card_.all.messages.enter_bus(message_of(packet), grant.ready, grant.begin);
  card_.all.messages.enter(message_of(packet), Stage::card, grant.end);
}

void Receiver::prepare(const Event& event, Ahead ahead) const {
  if (ahead == Ahead::far) {
    prefetch(card_);
  } else {
    card_.all.state.being_written.prepare(static_cast<std::uint32_t>(event.argument_a));
  }
}

void Receiver::handle_event(const Event& event) {
  payload_written(card_.all.state.being_written.take(static_cast<std::uint32_t>(event.argument_a)));
}

}  // namespace apenet::apelink
