#include "nic/extoll/card.hpp"

namespace apenet::extoll {

namespace {

Channel channel_of(Role role) {
  switch (role) {
    case Role::velo:
      return Channel::velo;
    case Role::put:
    case Role::get_request:
      return Channel::request;
    case Role::get_response:
    case Role::acknowledgement:
      break;
  }
  return Channel::response;
}

}  // namespace

Packet make_packet(const Card& card, MessageId id, Role role, std::int64_t content_bytes) {
  const Descriptor& descriptor = card.all.messages.descriptor(id);
  const Description& description = card.all.description;
  const std::int64_t granules = (content_bytes + description.granule_bytes - 1) / description.granule_bytes;
  const Channel channel = channel_of(role);
  const bool to_source = channel == Channel::response;
  Packet packet;
  packet.source = card.node;
  packet.destination = card.all.placement.node(to_source ? descriptor.source : descriptor.target);
  packet.payload_bytes = static_cast<std::uint32_t>(granules * description.granule_bytes);
  packet.wire_bytes =
      packet.payload_bytes + static_cast<std::uint32_t>(description.header_bytes + description.footer_bytes);
  packet.message = std::uint64_t{id} << role_bits | static_cast<std::uint64_t>(role);
  packet.channel = static_cast<std::uint16_t>(channel);
  return packet;
}

}  // namespace apenet::extoll
