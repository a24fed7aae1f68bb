// What the interposed calls share.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "api/sockets/simulated_socket.hpp"
#include "runtime/ipc/host_call.hpp"

#define APENET_REAL(name) static const auto real = next<decltype(&::name)>(#name)

namespace apenet::sockets {

// -1, with errno.
inline int fail(int error) {
  errno = error;
  return -1;
}

inline int refused(int error, const std::string& what) {
  warn(what);
  return fail(error);
}

inline std::uint8_t waiting_flag(int file, int flags) {
  return (flags & MSG_DONTWAIT) != 0 || is_nonblocking(file) ? std::uint8_t{ipc::no_wait} : std::uint8_t{0};
}

// Whether a call for the descriptor finds a file.
inline bool is_open(int file) {
  const int error = errno;
  const bool is_file = ipc::host_call(SYS_fcntl, file, F_GETFD) >= 0;
  errno = error;
  return is_file;
}

// A simulated socket of the program, and the process's way to it.
struct Used {
  KnownSocket socket;
  Caller& caller;
};
// Empty, with errno: there is none.
inline std::optional<Used> used_socket(int file) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (socket && caller != nullptr) return Used{*socket, *caller};
  errno = EBADF;
  return std::nullopt;
}

}  // namespace apenet::sockets
