// The calls that ask a socket for its state, and set its options.
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "api/sockets/calls.hpp"
#include "api/sockets/interfaces.hpp"
#include "api/sockets/program_memory.hpp"
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
  type,
  receive_low,
  keep_idle,
  first_kept
};

// What the kernel makes of the value that a program sets.
enum class Rule : std::uint8_t {
  only_to_get,  // as in Linux
  not_to_set,   // only here
  any,
  truth,     // 0 or 1
  range,     // else EINVAL
  octet,     // IP_TOS: of a stream, without the bits of congestion notification
  hops,      // IP_TTL: -1 is the usual
  fin_wait,  // TCP_LINGER2: -1 if below zero, at most 120, and 0 is the usual
  low_water
};

struct Known {
  int level;
  int name;
  Option option;  // first_kept: it changes nothing here, and the simulator keeps it
  Rule rule;
  int least = 0;
  int most = 0;
  int usual = 0;  // the value of a new socket
};

constexpr int tcp = IPPROTO_TCP;
constexpr int ip = IPPROTO_IP;
constexpr auto known_options = std::to_array<Known>({
    {SOL_SOCKET, SO_REUSEADDR, Option::reuse_address, Rule::truth},
    {SOL_SOCKET, SO_REUSEPORT, Option::reuse_port, Rule::truth},
    {SOL_SOCKET, SO_RCVBUF, Option::receive_bytes, Rule::any},
    {SOL_SOCKET, SO_SNDBUF, Option::send_bytes, Rule::any},
    {SOL_SOCKET, SO_KEEPALIVE, Option::keep_alive, Rule::truth},
    {SOL_SOCKET, SO_ERROR, Option::error, Rule::only_to_get},
    {SOL_SOCKET, SO_ACCEPTCONN, Option::is_listening, Rule::only_to_get},
    {SOL_SOCKET, SO_RCVLOWAT, Option::receive_low, Rule::low_water},
    {SOL_SOCKET, SO_SNDLOWAT, Option::first_kept, Rule::only_to_get, 0, 0, 1},
    {SOL_SOCKET, SO_BROADCAST, Option::first_kept, Rule::truth},
    {SOL_SOCKET, SO_DONTROUTE, Option::first_kept, Rule::truth},
    {SOL_SOCKET, SO_PRIORITY, Option::first_kept, Rule::any},
    {SOL_SOCKET, SO_OOBINLINE, Option::first_kept, Rule::truth},
    {SOL_SOCKET, SO_TIMESTAMP, Option::first_kept, Rule::truth},
    {SOL_SOCKET, SO_INCOMING_CPU, Option::first_kept, Rule::any},
    {SOL_SOCKET, SO_ZEROCOPY, Option::first_kept, Rule::range, 0, 1},
    {tcp, TCP_NODELAY, Option::no_delay, Rule::truth},
    {tcp, TCP_KEEPIDLE, Option::keep_idle, Rule::range, 1, 32767},
    {tcp, TCP_USER_TIMEOUT, Option::user_timeout, Rule::range, 0, INT_MAX},
    {tcp, TCP_KEEPINTVL, Option::first_kept, Rule::range, 1, 32767, 75},
    {tcp, TCP_KEEPCNT, Option::first_kept, Rule::range, 1, 127, 9},
    {tcp, TCP_SYNCNT, Option::first_kept, Rule::range, 1, 127, 6},
    {tcp, TCP_LINGER2, Option::first_kept, Rule::fin_wait, 0, 120, 60},
    {tcp, TCP_CORK, Option::first_kept, Rule::truth},
    {tcp, TCP_QUICKACK, Option::first_kept, Rule::truth, 0, 0, 1},
    {tcp, TCP_DEFER_ACCEPT, Option::first_kept, Rule::any},
    {tcp, TCP_FASTOPEN, Option::first_kept, Rule::range, 0, INT_MAX},
    {ip, IP_TOS, Option::first_kept, Rule::octet},
    {ip, IP_TTL, Option::first_kept, Rule::hops, 1, 255, 64},
    {ip, IP_MTU_DISCOVER, Option::first_kept, Rule::range, 0, 5, 1},
    {ip, IP_RECVERR, Option::first_kept, Rule::truth},
    {ip, IP_PKTINFO, Option::first_kept, Rule::not_to_set},
    {ip, IP_RECVTTL, Option::first_kept, Rule::not_to_set},
    {ip, IP_FREEBIND, Option::first_kept, Rule::not_to_set},
    {ip, IP_BIND_ADDRESS_NO_PORT, Option::first_kept, Rule::truth},
    {ip, IP_MULTICAST_TTL, Option::first_kept, Rule::range, -1, 255, 1},
    {ip, IP_MULTICAST_LOOP, Option::first_kept, Rule::truth, 0, 0, 1},
});

