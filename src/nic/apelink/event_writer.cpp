#include "nic/apelink/event_writer.hpp"

#include <algorithm>

namespace apenet::apelink {

namespace {

// Upper byte of event arguments; continues the values of EventWriter::About.
constexpr std::uint8_t get_served = 3;

}  // namespace

EventWriter::About about(Role role) {
  switch (role) {
    case Role::acknowledgement:
      return EventWriter::About::remote_done;
    case Role::get_request:
      return EventWriter::About::get_request;
    default:
      return EventWriter::About::delivered;
  }
}

EventWriter::EventWriter(Card& card, Transmitter& transmitter)
    : card_(card), messages_(card.all.messages), transmitter_(transmitter) {}

// Writes an event no earlier than `earliest`: the whole packet must have been checked, including its footer.
void EventWriter::write(About what, MessageId id, Time earliest) {
  card_.bus.write(Bus::Master::card, card_.all.description.completion_bytes, std::max(earliest, card_.now()),
                  *this, make_tag(static_cast<std::uint8_t>(what), id));
}

void EventWriter::message_complete(MessageId id) {
  const bool acknowledges = wants_remote_done(messages_.descriptor(id));
  messages_.delivered(id);
  if (acknowledges) transmitter_.acknowledge(id);
}

void EventWriter::serve_get(MessageId id) {
  ++card_.all.counters.gets_served;
  const Time begin = std::max(card_.now(), card_.state.driver_free_at);
  card_.driver.take(card_.now(), begin, card_.all.description.get_service);
  card_.state.driver_free_at = begin + card_.all.description.get_service;
  card_.all.simulation.schedule(card_.state.source, card_.state.driver_free_at + card_.all.pio_write_latency,
                                *this, make_tag(get_served, id));
}

void EventWriter::bus_granted(const BusGrant& grant) {
  messages_.enter_bus(static_cast<MessageId>(tag_which(grant.tag)), grant.ready, grant.begin);
  card_.all.simulation.schedule(card_.state.source, grant.end, *this, grant.tag);
}

void EventWriter::prepare(const Event& event, Ahead ahead) const {
  const auto id = static_cast<MessageId>(tag_which(event.argument_a));
  if (ahead == Ahead::far) {
    prefetch(card_);
    messages_.prepare(id);
  } else {
    messages_.prepare_target(id);
  }
}

void EventWriter::handle_event(const Event& event) {
  const auto id = static_cast<MessageId>(tag_which(event.argument_a));
  const std::uint8_t what = tag_what(event.argument_a);
  if (what == get_served) {
    transmitter_.post(id, Role::get_reply);
    return;
  }
  switch (static_cast<About>(what)) {
    case About::delivered:
      message_complete(id);
      break;
    case About::remote_done:
      messages_.remote_done(id);
      break;
    case About::get_request:
      serve_get(id);
      break;
  }
}

}  // namespace apenet::apelink
