#include "runtime/shim/socket_limits.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <numeric>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
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

bool never_waits(int socket, short events, int flags) {
  const int at_once = events == POLLIN ? MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE : MSG_DONTWAIT;
  return (flags & at_once) != 0 || (ipc::host_call(SYS_fcntl, socket, F_GETFL) & O_NONBLOCK) != 0;
}

}  // namespace

bool await_socket(int socket, short events, int flags) {
  if (!has_limits() || clock_client() == nullptr) return true;
  const int error = errno;
  const timeval limit = limit_of(socket, events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO);
  const bool has_limit = (limit.tv_sec != 0 || limit.tv_usec != 0) && !never_waits(socket, events, flags);
  errno = error;
  if (!has_limit) return true;
  static const auto wait = own<decltype(&::ppoll)>("ppoll");
  pollfd polled{.fd = socket, .events = events, .revents = 0};
  const timespec most{.tv_sec = limit.tv_sec, .tv_nsec = limit.tv_usec * ps_per_ns};
  const int ready = wait(&polled, 1, &most, nullptr);
  if (ready == 0) errno = EAGAIN;
  return ready > 0;
}

std::size_t bytes_in(const iovec* parts, std::size_t count) {
  if (count > IOV_MAX || !ipc::is_readable(parts, count * sizeof *parts)) return 0;
  const bool is_valid = std::all_of(
      parts, parts + count, [](const iovec& part) { return static_cast<ssize_t>(part.iov_len) >= 0; });
  if (!is_valid) return 0;
  return std::accumulate(parts, parts + count, std::size_t{0},
                         [](std::size_t bytes, const iovec& part) { return bytes + part.iov_len; });
}

bool await_connection(int socket) {
  if (!has_limits()) return true;
  int listens = 0;
  socklen_t bytes = sizeof listens;
  const int error = errno;
  ipc::host_call(SYS_getsockopt, socket, SOL_SOCKET, std::uint64_t{SO_ACCEPTCONN}, &listens,
                 reinterpret_cast<std::uint64_t>(&bytes));
  errno = error;
  return listens == 0 || await_socket(socket, POLLIN);
}

bool await_socket(int socket, short events, const iovec* parts, std::size_t count) {
  return !has_limits() || bytes_in(parts, count) == 0 || await_socket(socket, events);
}

bool await_socket(int socket, short events, const msghdr* message, int flags) {
  if (!has_limits() || !ipc::is_readable(message, sizeof *message)) return true;
  const std::size_t count = message->msg_iovlen;
  const bool is_list = count <= IOV_MAX && ipc::is_readable(message->msg_iov, count * sizeof(iovec));
  return !is_list || await_socket(socket, events, flags);
}

APENET_EXPORT int setsockopt(int socket, int level, int name, const void* value, socklen_t length) noexcept {
  static const auto real = next<int (*)(int, int, int, const void*, socklen_t)>("setsockopt");
  const int result = real(socket, level, name, value, length);
  if (result == 0 && level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) has_limits() = true;
  return result;
}

}  // namespace apenet::shim
