// The calls that read and write sockets. A call for another file is the host's.
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <type_traits>
#include <vector>

#include "api/sockets/calls.hpp"
#include "api/sockets/passed_files.hpp"
#include "api/sockets/program_memory.hpp"
#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

using ipc::SocketCall;
using ipc::SocketVerb;

// An address that the call names; {nullptr, 0}: none.
struct Named {
  const sockaddr* address = nullptr;
  socklen_t length = 0;
};
struct Found {
  sockaddr* address = nullptr;
  socklen_t* length = nullptr;
};

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

ssize_t send_bytes(int file, const void* data, std::size_t bytes, int flags, const Named& target) {
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  if ((flags & MSG_OOB) != 0) return refused(EOPNOTSUPP, "send() with MSG_OOB: not simulated");
  if (target.address != nullptr) {
    if (const int error = check_address(target.address, target.length); error < 0) return fail(-error);
  }
  const KnownSocket& socket = used->socket;
  Caller& caller = used->caller;
  SocketCall call{.verb = SocketVerb::send,
                  .flags = waiting_flag(file, flags),
                  .socket = socket.number,
                  .most_ps = socket.send_most_ps};
  if ((flags & MSG_MORE) != 0) call.flags |= ipc::more_follows;
  if (!socket.is_datagram) {
    const ipc::SocketAnswer answer = send_stream(caller, call, data, bytes);
    if (answer.result == -EPIPE && (flags & MSG_NOSIGNAL) == 0) ::raise(SIGPIPE);
    return returned(answer);
  }
  if (target.address != nullptr) {
    call.value = read_address(target.address, target.length, call.endpoint);
    if (call.value == -EAFNOSUPPORT && is_unspecified(target.address, target.length))
      call.value = read_address(target.address, target.length, call.endpoint, AF_UNSPEC);
    call.flags |= ipc::has_endpoint;
  }
  const CallCost cost{.before = caller.costs().send + caller.copy_time(bytes), .after = {}};
  return returned(caller.call("send", call, data, bytes, cost));
}

ssize_t receive_bytes(int file, void* data, std::size_t bytes, int flags, const Found& source) {
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  const KnownSocket& socket = used->socket;
  Caller& caller = used->caller;
  SocketCall call{.verb = SocketVerb::receive,
                  .flags = waiting_flag(file, flags),
                  .socket = socket.number,
                  .most_ps = socket.receive_most_ps};
  if ((flags & MSG_OOB) != 0) return refused(EINVAL, "recv() with MSG_OOB: not simulated");
  if ((flags & MSG_ERRQUEUE) != 0) return fail(EAGAIN);  // which is always empty
  if ((flags & MSG_PEEK) != 0) call.flags |= ipc::only_peeks;
  if ((flags & MSG_WAITALL) != 0) call.flags |= ipc::takes_all;
  if ((flags & MSG_TRUNC) != 0) call.flags |= ipc::only_counts;
  const CallCost cost{.before = {}, .after = [&caller](std::int64_t result) {
                        if (result < 0) return Time::zero();
                        return caller.costs().receive + caller.copy_time(static_cast<std::uint64_t>(result));
                      }};
  ipc::SocketAnswer answer = caller.call("recv", call, data, bytes, cost);
  if (answer.result >= 0 && source.address != nullptr) {
    const bool has_source = socket.is_datagram && answer.endpoint.port != 0;  // else nothing will come
    const ipc::SocketEndpoint* const endpoint = has_source ? &answer.endpoint : nullptr;
    if (const int error = write_address(endpoint, source.address, source.length); error < 0)
      return fail(-error);
  }
  const auto capacity = static_cast<std::int64_t>(bytes);
  if (answer.result > capacity && (flags & MSG_TRUNC) == 0) answer.result = capacity;
  return returned(answer);
}

