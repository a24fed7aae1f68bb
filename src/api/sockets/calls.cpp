// The calls that make, connect, close and copy sockets. A call for another file is the host's.
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <string>
#include <string_view>

#include "api/sockets/calls.hpp"
#include "api/sockets/epoll_sets.hpp"
#include "api/sockets/program_memory.hpp"
#include "api/sockets/simulated_socket.hpp"
#include "api/sockets/streams.hpp"

namespace apenet::sockets {
namespace {

using ipc::SocketCall;
using ipc::SocketVerb;

std::int64_t simple(int file, std::string_view name, SocketCall call) {
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  call.socket = used->socket.number;
  return returned(used->caller.call(name, call));
}

int accept_one(int file, sockaddr* address, socklen_t* length, int flags) {
  if ((flags & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0) return fail(EINVAL);
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  const SocketCall call{.verb = SocketVerb::accept,
                        .flags = waiting_flag(file, 0),
                        .socket = used->socket.number,
                        .most_ps = used->socket.receive_most_ps};
  const ipc::SocketAnswer answer = used->caller.call("accept", call);
  if (answer.result < 0) return static_cast<int>(returned(answer));
  const auto number = static_cast<std::uint32_t>(answer.result);
  if (const int error = address == nullptr ? 0 : write_address(&answer.endpoint, address, length);
      error < 0) {
    used->caller.close(number);  // as the kernel does
    return fail(-error);
  }
  return add_stand_in({.number = number}, flags);
}

void close_socket(const KnownSocket& socket) {
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return;
  const int error = errno;
  caller->close(socket.number);
  errno = error;
}

// Before the host closes the descriptor, so that another thread does not get its number meanwhile.
void before_close(int file) {
  if (!is_simulated(file) || is_vfork_child()) return;
  forget_in_epoll_sets(file);
  if (const std::optional<KnownSocket> socket = forget(file)) close_socket(*socket);
}

template <typename Real>
int control(Real real, int file, int command, void* argument) {
  const int result = real(file, command, argument);
  if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) note_duplicate(file, result);
  return result;
}

// Open MPI's ranks reach their process manager, a process of the host, by its own library.
bool is_of_process_manager(const void* caller) {
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libpmix") || name.starts_with("mca_pmix");
}

}  // namespace

APENET_SOCKETS_EXPORT int socket(int domain, int type, int protocol) noexcept {
  APENET_REAL(socket);
  if (domain != AF_INET && domain != AF_INET6 && domain != AF_PACKET) return real(domain, type, protocol);
  if (is_of_process_manager(__builtin_return_address(0))) return real(domain, type, protocol);
  Caller* const caller = Caller::instance();
  if (caller == nullptr) {
    // The host's network instead would be a wrong answer without a word.
    return refused(ENETDOWN, std::string("socket(): this process has no sockets of the simulated nodes: ") +
                                 Caller::why_none());
  }
  // The kernel's order: __sys_socket(), inet_create().
  constexpr int kinds = 0xf;        // SOCK_TYPE_MASK
  constexpr int end_of_kinds = 11;  // SOCK_MAX
  constexpr int multipath = 262;    // IPPROTO_MPTCP, which older headers lack
  const int kind = type & kinds;
  if ((type & ~(kinds | SOCK_NONBLOCK | SOCK_CLOEXEC)) != 0 || kind >= end_of_kinds) return fail(EINVAL);
  if (domain == AF_INET6) return refused(EAFNOSUPPORT, "socket(AF_INET6): the simulated nodes have no IPv6");
  if (domain == AF_PACKET || kind == SOCK_RAW)
    return refused(EPERM, "socket(): raw and packet sockets are not simulated");
  if (protocol < 0 || protocol > multipath) return fail(EINVAL);
  const bool is_datagram = kind == SOCK_DGRAM;
  if (!is_datagram && kind != SOCK_STREAM) return fail(ESOCKTNOSUPPORT);
  const int usual = is_datagram ? IPPROTO_UDP : IPPROTO_TCP;
  // As kernels without it; programs that ask for it do without.
  if (protocol == multipath || protocol == IPPROTO_TCP + IPPROTO_UDP - usual) return fail(EPROTONOSUPPORT);
  if (protocol != 0 && protocol != usual) {
    return refused(EPROTONOSUPPORT, "socket(AF_INET, " + std::to_string(kind) + ", " +
                                        std::to_string(protocol) + "): only TCP and UDP are simulated");
  }
  const ipc::SocketAnswer answer =
      caller->call("socket", {.verb = SocketVerb::open, .value = is_datagram ? 1 : 0});
  if (answer.result < 0) return static_cast<int>(returned(answer));
  return add_stand_in({.number = static_cast<std::uint32_t>(answer.result), .is_datagram = is_datagram},
                      type & (SOCK_NONBLOCK | SOCK_CLOEXEC));
}

APENET_SOCKETS_EXPORT int bind(int file, const sockaddr* address, socklen_t length) noexcept {
  APENET_REAL(bind);
  if (!is_simulated(file)) return real(file, address, length);
  SocketCall call{.verb = SocketVerb::bind};
  if (const int error = check_address(address, length); error < 0) return fail(-error);
  int error = read_address(address, length, call.endpoint);
  // For programs of long ago.
  if (error == -EAFNOSUPPORT && read_address(address, length, call.endpoint, AF_UNSPEC) == 0 &&
      call.endpoint.address == INADDR_ANY)
    error = 0;
  if (error < 0) return fail(-error);
  return static_cast<int>(simple(file, "bind", call));
}

APENET_SOCKETS_EXPORT int listen(int file, int backlog) noexcept {
  APENET_REAL(listen);
  if (!is_simulated(file)) return real(file, backlog);
  return static_cast<int>(simple(file, "listen", {.verb = SocketVerb::listen, .value = backlog}));
}

APENET_SOCKETS_EXPORT int connect(int file, const sockaddr* address, socklen_t length) {
  APENET_REAL(connect);
  if (!is_simulated(file)) return real(file, address, length);
  if (const int error = check_address(address, length); error < 0) return fail(-error);
  if (length < sizeof(sa_family_t)) return fail(EINVAL);
  if (is_unspecified(address, length))
    return static_cast<int>(simple(file, "connect", {.verb = SocketVerb::disconnect}));
  SocketCall call{.verb = SocketVerb::connect, .flags = waiting_flag(file, 0)};
  call.value = read_address(address, length, call.endpoint);
  if (const auto socket = known_socket(file)) call.most_ps = socket->send_most_ps;
  return static_cast<int>(simple(file, "connect", call));
}

APENET_SOCKETS_EXPORT int accept(int file, sockaddr* address, socklen_t* length) {
  APENET_REAL(accept);
  return is_simulated(file) ? accept_one(file, address, length, 0) : real(file, address, length);
}

APENET_SOCKETS_EXPORT int accept4(int file, sockaddr* address, socklen_t* length, int flags) {
  APENET_REAL(accept4);
  return is_simulated(file) ? accept_one(file, address, length, flags) : real(file, address, length, flags);
}

APENET_SOCKETS_EXPORT int shutdown(int file, int how) noexcept {
  APENET_REAL(shutdown);
  if (!is_simulated(file)) return real(file, how);
  if (how < SHUT_RD || how > SHUT_RDWR) return fail(EINVAL);
  return static_cast<int>(simple(file, "shutdown", {.verb = SocketVerb::shutdown, .value = how}));
}

APENET_SOCKETS_EXPORT int close(int file) {
  APENET_REAL(close);
  before_close(file);
  forget_epoll_set(file);
  return real(file);
}

APENET_SOCKETS_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  APENET_REAL(close_range);
  constexpr unsigned most = 65535;
  for (unsigned file = first; flags == 0 && file <= std::min(last, most); ++file)
    before_close(static_cast<int>(file));
  return real(first, last, flags);
}