const Known* find_option(int level, int name) {
  const auto found = std::find_if(known_options.begin(), known_options.end(),
                                  [&](const Known& one) { return one.level == level && one.name == name; });
  return found == known_options.end() ? nullptr : &*found;
}

// A number for the simulator. What it keeps is the difference from the usual value.
Option number_of(const Known& known) {
  if (known.option != Option::first_kept) return known.option;
  const auto index = static_cast<std::uint16_t>(&known - known_options.data());
  return static_cast<Option>(static_cast<std::uint16_t>(Option::first_kept) + index);
}

// The value that the socket gets; empty: EINVAL.
std::optional<std::int64_t> value_by_rule(const Known& known, int given, bool is_datagram) {
  constexpr int congestion_bits = 3;
  switch (known.rule) {
    case Rule::truth:
      return given != 0 ? 1 : 0;
    case Rule::range:
      if (given < known.least || given > known.most) return std::nullopt;
      return known.name == IP_MULTICAST_TTL && known.level == ip && given == -1 ? known.usual : given;
    case Rule::octet:
      return (is_datagram ? given : given & ~congestion_bits) & 0xff;
    case Rule::hops:
      if (given == -1) return known.usual;
      if (given < known.least || given > known.most) return std::nullopt;
      return given;
    case Rule::fin_wait:
      if (given < 0) return -1;
      return given == 0 ? known.usual : std::min(given, known.most);
    case Rule::low_water:
      if (given < 0) return INT_MAX;
      return std::max(1, given);
    default:
      return given;
  }
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

// Linux, sock_set_timeout().
int set_limit(int file, int name, const void* value, socklen_t length) {
  timeval limit{};
  if (length < sizeof(int)) return fail(EINVAL);
  if (!copy_in(&limit, value, std::min<std::size_t>(length, sizeof limit))) return fail(EFAULT);
  if (length < sizeof limit) return fail(EINVAL);
  if (limit.tv_usec < 0 || limit.tv_usec >= us_per_s) return fail(EDOM);
  const std::int64_t ps = limit.tv_sec * ps_per_s + limit.tv_usec * ps_per_us;
  const std::optional<KnownSocket> socket = known_socket(file);
  const std::int64_t most_ps = limit.tv_sec < 0 ? 0 : ps == 0 ? -1 : ps;
  set_limits(file, name == SO_RCVTIMEO ? most_ps : socket->receive_most_ps,
             name == SO_SNDTIMEO ? most_ps : socket->send_most_ps);
  return 0;
}

int set_linger(int file, const void* value, socklen_t length) {
  linger given{};
  if (length < sizeof(int)) return fail(EINVAL);
  if (!copy_in(&given, value, std::min<std::size_t>(length, sizeof given))) return fail(EFAULT);
  if (length < sizeof given) return fail(EINVAL);
  return static_cast<int>(returned(set(file, Option::linger, given.l_onoff != 0 ? given.l_linger : -1)));
}

// As sk_getsockopt() gives a value.
template <typename Value>
int give(const Value& given, void* value, socklen_t* length) {
  int capacity = 0;
  if (!copy_in(&capacity, length, sizeof capacity)) return fail(EFAULT);
  if (capacity < 0) return fail(EINVAL);
  capacity = std::min(capacity, static_cast<int>(sizeof given));
  if (!copy_out(value, &given, static_cast<std::size_t>(capacity))) return fail(EFAULT);
  return copy_out(length, &capacity, sizeof capacity) ? 0 : fail(EFAULT);
}

// As do_ip_getsockopt(): programs of long ago ask for an octet.
int give_octet(int given, void* value, socklen_t* length) {
  int capacity = 0;
  if (!copy_in(&capacity, length, sizeof capacity)) return fail(EFAULT);
  const bool is_octet = capacity > 0 && capacity < static_cast<int>(sizeof given);
  if (!is_octet || given < 0 || given > UCHAR_MAX) return give(given, value, length);
  capacity = 1;
  const auto octet = static_cast<unsigned char>(given);
  if (!copy_out(length, &capacity, sizeof capacity)) return fail(EFAULT);
  return copy_out(value, &octet, sizeof octet) ? 0 : fail(EFAULT);
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

// The value that a program gives. Options of IP may be an octet, or nothing.
int read_value(int level, const void* value, socklen_t length, int& given) {
  if (level == ip && length < sizeof given) {
    unsigned char octet = 0;
    if (length > 0 && !copy_in(&octet, value, sizeof octet)) return -EFAULT;
    given = octet;
    return 0;
  }
  if (length < sizeof given) return -EINVAL;
  return copy_in(&given, value, sizeof given) ? 0 : -EFAULT;
}

int set_congestion_control(const void* value, socklen_t length) {
  std::array<char, 16> wanted{};  // TCP_CA_NAME_MAX
  if (length < 1) return fail(EINVAL);
  if (!copy_in(wanted.data(), value, std::min<std::size_t>(length, wanted.size() - 1))) return fail(EFAULT);
  return std::string_view(wanted.data()) == "cubic" ? 0 : fail(ENOENT);
}

// Options that let messages bring more than their data, which does not come here.
constexpr auto options_of_control_data = std::to_array<std::pair<int, int>>({
    {SOL_SOCKET, SO_TIMESTAMP},
    {SOL_SOCKET, SO_ZEROCOPY},
    {ip, IP_RECVERR},
});

void warn_of_control_data(const Known& known) {
  const std::pair<int, int> option(known.level, known.name);
  if (std::find(options_of_control_data.begin(), options_of_control_data.end(), option) ==
      options_of_control_data.end())
    return;
  warn(named("setsockopt", known.level, known.name) + ": is kept, but no message brings what it asks for");
}

int set_known(int file, bool is_datagram, const Known& known, int given) {
  if (given != 0) warn_of_control_data(known);
  const std::optional<std::int64_t> value = value_by_rule(known, given, is_datagram);
  if (!value) return fail(EINVAL);
  std::int64_t kept = *value;
  if (known.option == Option::first_kept) kept -= known.usual;
  return static_cast<int>(returned(set(file, number_of(known), kept)));
}

int get_known(int file, const Known& known, void* value, socklen_t* length) {
  int found = known.usual;
  const bool is_fixed = known.rule == Rule::only_to_get || known.rule == Rule::not_to_set;
  if (!is_fixed || known.option != Option::first_kept) {
    const ipc::SocketAnswer answer = get(file, number_of(known));
    if (answer.result < 0 && known.option != Option::first_kept) return static_cast<int>(returned(answer));
    found =
        static_cast<int>(known.option == Option::first_kept ? answer.result + known.usual : answer.result);
  }
  return known.level == ip ? give_octet(found, value, length) : give(found, value, length);
}

// Options that are no number; empty: it is another.
std::optional<int> get_other(int file, const KnownSocket& socket, int level, int name, void* value,
                             socklen_t* length) {
  constexpr int family = AF_INET;
  constexpr int headers = 40;
  if (level == SOL_SOCKET) {
    switch (name) {
      case SO_RCVTIMEO:
      case SO_SNDTIMEO:
        return get_limit(file, name, value, length);
      case SO_LINGER:
        return get_linger(file, value, length);
      case SO_TYPE:
        return give(socket.is_datagram ? int{SOCK_DGRAM} : int{SOCK_STREAM}, value, length);
      case SO_DOMAIN:
        return give(family, value, length);
      case SO_PROTOCOL:
        return give(socket.is_datagram ? int{IPPROTO_UDP} : int{IPPROTO_TCP}, value, length);
      default:
        return std::nullopt;
    }
  }
  if (level != tcp) return std::nullopt;
  if (name == TCP_INFO) return get_tcp_info(value, length);
  if (name == TCP_CONGESTION) return give("cubic", value, length);
  if (name == TCP_MAXSEG)
    return give(static_cast<int>(Caller::instance()->costs().mtu_bytes) - headers, value, length);
  return std::nullopt;
}

}  // namespace

APENET_SOCKETS_EXPORT int setsockopt(int file, int level, int name, const void* value,
                                     socklen_t length) noexcept {
  static const auto real = next<decltype(&::setsockopt)>("setsockopt");
  if (!is_simulated(file)) return real(file, level, name, value, length);
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  if (static_cast<int>(length) < 0) return fail(EINVAL);
  if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO))
    return set_limit(file, name, value, length);
  if (level == SOL_SOCKET && name == SO_LINGER) return set_linger(file, value, length);
  const bool is_datagram = used->socket.is_datagram;
  if (level == tcp && !is_datagram && name == TCP_CONGESTION) return set_congestion_control(value, length);
  const Known* const known = level == tcp && is_datagram ? nullptr : find_option(level, name);
  int given = 0;
  const bool has_value =
      level == SOL_SOCKET || (level == ip && known != nullptr) || (level == tcp && !is_datagram);
  if (has_value) {
    if (const int error = read_value(level, value, length, given); error < 0) return fail(-error);
  }
  const bool is_simulated_option = known != nullptr && known->rule != Rule::not_to_set;
  if (!is_simulated_option || known->rule == Rule::only_to_get) {
    if (!is_simulated_option) warn(named("setsockopt", level, name) + ": not simulated");
    return fail(ENOPROTOOPT);
  }
  if (level == ip && length == 0 && name != IP_TOS && name != IP_RECVERR) return fail(EINVAL);
  if (level == ip && name == IP_MULTICAST_TTL && !is_datagram) return fail(EINVAL);
  return set_known(file, is_datagram, *known, given);
}

