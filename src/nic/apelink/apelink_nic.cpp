#include "nic/apelink/apelink_nic.hpp"

namespace apenet {

ApelinkNic::ApelinkNic(const ApeCard& card)
    : card_(card), transmitter_(card_), events_(card_, transmitter_), receiver_(card_, events_) {
  card_.all.network.attach(card_.node(), *this);
}

void ApelinkNic::doorbell(MessageId id) {
  const bool is_get = card_.all.messages.descriptor(id).verb == Verb::get;
  transmitter_.doorbell(id, is_get ? PacketRole::get_request : PacketRole::data);
}

void ApelinkNic::packet_arrived(const Packet& packet, Time head_time) {
  receiver_.packet_arrived(packet, head_time);
}

void ApelinkNic::injection_freed(std::uint16_t channel) {
  transmitter_.injection_freed(channel);
}

}  // namespace apenet
