// The calls that make, connect, read and write sockets. A call for another file is the host's.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "api/sockets/addresses.hpp"
#include "api/sockets/epoll_sets.hpp"
#include "api/sockets/passed_files.hpp"
#include "api/sockets/simulated_socket.hpp"
#include "api/sockets/streams.hpp"

namespace apenet::sockets {
namespace {

using ipc::SocketCall;
using ipc::SocketVerb;

#define APENET_REAL(name) static const auto real = next<decltype(&::name)>(#name)

int refused(int error, const std::string& what) {
  warn(what);
  errno = error;
  return -1;
}

std::uint8_t waiting_flag(int file, int flags) {
  return (flags & MSG_DONTWAIT) != 0 || is_nonblocking(file) ? std::uint8_t{ipc::no_wait} : std::uint8_t{0};
}

std::int64_t simple(int file, std::string_view name, SocketCall call) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (!socket || caller == nullptr) {
    errno = EBADF;
    return -1;
  }
  call.socket = socket->number;
  return returned(caller->call(name, call));
}

// A stream is copied into the socket part by part, while what is there already leaves.
constexpr std::size_t part_bytes = 64 * 1024;

ipc::SocketAnswer send_stream(Caller& caller, SocketCall call, const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::uint8_t flags = call.flags;
  std::int64_t sent = 0;
  for (;;) {
    const std::size_t part = std::min(part_bytes, bytes - static_cast<std::size_t>(sent));
    CallCost cost{.before = caller.copy_time(part), .after = {}};
    if (sent == 0) cost.before += caller.costs().send;
    cost.is_further_part = sent > 0;
    const bool is_last = static_cast<std::size_t>(sent) + part == bytes;
    call.flags = static_cast<std::uint8_t>(is_last ? flags : flags | ipc::more_follows);
    ipc::SocketAnswer answer = caller.call("send", call, begin + sent, part, cost);
    if (answer.result > 0) sent += answer.result;
    const bool is_over =
        answer.result < static_cast<std::int64_t>(part) || sent == static_cast<std::int64_t>(bytes);
    if (is_over && sent > 0) answer.result = sent;
    if (is_over) return answer;
  }
}

ssize_t send_bytes(int file, const void* data, std::size_t bytes, int flags, const sockaddr* address,
                   socklen_t length) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (!socket || caller == nullptr) {
    errno = EBADF;
    return -1;
  }
  if ((flags & MSG_OOB) != 0) return refused(EOPNOTSUPP, "send() with MSG_OOB: not simulated");
  SocketCall call{.verb = SocketVerb::send,
                  .flags = waiting_flag(file, flags),
                  .socket = socket->number,
                  .most_ps = socket->send_most_ps};
  if ((flags & MSG_MORE) != 0) call.flags |= ipc::more_follows;
  if (!socket->is_datagram) {
    const ipc::SocketAnswer answer = send_stream(*caller, call, data, bytes);
    if (answer.result == -EPIPE && (flags & MSG_NOSIGNAL) == 0) ::raise(SIGPIPE);
    return returned(answer);
  }
  if (address != nullptr) {
    if (!read_address(address, length, call.endpoint)) return -1;
    call.flags |= ipc::has_endpoint;
  }
  const CallCost cost{.before = caller->costs().send + caller->copy_time(bytes), .after = {}};
  return returned(caller->call("send", call, data, bytes, cost));
}

ssize_t receive_bytes(int file, void* data, std::size_t bytes, int flags, sockaddr* address,
                      socklen_t* length) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (!socket || caller == nullptr) {
    errno = EBADF;
    return -1;
  }
  SocketCall call{.verb = SocketVerb::receive,
                  .flags = waiting_flag(file, flags),
                  .socket = socket->number,
                  .most_ps = socket->receive_most_ps};
  if ((flags & MSG_OOB) != 0) return refused(EINVAL, "recv() with MSG_OOB: not simulated");
  if ((flags & MSG_PEEK) != 0) call.flags |= ipc::only_peeks;
  if ((flags & MSG_WAITALL) != 0) call.flags |= ipc::takes_all;
  const CallCost cost{.before = {}, .after = [caller](std::int64_t result) {
                        if (result < 0) return Time::zero();
                        return caller->costs().receive +
                               caller->copy_time(static_cast<std::uint64_t>(result));
                      }};
  ipc::SocketAnswer answer = caller->call("recv", call, data, bytes, cost);
  if (answer.result >= 0 && address != nullptr && length != nullptr) {
    if (socket->is_datagram) {
      write_address(answer.endpoint, address, length);
    } else {
      *length = 0;
    }
  }
  const auto capacity = static_cast<std::int64_t>(bytes);
  if (answer.result > capacity && (flags & MSG_TRUNC) == 0) answer.result = capacity;
  return returned(answer);
}