APENET_SOCKETS_EXPORT int getsockopt(int file, int level, int name, void* value, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getsockopt)>("getsockopt");
  if (!is_simulated(file)) return real(file, level, name, value, length);
  const std::optional<Used> used = used_socket(file);
  if (!used) return -1;
  const bool is_of_tcp = level == tcp && !used->socket.is_datagram;
  if (level != SOL_SOCKET && level != ip && !is_of_tcp) return fail(EOPNOTSUPP);
  int capacity = 0;
  if (!copy_in(&capacity, length, sizeof capacity)) return fail(EFAULT);
  if (capacity < 0) return fail(EINVAL);
  if (const auto other = get_other(file, used->socket, level, name, value, length)) return *other;
  const Known* const known = find_option(level, name);
  if (known == nullptr) {
    warn(named("getsockopt", level, name) + ": not simulated");
    return fail(ENOPROTOOPT);
  }
  return get_known(file, *known, value, length);
}

APENET_SOCKETS_EXPORT int getsockname(int file, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getsockname)>("getsockname");
  if (!is_simulated(file)) return real(file, address, length);
  const ipc::SocketAnswer answer = ask(file, "getsockname", {.verb = SocketVerb::local});
  if (answer.result < 0) return static_cast<int>(returned(answer));
  const int error = write_address(&answer.endpoint, address, length);
  return error < 0 ? fail(-error) : 0;
}

