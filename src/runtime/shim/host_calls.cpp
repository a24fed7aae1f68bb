// Calls that may wait in the host for something that the simulator does not know. Timers of the process run
// in the host meanwhile, and their signals end the calls as on Linux (virtual_timers.hpp).
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/socket_limits.hpp"
#include "runtime/shim/virtual_timers.hpp"

#define APENET_HOST_WAIT(result, name, parameters, arguments)                                  \
  APENET_EXPORT result name parameters {                                                       \
    static const auto real = apenet::shim::next<std::add_pointer_t<result parameters>>(#name); \
    const apenet::shim::HostPace pace(apenet::shim::pacing_client());                          \
    return real arguments;                                                                     \
  }

// `size`: what it writes at a time. awaited: whether the socket's limit has let it go on. has_parts: several
// are as good as one, each with its arguments part: `bytes` bytes from the byte `from` on.
#define APENET_WRITE(result, name, parameters, size, awaited, has_parts, part, arguments)             \
  APENET_EXPORT result name parameters {                                                              \
    static const auto real = apenet::shim::next<std::add_pointer_t<result parameters>>(#name);        \
    if (!awaited) return -1;                                                                          \
    const auto write_part = [&]([[maybe_unused]] std::size_t from,                                    \
                                [[maybe_unused]] std::size_t bytes) -> ssize_t { return real part; }; \
    if (const auto done = apenet::shim::write_in_order(file, size, has_parts, write_part))            \
      return static_cast<result>(*done);                                                              \
    const apenet::shim::FileChange change(file, size);                                                \
    const apenet::shim::HostPace pace(apenet::shim::pacing_writer(file, size));                       \
    return real arguments;                                                                            \
  }

namespace apenet::shim {
namespace {

// A negative number is no size of a list.
std::size_t as_size(int count) {
  return count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
}

// A timer that is due already rings at the beginning of the pace.
ipc::Client* pacing_unless_ready(int file, short events) {
  ipc::Client* const client = pacing_client();
  if (client == nullptr || client->has_due_timer()) return client;
  const int error = errno;
  pollfd one{.fd = file, .events = events, .revents = 0};
  const bool is_ready = file < 0 || ipc::poll_now(&one, 1) > 0;
  errno = error;
  return is_ready ? nullptr : client;
}

// A read that waits for more than what there is.
bool waits_for_more(int file, int flags) {
  if ((flags & MSG_WAITALL) != 0) return true;
  int least = 1;
  socklen_t bytes = sizeof least;
  const int error = errno;
  ipc::host_call(SYS_getsockopt, file, SOL_SOCKET, std::uint64_t{SO_RCVLOWAT}, &least,
                 reinterpret_cast<std::uint64_t>(&bytes));
  errno = error;
  return least > 1;
}

}  // namespace

ipc::Client* pacing_reader(int file, int flags) {
  ipc::Client* const client = pacing_client();
  return client == nullptr || waits_for_more(file, flags) ? client : pacing_unless_ready(file, POLLIN);
}

ipc::Client* pacing_writer(int file, std::size_t bytes) {
  return bytes <= PIPE_BUF ? pacing_unless_ready(file, POLLOUT) : pacing_client();
}

ipc::Client* pacing_opener(int folder, const char* path) {
  ipc::Client* const client = pacing_client();
  if (client == nullptr || client->has_due_timer()) return client;
  const int error = errno;
  struct stat status {};
  const int result = ipc::host_call(SYS_newfstatat, folder, path, reinterpret_cast<std::uint64_t>(&status));
  errno = error;
  return result == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) ? client : nullptr;
}

APENET_WRITE(ssize_t, write, (int file, const void* data, std::size_t count), count,
             await_socket(file, POLLOUT), true, (file, static_cast<const char*>(data) + from, bytes),
             (file, data, count))
APENET_WRITE(ssize_t, writev, (int file, const iovec* parts, int count), bytes_in(parts, as_size(count)),
             await_socket(file, POLLOUT, parts, as_size(count)), false, (file, parts, count),
             (file, parts, count))
APENET_EXPORT ssize_t readv(int file, const iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("readv");
  if (!await_socket(file, POLLIN, parts, as_size(count))) return -1;
  const InsideWait inside(file);
  if (inside.is_interrupted()) {
    errno = EINTR;
    return -1;
  }
  const HostPace pace(pacing_reader(file));
  return real(file, parts, count);
}
APENET_WRITE(ssize_t, send, (int file, const void* data, std::size_t count, int flags), count,
             await_socket(file, POLLOUT, flags), true,
             (file, static_cast<const char*>(data) + from, bytes, flags), (file, data, count, flags))
APENET_WRITE(ssize_t, sendto,
             (int file, const void* data, std::size_t count, int flags, const sockaddr* address,
              socklen_t length),
             count, await_socket(file, POLLOUT, flags), false, (file, data, count, flags, address, length),
             (file, data, count, flags, address, length))
APENET_WRITE(int, eventfd_write, (int file, eventfd_t value), sizeof value, await_socket(file, POLLOUT),
             false, (file, value), (file, value))
APENET_EXPORT int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  static const auto real = next<int (*)(int, mmsghdr*, unsigned, int, timespec*)>("recvmmsg");
  const bool waits_for_all = count > 1 && (flags & (MSG_WAITFORONE | MSG_DONTWAIT)) == 0;
  const HostPace pace(pacing_reader(socket, waits_for_all ? flags | MSG_WAITALL : flags));
  return real(socket, messages, count, flags, limit);
}
APENET_EXPORT ssize_t msgrcv(int queue, void* message, std::size_t bytes, long type, int flags) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, long, int)>("msgrcv");
  const HostPace pace(pacing_client());
  const ssize_t result = real(queue, message, bytes, type, flags);
  const auto key = static_cast<std::uint64_t>(queue) << 1U;
  if (result < 0 && errno == ENOMSG) note_check(OutsideCause::object, key);
  if (result >= 0 && (flags & IPC_NOWAIT) != 0) note_found(OutsideCause::object, key);
  return result;
}
APENET_HOST_WAIT(int, msgsnd, (int queue, const void* message, std::size_t bytes, int flags),
                 (queue, message, bytes, flags))
APENET_HOST_WAIT(ssize_t, splice,
                 (int from, off64_t* from_offset, int to, off64_t* to_offset, std::size_t bytes,
                  unsigned flags),
                 (from, from_offset, to, to_offset, bytes, flags))
APENET_HOST_WAIT(ssize_t, tee, (int from, int to, std::size_t bytes, unsigned flags),
                 (from, to, bytes, flags))
APENET_HOST_WAIT(ssize_t, vmsplice, (int file, const iovec* parts, std::size_t count, unsigned flags),
                 (file, parts, count, flags))
APENET_HOST_WAIT(ssize_t, sendfile, (int to, int from, off_t* offset, std::size_t bytes) noexcept,
                 (to, from, offset, bytes))
APENET_HOST_WAIT(ssize_t, sendfile64, (int to, int from, off64_t* offset, std::size_t bytes) noexcept,
                 (to, from, offset, bytes))
APENET_HOST_WAIT(ssize_t, mq_receive, (mqd_t queue, char* message, std::size_t bytes, unsigned* priority),
                 (queue, message, bytes, priority))
APENET_HOST_WAIT(int, mq_send, (mqd_t queue, const char* message, std::size_t bytes, unsigned priority),
                 (queue, message, bytes, priority))

}  // namespace apenet::shim