std::vector<std::byte> joined(const iovec* parts, std::size_t count) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const begin = static_cast<const std::byte*>(parts[i].iov_base);
    bytes.insert(bytes.end(), begin, begin + parts[i].iov_len);
  }
  return bytes;
}

ssize_t send_parts(int file, const iovec* parts, std::size_t count, int flags, const sockaddr* address,
                   socklen_t length) {
  if (count == 1) return send_bytes(file, parts[0].iov_base, parts[0].iov_len, flags, address, length);
  const std::vector<std::byte> bytes = joined(parts, count);
  return send_bytes(file, bytes.data(), bytes.size(), flags, address, length);
}

ssize_t receive_parts(int file, const iovec* parts, std::size_t count, int flags, sockaddr* address,
                      socklen_t* length) {
  if (count == 1) return receive_bytes(file, parts[0].iov_base, parts[0].iov_len, flags, address, length);
  std::size_t capacity = 0;
  for (std::size_t i = 0; i < count; ++i) capacity += parts[i].iov_len;
  std::vector<std::byte> bytes(capacity);
  const ssize_t taken = receive_bytes(file, bytes.data(), capacity, flags, address, length);
  std::size_t from = 0;
  for (std::size_t i = 0; taken > 0 && i < count && from < static_cast<std::size_t>(taken); ++i) {
    const std::size_t part = std::min(parts[i].iov_len, static_cast<std::size_t>(taken) - from);
    std::memcpy(parts[i].iov_base, bytes.data() + from, part);
    from += part;
  }
  return taken;
}

ssize_t receive_message(int file, msghdr* message, int flags) {
  socklen_t length = message->msg_namelen;
  std::size_t capacity = 0;
  for (std::size_t i = 0; i < message->msg_iovlen; ++i) capacity += message->msg_iov[i].iov_len;
  const ssize_t taken = receive_parts(file, message->msg_iov, message->msg_iovlen, flags | MSG_TRUNC,
                                      static_cast<sockaddr*>(message->msg_name), &length);
  if (taken < 0) return taken;
  message->msg_namelen = message->msg_name == nullptr ? 0 : length;
  message->msg_controllen = 0;
  message->msg_flags = static_cast<std::size_t>(taken) > capacity ? MSG_TRUNC : 0;
  return (flags & MSG_TRUNC) != 0 ? taken : std::min(taken, static_cast<ssize_t>(capacity));
}

ssize_t send_message(int file, const msghdr* message, int flags) {
  const cmsghdr* const control = CMSG_FIRSTHDR(message);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
    return refused(EINVAL,
                   "sendmsg() of descriptors by a socket of the network: only Unix sockets pass them");
  if (message->msg_controllen > 0) warn("sendmsg(): its control data is ignored");
  return send_parts(file, message->msg_iov, message->msg_iovlen, flags,
                    static_cast<const sockaddr*>(message->msg_name), message->msg_namelen);
}

// Part of a file; the result says how much.
template <typename Offset>
ssize_t send_file(int file, int from, Offset* offset, std::size_t bytes) {
  std::vector<std::byte> data(std::min<std::size_t>(bytes, part_bytes));
  const auto begin = static_cast<off_t>(offset == nullptr ? ::lseek(from, 0, SEEK_CUR) : *offset);
  const ssize_t taken = ::pread(from, data.data(), data.size(), begin);
  if (taken <= 0) return taken;
  const ssize_t sent = send_bytes(file, data.data(), static_cast<std::size_t>(taken), 0, nullptr, 0);
  if (sent <= 0) return sent;
  if (offset != nullptr) {
    *offset = begin + sent;
  } else {
    ::lseek(from, begin + sent, SEEK_SET);
  }
  return sent;
}