APENET_SOCKETS_EXPORT int getpeername(int file, sockaddr* address, socklen_t* length) noexcept {
  static const auto real = next<decltype(&::getpeername)>("getpeername");
  if (!is_simulated(file)) return real(file, address, length);
  const ipc::SocketAnswer answer = ask(file, "getpeername", {.verb = SocketVerb::remote});
  if (answer.result < 0) return static_cast<int>(returned(answer));
  const int error = write_address(&answer.endpoint, address, length);
  return error < 0 ? fail(-error) : 0;
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
  if (request == SIOCATMARK) {  // no data is out of band
    const std::optional<KnownSocket> socket = known_socket(file);
    constexpr int is_there = 0;
    if (socket && socket->is_datagram) return fail(is_readable(argument, sizeof(int)) ? ENOTTY : EFAULT);
    return copy_out(argument, &is_there, sizeof is_there) ? 0 : fail(EFAULT);
  }
  if (request != FIONREAD && request != SIOCOUTQ) return real(file, request, argument);
  const ipc::SocketAnswer answer =
      get(file, request == FIONREAD ? Option::unread_bytes : Option::unsent_bytes);
  if (answer.result < 0) return static_cast<int>(returned(answer));
  const auto bytes = static_cast<int>(answer.result);
  return copy_out(argument, &bytes, sizeof bytes) ? 0 : fail(EFAULT);
}

}  // namespace apenet::sockets