APENET_SOCKETS_EXPORT int dup(int file) noexcept {
  APENET_REAL(dup);
  const int result = real(file);
  note_duplicate(file, result);
  return result;
}

APENET_SOCKETS_EXPORT int dup2(int file, int other) noexcept {
  APENET_REAL(dup2);
  if (file == other || !is_open(file)) return real(file, other);
  before_close(other);
  const int result = real(file, other);
  note_duplicate(file, result);
  take_over_standard_stream(result);
  return result;
}

APENET_SOCKETS_EXPORT int dup3(int file, int other, int flags) noexcept {
  APENET_REAL(dup3);
  if (file == other || !is_open(file) || (flags & ~O_CLOEXEC) != 0) return real(file, other, flags);
  before_close(other);
  const int result = real(file, other, flags);
  note_duplicate(file, result);
  return result;
}

#define APENET_SOCKETS_FCNTL(name)                             \
  APENET_SOCKETS_EXPORT int name(int file, int command, ...) { \
    APENET_REAL(name);                                         \
    va_list list;                                              \
    va_start(list, command);                                   \
    void* const argument = va_arg(list, void*);                \
    va_end(list);                                              \
    return control(real, file, command, argument);             \
  }
APENET_SOCKETS_FCNTL(fcntl)
APENET_SOCKETS_FCNTL(fcntl64)

}  // namespace apenet::sockets
