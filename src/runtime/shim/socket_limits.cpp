#include "runtime/shim/socket_limits.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Whether the process, or the one that has forked it, has set a limit.
std::atomic<bool>& has_limits() {
  static constinit std::atomic<bool> value{false};
  return value;
}

// Zero: none.
timeval limit_of(int socket, int option) {
  timeval limit{};
  socklen_t bytes = sizeof limit;
  const bool is_known = ipc::host_call(SYS_getsockopt, socket, SOL_SOCKET, static_cast<std::uint64_t>(option),
                                       &limit, reinterpret_cast<std::uint64_t>(&bytes)) == 0;
  return is_known ? limit : timeval{};
}

bool never_waits(int socket, int flags) {
  return (flags & MSG_DONTWAIT) != 0 || (ipc::host_call(SYS_fcntl, socket, F_GETFL) & O_NONBLOCK) != 0;
}

}  // namespace

bool await_socket(int socket, short events, int flags) {
  if (!has_limits() || clock_client() == nullptr) return true;
  const int error = errno;
  const timeval limit = limit_of(socket, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
  const bool has_limit = (limit.tv_sec != 0 || limit.tv_usec != 0) && !never_waits(socket, flags);
  errno = error;
  if (!has_limit) return true;
  static const auto wait = own<decltype(&::ppoll)>("ppoll");
  pollfd polled{.fd = socket, .events = events, .revents = 0};
  const timespec most{.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_usec * ps_per_ns};
  const int ready = wait(&polled, 1, &most, nullptr);
  if (ready == 0) errno = EAGAIN;
  return ready > 0;
}

APENET_EXPORT int setsockopt(int socket, int level, int name, const void* value, socklen_t length) noexcept {
  static const auto real = next<int (*)(int, int, int, const void*, socklen_t)>("setsockopt");
  const int result = real(socket, level, name, value, length);
  if (result == 0 && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) has_limits() = true;
  return result;
}

}  // namespace apenet::shim
