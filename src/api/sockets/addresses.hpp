// Addresses of the simulated nodes.
#pragma once

#include <cstdint>

namespace apenet::sockets {

inline constexpr std::uint32_t first_address = 0x0a000001;  // IpNetwork::address_of(0)

}  // namespace apenet::sockets
