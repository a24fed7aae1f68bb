#include "nic/extoll/nic.hpp"

namespace apenet::extoll {

Nic::Nic(const Card& card)
    : card_(card),
      requester_(card_, Channel::request, card.all.description.rma_requester_cycles),
      responder_(card_, Channel::response, card.all.description.rma_responder_cycles),
      completer_(card_, responder_),
      velo_(card_, responder_) {
  card_.all.network.attach(card_.node, *this);
}

void Nic::doorbell(MessageId id) {
  const Descriptor& descriptor = card_.all.messages.descriptor(id);
  switch (descriptor.verb) {
    case Verb::send:
      if (descriptor.from_cpu) {
        velo_.send(id);
      } else {
        requester_.post(id, Role::put);
      }
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

void Nic::packet_arrived(const Packet& packet, Time head_time) {
  if (role_of(packet) == Role::velo) {
    velo_.packet_arrived(packet, head_time);
  } else {
    completer_.packet_arrived(packet, head_time);
  }
}

void Nic::injection_freed(std::uint16_t channel) {
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

}  // namespace apenet::extoll
