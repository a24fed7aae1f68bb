// The calls that ask a socket for its state, and set its options.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <optional>
#include <string>

#include "api/sockets/addresses.hpp"
#include "api/sockets/interfaces.hpp"
#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

using ipc::SocketVerb;

// Numbers of ip::SocketOption, which this library cannot include: it is the simulator's.
enum class Option : std::uint16_t {
  reuse_address,
  reuse_port,
  receive_bytes,
  send_bytes,
  no_delay,
  keep_alive,
  user_timeout,
  linger,
  error,
  is_listening,
  unread_bytes,
  unsent_bytes,
  type
};

constexpr int keep_alive_s = 7200;  // net.ipv4.tcp_keepalive_time

std::optional<Option> option_of(int level, int name) {
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_REUSEADDR:
        return Option::reuse_address;
      case SO_REUSEPORT:
        return Option::reuse_port;
      case SO_RCVBUF:
        return Option::receive_bytes;
      case SO_SNDBUF:
        return Option::send_bytes;
      case SO_KEEPALIVE:
        return Option::keep_alive;
      case SO_ERROR:
        return Option::error;
      case SO_ACCEPTCONN:
        return Option::is_listening;
      default:
        return std::nullopt;
    }
  }
  if (level == IPPROTO_TCP && name == TCP_NODELAY) return Option::no_delay;
  if (level == IPPROTO_TCP && name == TCP_KEEPIDLE) return Option::keep_alive;
  if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT) return Option::user_timeout;
  return std::nullopt;
}

// Options that change nothing that is simulated.
bool is_harmless(int level, int name) {
  if (level == SOL_SOCKET)
    return name == SO_BROADCAST || name == SO_DONTROUTE || name == SO_PRIORITY || name == SO_OOBINLINE ||
           name == SO_TIMESTAMP || name == SO_RCVLOWAT || name == SO_INCOMING_CPU || name == SO_ZEROCOPY;
  if (level == IPPROTO_TCP)
    return name == TCP_KEEPINTVL || name == TCP_KEEPCNT || name == TCP_QUICKACK || name == TCP_DEFER_ACCEPT ||
           name == TCP_FASTOPEN || name == TCP_CORK || name == TCP_SYNCNT || name == TCP_LINGER2;
  return level == IPPROTO_IP && (name == IP_TOS || name == IP_TTL || name == IP_MTU_DISCOVER ||
                                 name == IP_RECVERR || name == IP_BIND_ADDRESS_NO_PORT);
}

ipc::SocketAnswer ask(int file, std::string_view name, ipc::SocketCall call) {
  const std::optional<KnownSocket> socket = known_socket(file);
  Caller* const caller = Caller::instance();
  if (!socket || caller == nullptr) return {.result = -EBADF};
  call.socket = socket->number;
  return caller->call(name, call);
}

ipc::SocketAnswer get(int file, Option option) {
  return ask(file, "getsockopt", {.verb = SocketVerb::get, .option = static_cast<std::uint16_t>(option)});
}

ipc::SocketAnswer set(int file, Option option, std::int64_t value) {
  return ask(file, "setsockopt",
             {.verb = SocketVerb::set, .option = static_cast<std::uint16_t>(option), .value = value});
}

int fail(int error) {
  errno = error;
  return -1;
}

int set_limit(int file, int name, const void* value, socklen_t length) {
  timeval limit{};
  if (length < sizeof limit) return fail(EINVAL);
  std::memcpy(&limit, value, sizeof limit);
  const std::int64_t ps = limit.tv_sec * ps_per_s + limit.tv_usec * ps_per_us;
  const std::optional<KnownSocket> socket = known_socket(file);
  const std::int64_t most_ps = ps == 0 ? -1 : ps;
  set_limits(file, name == SO_RCVTIMEO ? most_ps : socket->receive_most_ps,
             name == SO_SNDTIMEO ? most_ps : socket->send_most_ps);
  return 0;
}

int set_linger(int file, const void* value, socklen_t length) {
  linger given{};
  if (length < sizeof given) return fail(EINVAL);
  std::memcpy(&given, value, sizeof given);
  return static_cast<int>(returned(set(file, Option::linger, given.l_onoff != 0 ? given.l_linger : -1)));
}

template <typename Value>
int give(const Value& given, void* value, socklen_t* length) {
  std::memcpy(value, &given, std::min<std::size_t>(*length, sizeof given));
  *length = static_cast<socklen_t>(std::min<std::size_t>(*length, sizeof given));
  return 0;
}

int get_limit(int file, int name, void* value, socklen_t* length) {
  const std::optional<KnownSocket> socket = known_socket(file);
  const std::int64_t ps =
      std::max<std::int64_t>(0, name == SO_RCVTIMEO ? socket->receive_most_ps : socket->send_most_ps);
  const timeval limit{.tv_sec = ps / ps_per_s, .tv_usec = ps % ps_per_s / ps_per_us};
  return give(limit, value, length);
}

int get_linger(int file, void* value, socklen_t* length) {
  const std::int64_t seconds = get(file, Option::linger).result;
  const linger found{.l_onoff = seconds >= 0 ? 1 : 0,
                     .l_linger = static_cast<int>(std::max<std::int64_t>(0, seconds))};
  return give(found, value, length);
}

