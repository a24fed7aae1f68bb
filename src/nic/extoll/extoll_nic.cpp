#include "nic/extoll/extoll_nic.hpp"

namespace apenet {

using extoll::Channel;
using extoll::Role;

ExtollNic::ExtollNic(const extoll::Card& card)
    : card_(card),
      requester_(card_, Channel::request, card.all.description.rma_requester_cycles),
      responder_(card_, Channel::response, card.all.description.rma_responder_cycles),
      completer_(card_, responder_),
      velo_(card_, responder_) {
  card_.all.network.attach(card_.node, *this);
}

NicCapabilities ExtollNic::capabilities_of(const ExtollDescription& description) {
  return {.put = true,
          .get = true,
          .max_message_bytes = description.rma_max_message_bytes,
          .max_send_bytes = description.velo_max_message_bytes,
          .max_pio_bytes = description.velo_max_message_bytes,
          .max_pio_put_bytes = description.rma_max_immediate_bytes,
          .send_packet_bytes = description.velo_payload_bytes,
          .ordered_verbs = false};
}

void ExtollNic::doorbell(MessageId id) {
  switch (card_.all.messages.descriptor(id).verb) {
    case Verb::send:
      velo_.send(id);
      break;
    case Verb::put:
      requester_.post(id, Role::put);
      break;
    case Verb::get:
      requester_.post(id, Role::get_request);
      break;
    case Verb::credit:  // never posted: the card needs no credit
      break;
  }
}

void ExtollNic::packet_arrived(const Packet& packet, Time head_time) {
  if (extoll::role_of(packet) == Role::velo) {
    velo_.packet_arrived(packet, head_time);
  } else {
    completer_.packet_arrived(packet, head_time);
  }
}

void ExtollNic::injection_freed(std::uint16_t channel) {
  switch (static_cast<Channel>(channel)) {
    case Channel::velo:
      velo_.injection_freed();
      break;
    case Channel::request:
      requester_.injection_freed();
      break;
    case Channel::response:
      responder_.injection_freed();
      break;
  }
}

}  // namespace apenet
