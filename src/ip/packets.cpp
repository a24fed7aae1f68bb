#include "ip/packets.hpp"

namespace apenet::ip {
namespace {

constexpr std::size_t ip_header_bytes = 20;  // RFC 791, section 3.1: without options
constexpr std::size_t protocol_at = 9;
constexpr std::size_t target_at = 16;
constexpr std::size_t tcp_header_bytes = 20;  // RFC 9293, section 3.1
constexpr std::size_t flags_at = 13;
constexpr unsigned tcp = 6;
constexpr unsigned syn = 2;
constexpr unsigned ack = 16;

unsigned octet(std::span<const std::byte> packet, std::size_t at) {
  return std::to_integer<unsigned>(packet[at]);
}

}  // namespace

bool is_version_4(std::span<const std::byte> packet) {
  return packet.size() >= ip_header_bytes && octet(packet, 0) >> 4U == 4;
}

std::uint32_t target_of(std::span<const std::byte> packet) {
  std::uint32_t target = 0;
  if (packet.size() < ip_header_bytes) return 0;
  for (std::size_t i = 0; i < sizeof target; ++i) target = target << 8U | octet(packet, target_at + i);
  return target;
}

bool is_tcp(std::span<const std::byte> packet) {
  return packet.size() >= ip_header_bytes && octet(packet, protocol_at) == tcp;
}

std::optional<std::uint16_t> opened_port(std::span<const std::byte> packet) {
  if (!is_tcp(packet)) return std::nullopt;
  const std::size_t header = (octet(packet, 0) & 0xfU) * 4;
  if (packet.size() < header + tcp_header_bytes) return std::nullopt;
  if ((octet(packet, header + flags_at) & (syn | ack)) != syn) return std::nullopt;
  return static_cast<std::uint16_t>(octet(packet, header + 2) << 8U | octet(packet, header + 3));
}

}  // namespace apenet::ip
