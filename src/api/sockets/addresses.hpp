// Addresses of the simulated nodes in the forms of C.
#pragma once

#include <sys/socket.h>

#include <cstdint>

#include "runtime/ipc/socket_call.hpp"

namespace apenet::sockets {

inline constexpr std::uint32_t first_address = 0x0a000001;  // IpNetwork::address_of(0)

// False, with errno: it is none of IPv4.
[[nodiscard]] bool read_address(const sockaddr* address, socklen_t length, ipc::SocketEndpoint& endpoint);
void write_address(const ipc::SocketEndpoint& endpoint, sockaddr* address, socklen_t* length);

}  // namespace apenet::sockets