// A program's list of buffers.
class Parts {
 public:
  // 0, or a negative errno: as the kernel's import_iovec(). too_many: what more than IOV_MAX are.
  int read(const iovec* parts, std::size_t count, int too_many) {
    if (count > IOV_MAX) return too_many;
    parts_.resize(count);
    if (!copy_in(parts_.data(), parts, count * sizeof *parts)) return -EFAULT;
    for (const iovec& part : parts_) {
      if (static_cast<ssize_t>(part.iov_len) < 0) return -EINVAL;
      bytes_ += part.iov_len;
    }
    return 0;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // One buffer with the bytes of all; {nullptr, bytes()}: they cannot be read, as the simulator will find.
  [[nodiscard]] const void* joined(std::vector<std::byte>& copy) const {
    if (parts_.size() == 1) return parts_[0].iov_base;
    copy.resize(bytes_);
    std::size_t at = 0;
    for (const iovec& part : parts_) {
      if (!copy_in(copy.data() + at, part.iov_base, part.iov_len)) return nullptr;
      at += part.iov_len;
    }
    return copy.data();
  }
  // Whether the first `count` bytes have a place.
  [[nodiscard]] bool can_hold(std::size_t count) const {
    for (const iovec& part : parts_) {
      if (count == 0) return true;
      if (!is_readable(part.iov_base, std::min(part.iov_len, count))) return false;
      count -= std::min(part.iov_len, count);
    }
    return true;
  }
  [[nodiscard]] const iovec* only() const { return parts_.size() == 1 ? parts_.data() : nullptr; }
  bool spread(const std::vector<std::byte>& from, std::size_t count) const {
    std::size_t at = 0;
    for (const iovec& part : parts_) {
      const std::size_t share = std::min(part.iov_len, count - at);
      if (!copy_out(part.iov_base, from.data() + at, share)) return false;
      at += share;
    }
    return true;
  }

 private:
  std::vector<iovec> parts_;
  std::size_t bytes_ = 0;
};

ssize_t send_parts(int file, const Parts& parts, int flags, const Named& target) {
  std::vector<std::byte> copy;
  return send_bytes(file, parts.joined(copy), parts.bytes(), flags, target);
}

ssize_t receive_parts(int file, const Parts& parts, int flags, const Found& source) {
  if (const iovec* const only = parts.only())
    return receive_bytes(file, only->iov_base, only->iov_len, flags, source);
  std::vector<std::byte> bytes(parts.bytes());
  const bool can_hold = parts.can_hold(bytes.size());
  const ssize_t taken = receive_bytes(file, can_hold ? bytes.data() : nullptr, bytes.size(), flags, source);
  const std::optional<KnownSocket> socket = known_socket(file);
  const bool is_discarded = (flags & MSG_TRUNC) != 0 && socket && !socket->is_datagram;
  if (taken <= 0 || !can_hold || is_discarded) return taken;
  parts.spread(bytes, std::min(bytes.size(), static_cast<std::size_t>(taken)));
  return taken;
}

ssize_t receive_message(int file, msghdr* given, int flags) {
  msghdr message{};
  if (!copy_in(&message, given, sizeof message)) return fail(EFAULT);
  if (static_cast<int>(message.msg_namelen) < 0) return fail(EINVAL);
  Parts parts;
  if (const int error = parts.read(message.msg_iov, message.msg_iovlen, -EMSGSIZE); error < 0)
    return fail(-error);
  const std::optional<KnownSocket> socket = known_socket(file);
  const bool is_datagram = socket && socket->is_datagram;
  const int asked = is_datagram ? flags | MSG_TRUNC : flags;
  const ssize_t taken =
      receive_parts(file, parts, asked, {static_cast<sockaddr*>(message.msg_name), &message.msg_namelen});
  if (taken < 0) return taken;
  const auto capacity = static_cast<ssize_t>(parts.bytes());
  message.msg_controllen = 0;
  message.msg_flags = (flags & MSG_CMSG_CLOEXEC) | (is_datagram && taken > capacity ? MSG_TRUNC : 0);
  if (!copy_out(given, &message, sizeof message)) return fail(EFAULT);
  return (flags & MSG_TRUNC) != 0 ? taken : std::min(taken, capacity);
}

ssize_t send_message(int file, const msghdr* given, int flags) {
  msghdr message{};
  if (!copy_in(&message, given, sizeof message)) return fail(EFAULT);
  if (static_cast<int>(message.msg_namelen) < 0) return fail(EINVAL);
  Named target{static_cast<const sockaddr*>(message.msg_name),
               std::min<socklen_t>(message.msg_namelen, sizeof(sockaddr_storage))};
  if (target.length == 0) target.address = nullptr;
  if (target.address != nullptr && check_address(target.address, target.length) < 0) return fail(EFAULT);
  Parts parts;
  if (const int error = parts.read(message.msg_iov, message.msg_iovlen, -EMSGSIZE); error < 0)
    return fail(-error);
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS)
    return refused(EINVAL,
                   "sendmsg() of descriptors by a socket of the network: only Unix sockets pass them");
  if (message.msg_controllen > 0) warn("sendmsg(): its control data is ignored");
  return send_parts(file, parts, flags, target);
}

ssize_t read_parts(int file, const iovec* given, int count) {
  Parts parts;
  if (count < 0) return fail(EINVAL);
  if (const int error = parts.read(given, static_cast<std::size_t>(count), -EINVAL); error < 0)
    return fail(-error);
  return parts.bytes() == 0 ? 0 : receive_parts(file, parts, 0, {});
}

