#include "nic/apelink_plus/apelink_plus_nic.hpp"

namespace apenet {

ApelinkPlusNic::ApelinkPlusNic(const ApeCard& card, PlusCards& plus)
    : card_(card),
      plus_(plus),
      gpu_(card.all.simulation, plus.gpu, card.bus, card_.source),
      transmitter_(card_),
      events_(card_, transmitter_),
      receiver_(card_, plus, events_) {
  if (plus.description.gpu.is_there()) card_.gpu = &gpu_;
  card_.all.network.attach(card_.node(), *this);
}

NicCapabilities ApelinkPlusNic::capabilities_of(const ApelinkPlusDescription& description) {
  NicCapabilities capabilities = ape_card_capabilities(description);
  capabilities.gpu_memory = description.gpu.is_there();
  capabilities.drops = true;
  capabilities.max_send_bytes = description.max_send_bytes;
  return capabilities;
}

void ApelinkPlusNic::doorbell(MessageId id) {
  const bool is_get = card_.all.messages.descriptor(id).verb == Verb::get;
  transmitter_.doorbell(id, is_get ? PacketRole::get_request : PacketRole::data);
}

void ApelinkPlusNic::packet_arrived(const Packet& packet, Time head_time) {
  receiver_.packet_arrived(packet, head_time);
}

void ApelinkPlusNic::injection_freed(std::uint16_t channel) {
  transmitter_.injection_freed(channel);
}

}  // namespace apenet