int accept_one(int file, sockaddr* address, socklen_t* length, int flags) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (!socket || caller == nullptr) {
    errno = EBADF;
    return -1;
  }
  const SocketCall call{.verb = SocketVerb::accept,
                        .flags = waiting_flag(file, 0),
                        .socket = socket->number,
                        .most_ps = socket->receive_most_ps};
  const ipc::SocketAnswer answer = caller->call("accept", call);
  if (answer.result < 0) return static_cast<int>(returned(answer));
  if (address != nullptr && length != nullptr) write_address(answer.endpoint, address, length);
  return add_stand_in({.number = static_cast<std::uint32_t>(answer.result)}, flags);
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
  const int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (domain == AF_INET6) return refused(EAFNOSUPPORT, "socket(AF_INET6): the simulated nodes have no IPv6");
  if (domain == AF_PACKET || kind == SOCK_RAW)
    return refused(EPERM, "socket(): raw and packet sockets are not simulated");
  const bool is_datagram = kind == SOCK_DGRAM;
  const int usual = is_datagram ? IPPROTO_UDP : IPPROTO_TCP;
  constexpr int multipath = 262;  // IPPROTO_MPTCP, which older headers lack
  if (protocol == multipath) {    // as kernels without it; programs that ask for it do without
    errno = EPROTONOSUPPORT;
    return -1;
  }
  if ((!is_datagram && kind != SOCK_STREAM) || (protocol != 0 && protocol != usual)) {
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
  if (!read_address(address, length, call.endpoint)) return -1;
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
  SocketCall call{.verb = SocketVerb::connect, .flags = waiting_flag(file, 0)};
  if (!read_address(address, length, call.endpoint)) return -1;
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
  if (how < SHUT_RD || how > SHUT_RDWR) {
    errno = EINVAL;
    return -1;
  }
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
  if (file != other) before_close(other);
  const int result = real(file, other);
  if (file != other) note_duplicate(file, result);
  if (file != other) take_over_standard_stream(result);
  return result;
}

