#include "runtime/launch/core_claim.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace apenet {
namespace {

constexpr int none = -1;

// Calls use(socket, address, length) with a new socket; closes the socket unless that returns true. Returns
// the socket that stays open, or none.
template <typename Use>
int with_socket(std::size_t core, Use use) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return none;
  const std::string name = "apenet-core-" + std::to_string(core);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // The zero byte in front makes the name an abstract one.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (use(socket, reinterpret_cast<const sockaddr*>(&address), length)) return socket;
  close(socket);
  return none;
}

}  // namespace

std::optional<CoreClaim> CoreClaim::take(std::size_t core) {
  const int socket = with_socket(
      core, [](int fd, const sockaddr* address, socklen_t length) { return bind(fd, address, length) == 0; });
  if (socket == none) return std::nullopt;
  return CoreClaim(core, socket);
}

bool CoreClaim::is_taken(std::size_t core) {
  bool is_bound = false;
  with_socket(core, [&is_bound](int fd, const sockaddr* address, socklen_t length) {
    is_bound = connect(fd, address, length) == 0;
    return false;
  });
  return is_bound;
}

CoreClaim::CoreClaim(CoreClaim&& other) noexcept
    : core_(other.core_), socket_(std::exchange(other.socket_, none)) {}

CoreClaim& CoreClaim::operator=(CoreClaim&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(socket_, other.socket_);
  return *this;
}

CoreClaim::~CoreClaim() {
  if (socket_ != none) close(socket_);
}

}  // namespace apenet
