#include "nic/apelink/apelink_nic.hpp"

namespace apenet {

ApelinkNic::ApelinkNic(const ApelinkCard& card)
    : card_(card), transmitter_(card_), receiver_(card_, transmitter_) {
  card_.all.network.attach(card_.node, *this);
}

NicCapabilities ApelinkNic::capabilities_of(const ApelinkDescription& description) {
  return {.put = true,
          .get = true,
          .max_message_bytes = description.max_message_bytes,
          .max_send_bytes = description.max_message_bytes,
          .max_pio_bytes = description.max_pio_bytes,
          .channels = static_cast<std::uint16_t>(description.queues)};
}

void ApelinkNic::doorbell(const Descriptor& descriptor) {
  const PacketRole role = descriptor.verb == Verb::get ? PacketRole::get_request : PacketRole::data;
  transmitter_.doorbell(card_.all.messages.add(descriptor), role);
}

void ApelinkNic::packet_arrived(const Packet& packet, Time head_time) {
  receiver_.packet_arrived(packet, head_time);
}

void ApelinkNic::injection_freed(std::uint16_t channel) {
  transmitter_.injection_freed(channel);
}

}  // namespace apenet
