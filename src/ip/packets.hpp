// What IP packets say in their headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ip/sockets.hpp"

namespace apenet::ip {

[[nodiscard]] bool is_version_4(std::span<const std::byte> packet);
// The address to which a packet goes; 0: it is too short.
[[nodiscard]] std::uint32_t target_of(std::span<const std::byte> packet);
[[nodiscard]] bool is_tcp(std::span<const std::byte> packet);
// The port that a TCP segment opens a connection to, if it is the first of one.
[[nodiscard]] std::optional<std::uint16_t> opened_port(std::span<const std::byte> packet);

// What the sender of a datagram learns: nobody has the port (RFC 792).
struct UnreachablePort {
  Endpoint local;   // the sender's
  Endpoint remote;  // nobody has it
};
[[nodiscard]] std::optional<UnreachablePort> unreachable_port(std::span<const std::byte> packet);
// The packet that says so, for a datagram of so many bytes.
[[nodiscard]] std::vector<std::byte> port_unreachable(Endpoint from, Endpoint target, std::size_t bytes);

}  // namespace apenet::ip
