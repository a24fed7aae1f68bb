// The address of the socket by which a process reaches its process manager if its descriptor has been closed.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace apenet::ipc {

// An abstract name: the manager's, and what a process adds to it for its own end.
class ManagerAddress {
 public:
  ManagerAddress(std::string_view manager, std::string_view added) {
    address_.sun_family = AF_UNIX;
    char* at = &address_.sun_path[1];
    at = std::copy(manager.begin(), manager.end(), at);
    at = std::copy(added.begin(), added.end(), at);
    bytes_ = static_cast<socklen_t>(at - reinterpret_cast<char*>(&address_));
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  [[nodiscard]] socklen_t bytes() const { return bytes_; }

 private:
  sockaddr_un address_{};
  socklen_t bytes_ = 0;
};

}  // namespace apenet::ipc
