#include "api/sockets/program_memory.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

namespace apenet::sockets {

int check_address(const sockaddr* address, socklen_t length) {
  std::array<std::byte, sizeof(sockaddr_storage)> copy{};
  if (length > copy.size()) return -EINVAL;
  return copy_in(copy.data(), address, length) ? 0 : -EFAULT;
}

bool is_unspecified(const sockaddr* address, socklen_t length) {
  sa_family_t family = AF_INET;
  return length >= sizeof family && copy_in(&family, address, sizeof family) && family == AF_UNSPEC;
}

int read_address(const sockaddr* address, socklen_t length, ipc::SocketEndpoint& endpoint,
                 sa_family_t family) {
  sockaddr_in in{};
  if (length < sizeof in || !copy_in(&in, address, sizeof in)) return -EINVAL;
  if (in.sin_family != family) return -EAFNOSUPPORT;
  endpoint = {.address = ntohl(in.sin_addr.s_addr), .port = ntohs(in.sin_port)};
  return 0;
}

int write_address(const ipc::SocketEndpoint* endpoint, sockaddr* address, socklen_t* length) {
  sockaddr_in in{};
  int capacity = 0;
  if (!copy_in(&capacity, length, sizeof capacity)) return -EFAULT;
  if (capacity < 0) return -EINVAL;
  const int bytes = endpoint == nullptr ? 0 : static_cast<int>(sizeof in);
  if (endpoint != nullptr) {
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(endpoint->address);
    in.sin_port = htons(static_cast<std::uint16_t>(endpoint->port));
  }
  if (!copy_out(address, &in, static_cast<std::size_t>(std::min(bytes, capacity)))) return -EFAULT;
  return copy_out(length, &bytes, sizeof bytes) ? 0 : -EFAULT;
}

}  // namespace apenet::sockets