ssize_t write_parts(int file, const iovec* given, int count) {
  Parts parts;
  if (count < 0) return fail(EINVAL);
  if (const int error = parts.read(given, static_cast<std::size_t>(count), -EINVAL); error < 0)
    return fail(-error);
  return parts.bytes() == 0 ? 0 : send_parts(file, parts, 0, {});
}

// A read without bytes asks nothing of the socket.
ssize_t read_bytes(int file, void* data, std::size_t bytes) {
  return bytes == 0 ? 0 : receive_bytes(file, data, bytes, 0, {});
}

// Part of a file; the result says how much.
template <typename Offset>
ssize_t send_file(int file, int from, Offset* offset, std::size_t bytes) {
  std::vector<std::byte> data(std::min<std::size_t>(bytes, part_bytes));
  const auto begin = static_cast<off_t>(offset == nullptr ? ::lseek(from, 0, SEEK_CUR) : *offset);
  const ssize_t taken = ::pread(from, data.data(), data.size(), begin);
  if (taken <= 0) return taken;
  const ssize_t sent = send_bytes(file, data.data(), static_cast<std::size_t>(taken), 0, {});
  if (sent <= 0) return sent;
  if (offset != nullptr) {
    *offset = begin + sent;
  } else {
    ::lseek(from, begin + sent, SEEK_SET);
  }
  return sent;
}

}  // namespace

APENET_SOCKETS_EXPORT ssize_t read(int file, void* data, std::size_t bytes) {
  APENET_REAL(read);
  return is_simulated(file) ? read_bytes(file, data, bytes) : real(file, data, bytes);
}
APENET_SOCKETS_EXPORT ssize_t readv(int file, const iovec* parts, int count) {
  APENET_REAL(readv);
  if (!is_simulated(file)) return real(file, parts, count);
  return read_parts(file, parts, count);
}
APENET_SOCKETS_EXPORT ssize_t recv(int file, void* data, std::size_t bytes, int flags) {
  APENET_REAL(recv);
  if (!is_simulated(file)) return real(file, data, bytes, flags);
  return receive_bytes(file, data, bytes, flags, {});
}
APENET_SOCKETS_EXPORT ssize_t recvfrom(int file, void* data, std::size_t bytes, int flags, sockaddr* address,
                                       socklen_t* length) {
  APENET_REAL(recvfrom);
  if (!is_simulated(file)) return real(file, data, bytes, flags, address, length);
  return receive_bytes(file, data, bytes, flags, {address, length});
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
  return is_simulated(file) ? send_bytes(file, data, bytes, 0, {}) : real(file, data, bytes);
}
APENET_SOCKETS_EXPORT ssize_t writev(int file, const iovec* parts, int count) {
  APENET_REAL(writev);
  if (!is_simulated(file)) return real(file, parts, count);
  return write_parts(file, parts, count);
}
APENET_SOCKETS_EXPORT ssize_t send(int file, const void* data, std::size_t bytes, int flags) {
  APENET_REAL(send);
  if (!is_simulated(file)) return real(file, data, bytes, flags);
  return send_bytes(file, data, bytes, flags, {});
}
APENET_SOCKETS_EXPORT ssize_t sendto(int file, const void* data, std::size_t bytes, int flags,
                                     const sockaddr* address, socklen_t length) {
  APENET_REAL(sendto);
  if (!is_simulated(file)) return real(file, data, bytes, flags, address, length);
  return send_bytes(file, data, bytes, flags, {address, length});
}
APENET_SOCKETS_EXPORT ssize_t sendmsg(int file, const msghdr* message, int flags) {
  APENET_REAL(sendmsg);
  if (is_simulated(file)) return send_message(file, message, flags);
  if (!is_readable(message, sizeof *message)) return fail(is_open(file) ? EFAULT : EBADF);
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
                       (file, data, bytes, capacity), read_bytes(file, data, bytes))
APENET_SOCKETS_CHECKED(__recv_chk, (int file, void* data, std::size_t bytes, std::size_t capacity, int flags),
                       (file, data, bytes, capacity, flags), receive_bytes(file, data, bytes, flags, {}))
APENET_SOCKETS_CHECKED(__recvfrom_chk,
                       (int file, void* data, std::size_t bytes, std::size_t capacity, int flags,
                        sockaddr* address, socklen_t* length),
                       (file, data, bytes, capacity, flags, address, length),
                       receive_bytes(file, data, bytes, flags, (Found{address, length})))

}  // namespace apenet::sockets
