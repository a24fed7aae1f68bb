// Connections of Unix sockets between processes of a rank's order. Retries host connections between a client
// and its server: both ranks start at the same time, so the client may connect before the server listens.
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

// Host time. On a real machine the server would have been started first.
constexpr std::int64_t patience_ns = 10'000'000'000;  // since the first refusal
constexpr timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};

bool is_loopback(const sockaddr* address, socklen_t length) {
  if (is_null(address)) return false;
  if (address->sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof(in));
    return ntohl(in.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
  }
  if (address->sa_family != AF_INET6 || length < sizeof(sockaddr_in6)) return false;
  sockaddr_in6 in6{};
  std::memcpy(&in6, address, sizeof(in6));
  return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

// Whether to retry a refused connection: the launcher made this rank the client (client_server.py), and the
// first refusal was recent.
bool is_patient() {
  static std::atomic<std::int64_t> give_up_ns{0};
  static const bool is_client = std::getenv("APENET_CLIENT") != nullptr;
  if (!is_client) return false;
  const std::int64_t now_ns = host_now_ns();
  std::int64_t end_ns = 0;
  if (give_up_ns.compare_exchange_strong(end_ns, now_ns + patience_ns)) return true;
  return now_ns < end_ns;
}

// Connects a Unix socket. nullopt: the thread is in no order with other processes, or nobody listens, perhaps
// yet.
template <typename Connect>
std::optional<int> connect_in_order(int socket, Connect connect_it) {
  ipc::OrderedThread* const own =
      thread_order().has_processes() && host_calls == 0 ? ordered_thread() : nullptr;
  if (own == nullptr) return {};
  int result = -1;
  {
    const WaitingFileAction action(*own);
    result = connect_it();
    if (result == 0) note_connected_socket(socket);
  }
  return result == 0 ? std::optional(result) : std::nullopt;
}

}  // namespace

// A rank's processes may make connections by names in the file system, also before virtual time begins.
APENET_EXPORT int listen(int socket, int most) noexcept {
  static const auto real = next<int (*)(int, int)>("listen");
  const int result = real(socket, most);
  if (result == 0 && is_unix_socket(socket)) note_listening_socket(socket);
  return result;
}

APENET_EXPORT int connect(int socket, const sockaddr* address, socklen_t length) {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("connect");
  if (is_unix_socket(socket)) {
    if (const auto result = connect_in_order(socket, [&] { return real(socket, address, length); }))
      return *result;
  }
  const HostPace pace(pacing_client());
  int result = real(socket, address, length);
  while (result != 0 && errno == ECONNREFUSED && is_loopback(address, length) && is_patient()) {
    ipc::host_call(SYS_nanosleep, &pause, nullptr);
    result = real(socket, address, length);
  }
  // The server may be about to start, outside the simulation.
  const bool is_absent = result != 0 && (errno == ECONNREFUSED || errno == ENOENT || errno == EHOSTUNREACH ||
                                         errno == ENETUNREACH || errno == ETIMEDOUT);
  if (is_absent) note_check(ipc::OutsideCause::connection, 1);
  if (result == 0) note_found(ipc::OutsideCause::connection, 1);
  return result;
}

// The one that has the address may be about to end.
APENET_EXPORT int bind(int socket, const sockaddr* address, socklen_t length) noexcept {
  static const auto real = next<int (*)(int, const sockaddr*, socklen_t)>("bind");
  const int result = real(socket, address, length);
  constexpr std::uint64_t key = 2;
  if (result != 0 && errno == EADDRINUSE) note_check(ipc::OutsideCause::object, key);
  if (result == 0) note_found(ipc::OutsideCause::object, key);
  return result;
}

}  // namespace apenet::shim
