#include "ip/packets.hpp"

namespace apenet::ip {
namespace {

constexpr std::size_t ip_header_bytes = 20;  // RFC 791, section 3.1: without options
constexpr std::size_t protocol_at = 9;
constexpr std::size_t target_at = 16;
constexpr std::size_t tcp_header_bytes = 20;  // RFC 9293, section 3.1
constexpr std::size_t flags_at = 13;
constexpr std::size_t source_at = 12;
constexpr std::size_t icmp_header_bytes = 8;  // RFC 792
constexpr std::size_t udp_header_bytes = 8;   // RFC 768
constexpr unsigned icmp = 1;
constexpr unsigned tcp = 6;
constexpr unsigned udp = 17;
constexpr unsigned destination_unreachable = 3;
constexpr unsigned code_of_port = 3;
constexpr unsigned syn = 2;
constexpr unsigned ack = 16;

unsigned octet(std::span<const std::byte> packet, std::size_t at) {
  return std::to_integer<unsigned>(packet[at]);
}

std::uint32_t number_at(std::span<const std::byte> packet, std::size_t at, std::size_t octets) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < octets; ++i) number = number << 8U | octet(packet, at + i);
  return number;
}

std::size_t header_bytes_of(std::span<const std::byte> packet) {
  return std::size_t{octet(packet, 0) & 0xfU} * 4;
}

void put(std::span<std::byte> packet, std::size_t at, std::size_t octets, std::uint32_t number) {
  for (std::size_t i = octets; i > 0; --i, number >>= 8U)
    packet[at + i - 1] = static_cast<std::byte>(number & 0xffU);
}

struct Header {
  unsigned protocol = 0;
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::size_t payload_bytes = 0;
};
void put_header(std::span<std::byte> packet, const Header& header) {
  constexpr std::uint32_t version_4 = 0x45;
  constexpr std::uint32_t hops = 64;
  put(packet, 0, 1, version_4);
  put(packet, 2, 2, static_cast<std::uint32_t>(ip_header_bytes + header.payload_bytes));
  put(packet, 8, 1, hops);
  put(packet, protocol_at, 1, header.protocol);
  put(packet, source_at, 4, header.source);
  put(packet, target_at, 4, header.target);
}

}  // namespace

bool is_version_4(std::span<const std::byte> packet) {
  return packet.size() >= ip_header_bytes && octet(packet, 0) >> 4U == 4;
}

std::uint32_t target_of(std::span<const std::byte> packet) {
  return packet.size() < ip_header_bytes ? 0 : number_at(packet, target_at, 4);
}

bool is_tcp(std::span<const std::byte> packet) {
  return packet.size() >= ip_header_bytes && octet(packet, protocol_at) == tcp;
}

std::optional<std::uint16_t> opened_port(std::span<const std::byte> packet) {
  if (!is_tcp(packet)) return std::nullopt;
  const std::size_t header = header_bytes_of(packet);
  if (packet.size() < header + tcp_header_bytes) return std::nullopt;
  if ((octet(packet, header + flags_at) & (syn | ack)) != syn) return std::nullopt;
  return static_cast<std::uint16_t>(number_at(packet, header + 2, 2));
}

std::optional<UnreachablePort> unreachable_port(std::span<const std::byte> packet) {
  if (packet.size() < ip_header_bytes || octet(packet, protocol_at) != icmp) return std::nullopt;
  const std::size_t header = header_bytes_of(packet);
  const std::size_t inner_at = header + icmp_header_bytes;
  if (packet.size() < inner_at + ip_header_bytes) return std::nullopt;
  if (octet(packet, header) != destination_unreachable || octet(packet, header + 1) != code_of_port)
    return std::nullopt;
  const std::span<const std::byte> inner = packet.subspan(inner_at);
  const std::size_t ports_at = header_bytes_of(inner);
  if (octet(inner, protocol_at) != udp || inner.size() < ports_at + 4) return std::nullopt;
  return UnreachablePort{
      .local = {number_at(inner, source_at, 4), static_cast<std::uint16_t>(number_at(inner, ports_at, 2))},
      .remote = {number_at(inner, target_at, 4),
                 static_cast<std::uint16_t>(number_at(inner, ports_at + 2, 2))}};
}

std::vector<std::byte> port_unreachable(Endpoint from, Endpoint target, std::size_t bytes) {
  constexpr std::size_t inner_at = ip_header_bytes + icmp_header_bytes;
  constexpr std::size_t udp_at = inner_at + ip_header_bytes;
  std::vector<std::byte> packet(udp_at + udp_header_bytes);
  const std::span<std::byte> all(packet);
  put_header(all, {icmp, target.address, from.address, packet.size() - ip_header_bytes});
  put(all, ip_header_bytes, 1, destination_unreachable);
  put(all, ip_header_bytes + 1, 1, code_of_port);
  put_header(all.subspan(inner_at), {udp, from.address, target.address, udp_header_bytes + bytes});
  put(all, udp_at, 2, from.port);
  put(all, udp_at + 2, 2, target.port);
  put(all, udp_at + 4, 2, static_cast<std::uint32_t>(udp_header_bytes + bytes));
  return packet;
}

}  // namespace apenet::ip