// What netperf, iperf3 and others print. The rest is zero.
int get_tcp_info(void* value, socklen_t* length) {
  tcp_info info{};
  info.tcpi_state = TCP_ESTABLISHED;
  return give(info, value, length);
}

std::string named(const char* call, int level, int name) {
  return std::string(call) + "(" + std::to_string(level) + ", " + std::to_string(name) + ")";
}

}  // namespace

APENET_SOCKETS_EXPORT int setsockopt(int file, int level, int name, const void* value,
                                     socklen_t length) noexcept {
  static const auto real = next<decltype(&::setsockopt)>("setsockopt");
  if (!is_simulated(file)) return real(file, level, name, value, length);
  if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO))
    return set_limit(file, name, value, length);
  if (level == SOL_SOCKET && name == SO_LINGER) return set_linger(file, value, length);
  if (is_harmless(level, name)) return 0;
  if (level == IPPROTO_TCP && name == TCP_CONGESTION) {
    const std::string_view wanted(static_cast<const char*>(value),
                                  strnlen(static_cast<const char*>(value), length));
    return wanted == "cubic" ? 0 : fail(ENOENT);
  }
  const std::optional<Option> option = option_of(level, name);
  if (!option) {
    warn(named("setsockopt", level, name) + ": not simulated");
    return fail(ENOPROTOOPT);
  }
  int given = 0;
  if (length < sizeof given) return fail(EINVAL);
  std::memcpy(&given, value, sizeof given);
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) given = given != 0 ? keep_alive_s : 0;
  return static_cast<int>(returned(set(file, *option, given)));
}

APENET_SOCKETS_EXPORT int getsockopt(int file, int level, int name, void* value, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getsockopt)>("getsockopt");
  if (!is_simulated(file)) return real(file, level, name, value, length);
  if (level == SOL_SOCKET) {
    const std::optional<KnownSocket> socket = known_socket(file);
    constexpr int family = AF_INET;
    switch (name) {
      case SO_RCVTIMEO:
      case SO_SNDTIMEO:
        return get_limit(file, name, value, length);
      case SO_LINGER:
        return get_linger(file, value, length);
      case SO_TYPE:
        return give(socket->is_datagram ? int{SOCK_DGRAM} : int{SOCK_STREAM}, value, length);
      case SO_DOMAIN:
        return give(family, value, length);
      case SO_PROTOCOL:
        return give(socket->is_datagram ? int{IPPROTO_UDP} : int{IPPROTO_TCP}, value, length);
      default:
        break;
    }
  }
  if (level == IPPROTO_TCP && name == TCP_INFO) return get_tcp_info(value, length);
  if (level == IPPROTO_TCP && name == TCP_CONGESTION) return give("cubic", value, length);
  if (level == IPPROTO_TCP && name == TCP_MAXSEG) {
    Caller* const caller = Caller::instance();
    constexpr int headers = 40;
    return give(static_cast<int>(caller->costs().mtu_bytes) - headers, value, length);
  }
  if (is_harmless(level, name)) return give(0, value, length);
  const std::optional<Option> option = option_of(level, name);
  if (!option) {
    warn(named("getsockopt", level, name) + ": not simulated");
    return fail(ENOPROTOOPT);
  }
  const ipc::SocketAnswer answer = get(file, *option);
  if (answer.result < 0) return static_cast<int>(returned(answer));
  int found = static_cast<int>(answer.result);
  if (level == SOL_SOCKET && name == SO_KEEPALIVE) found = found != 0 ? 1 : 0;
  return give(found, value, length);
}

APENET_SOCKETS_EXPORT int getsockname(int file, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getsockname)>("getsockname");
  if (!is_simulated(file)) return real(file, address, length);
  const ipc::SocketAnswer answer = ask(file, "getsockname", {.verb = SocketVerb::local});
  if (answer.result == 0) write_address(answer.endpoint, address, length);
  return static_cast<int>(returned(answer));
}

APENET_SOCKETS_EXPORT int getpeername(int file, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getpeername)>("getpeername");
  if (!is_simulated(file)) return real(file, address, length);
  const ipc::SocketAnswer answer = ask(file, "getpeername", {.verb = SocketVerb::remote});
  if (answer.result == 0) write_address(answer.endpoint, address, length);
  return static_cast<int>(returned(answer));
}

// FIONBIO and others are of the stand-in.
APENET_SOCKETS_EXPORT int ioctl(int file, unsigned long request, ...) noexcept {
  static const auto real = next<int (*)(int, unsigned long, ...)>("ioctl");
  va_list list;
  va_start(list, request);
  void* const argument = va_arg(list, void*);
  va_end(list);
  if (!is_simulated(file)) return real(file, request, argument);
  if (const std::optional<int> answered = answer_interface_request(request, argument)) return *answered;
  if (request != FIONREAD && request != SIOCOUTQ) return real(file, request, argument);
  const ipc::SocketAnswer answer =
      get(file, request == FIONREAD ? Option::unread_bytes : Option::unsent_bytes);
  if (answer.result >= 0) *static_cast<int*>(argument) = static_cast<int>(answer.result);
  return answer.result < 0 ? static_cast<int>(returned(answer)) : 0;
}

}  // namespace apenet::sockets