APENET_SOCKETS_EXPORT int dup3(int file, int other, int flags) noexcept {
  APENET_REAL(dup3);
  if (file != other) before_close(other);
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

APENET_SOCKETS_EXPORT ssize_t read(int file, void* data, std::size_t bytes) {
  APENET_REAL(read);
  return is_simulated(file) ? receive_bytes(file, data, bytes, 0, nullptr, nullptr) : real(file, data, bytes);
}
APENET_SOCKETS_EXPORT ssize_t readv(int file, const iovec* parts, int count) {
  APENET_REAL(readv);
  if (!is_simulated(file)) return real(file, parts, count);
  return receive_parts(file, parts, static_cast<std::size_t>(count), 0, nullptr, nullptr);
}
APENET_SOCKETS_EXPORT ssize_t recv(int file, void* data, std::size_t bytes, int flags) {
  APENET_REAL(recv);
  if (!is_simulated(file)) return real(file, data, bytes, flags);
  return receive_bytes(file, data, bytes, flags, nullptr, nullptr);
}
APENET_SOCKETS_EXPORT ssize_t recvfrom(int file, void* data, std::size_t bytes, int flags, sockaddr* address,
                                       socklen_t* length) {
  APENET_REAL(recvfrom);
  if (!is_simulated(file)) return real(file, data, bytes, flags, address, length);
  return receive_bytes(file, data, bytes, flags, address, length);
}
APENET_SOCKETS_EXPORT ssize_t recvmsg(int file, msghdr* message, int flags) {
  APENET_REAL(recvmsg);
  if (is_simulated(file)) return receive_message(file, message, flags);
  const ssize_t result = real(file, message, flags);
  if (result >= 0) note_received_files(*message);
  return result;
}
APENET_SOCKETS_EXPORT ssize_t write(int file, const void* data, std::size_t bytes) {
  APENET_REAL(write);
  return is_simulated(file) ? send_bytes(file, data, bytes, 0, nullptr, 0) : real(file, data, bytes);
}
APENET_SOCKETS_EXPORT ssize_t writev(int file, const iovec* parts, int count) {
  APENET_REAL(writev);
  if (!is_simulated(file)) return real(file, parts, count);
  return send_parts(file, parts, static_cast<std::size_t>(count), 0, nullptr, 0);
}
APENET_SOCKETS_EXPORT ssize_t send(int file, const void* data, std::size_t bytes, int flags) {
  APENET_REAL(send);
  if (!is_simulated(file)) return real(file, data, bytes, flags);
  return send_bytes(file, data, bytes, flags, nullptr, 0);
}
APENET_SOCKETS_EXPORT ssize_t sendto(int file, const void* data, std::size_t bytes, int flags,
                                     const sockaddr* address, socklen_t length) {
  APENET_REAL(sendto);
  if (!is_simulated(file)) return real(file, data, bytes, flags, address, length);
  return send_bytes(file, data, bytes, flags, address, length);
}
APENET_SOCKETS_EXPORT ssize_t sendmsg(int file, const msghdr* message, int flags) {
  APENET_REAL(sendmsg);
  if (is_simulated(file)) return send_message(file, message, flags);
  note_files_to_send(*message, true);
  const ssize_t result = real(file, message, flags);
  if (result < 0) note_files_to_send(*message, false);
  return result;
}
APENET_SOCKETS_EXPORT int sendmmsg(int file, mmsghdr* messages, unsigned count, int flags) {
  APENET_REAL(sendmmsg);
  if (!is_simulated(file)) return real(file, messages, count, flags);
  for (unsigned i = 0; i < count; ++i) {
    const ssize_t sent = send_message(file, &messages[i].msg_hdr, flags);
    if (sent < 0) return i > 0 ? static_cast<int>(i) : -1;
    messages[i].msg_len = static_cast<unsigned>(sent);
  }
  return static_cast<int>(count);
}
APENET_SOCKETS_EXPORT int recvmmsg(int file, mmsghdr* messages, unsigned count, int flags, timespec* most) {
  APENET_REAL(recvmmsg);
  if (!is_simulated(file)) return real(file, messages, count, flags, most);
  for (unsigned i = 0; i < count; ++i) {
    const int more = i > 0 && (flags & MSG_WAITFORONE) != 0 ? MSG_DONTWAIT : 0;
    const ssize_t taken = receive_message(file, &messages[i].msg_hdr, (flags & ~MSG_WAITFORONE) | more);
    if (taken < 0) return i > 0 ? static_cast<int>(i) : -1;
    messages[i].msg_len = static_cast<unsigned>(taken);
  }
  return static_cast<int>(count);
}

APENET_SOCKETS_EXPORT ssize_t sendfile(int file, int from, off_t* offset, std::size_t bytes) noexcept {
  APENET_REAL(sendfile);
  return is_simulated(file) ? send_file(file, from, offset, bytes) : real(file, from, offset, bytes);
}
APENET_SOCKETS_EXPORT ssize_t sendfile64(int file, int from, off64_t* offset, std::size_t bytes) noexcept {
  APENET_REAL(sendfile64);
  return is_simulated(file) ? send_file(file, from, offset, bytes) : real(file, from, offset, bytes);
}

// EINVAL, for which programs read and write instead.
APENET_SOCKETS_EXPORT ssize_t splice(int from, off64_t* from_offset, int file, off64_t* offset,
                                     std::size_t bytes, unsigned flags) {
  APENET_REAL(splice);
  if (!is_simulated(from) && !is_simulated(file)) return real(from, from_offset, file, offset, bytes, flags);
  errno = EINVAL;
  return -1;
}

// As above, for programs that are compiled with _FORTIFY_SOURCE.
#define APENET_SOCKETS_CHECKED(name, parameters, arguments, result)               \
  APENET_SOCKETS_EXPORT ssize_t name parameters {                                 \
    static const auto real = next<std::add_pointer_t<ssize_t parameters>>(#name); \
    return !is_simulated(file) || bytes > capacity ? real arguments : (result);   \
  }
APENET_SOCKETS_CHECKED(__read_chk, (int file, void* data, std::size_t bytes, std::size_t capacity),
                       (file, data, bytes, capacity), receive_bytes(file, data, bytes, 0, nullptr, nullptr))
APENET_SOCKETS_CHECKED(__recv_chk, (int file, void* data, std::size_t bytes, std::size_t capacity, int flags),
                       (file, data, bytes, capacity, flags),
                       receive_bytes(file, data, bytes, flags, nullptr, nullptr))
APENET_SOCKETS_CHECKED(__recvfrom_chk,
                       (int file, void* data, std::size_t bytes, std::size_t capacity, int flags,
                        sockaddr* address, socklen_t* length),
                       (file, data, bytes, capacity, flags, address, length),
                       receive_bytes(file, data, bytes, flags, address, length))

}  // namespace apenet::sockets
