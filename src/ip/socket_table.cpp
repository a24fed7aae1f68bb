#include "ip/socket_table.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#ifndef POLLRDHUP
#define POLLRDHUP 0x2000
#endif

namespace apenet::ip {
namespace {

constexpr std::int64_t least_buffer_bytes = 2048;
constexpr std::int64_t most_buffer_bytes = 4 << 20;

// As in the kernel, which also counts its own memory.
std::int64_t buffer_bytes(std::int64_t asked) {
  return std::clamp(2 * asked, least_buffer_bytes, most_buffer_bytes);
}

}  // namespace

int set_option(SocketOptions& options, SocketOption option, std::int64_t value) {
  if (option >= SocketOption::first_kept) {
    options.kept[static_cast<std::size_t>(option) - static_cast<std::size_t>(SocketOption::first_kept)] =
        value;
    return 0;
  }
  switch (option) {
    case SocketOption::reuse_address:
      options.reuse_address = value != 0;
      return 0;
    case SocketOption::reuse_port:
      options.reuse_port = value != 0;
      return 0;
    case SocketOption::receive_bytes:
      options.receive_bytes = buffer_bytes(value);
      return 0;
    case SocketOption::send_bytes:
      options.send_bytes = buffer_bytes(value);
      return 0;
    case SocketOption::receive_low:
      options.receive_low = value;
      return 0;
    case SocketOption::no_delay:
      options.no_delay = value != 0;
      return 0;
    case SocketOption::keep_alive:
      options.keep_alive = value != 0;
      return 0;
    case SocketOption::keep_idle:
      options.keep_idle_s = value;
      return 0;
    case SocketOption::user_timeout:
      options.user_timeout_ms = value;
      return 0;
    case SocketOption::linger:
      options.linger_s = value;
      return 0;
    default:
      return -ENOPROTOOPT;
  }
}

std::int64_t get_option(const SocketOptions& options, SocketOption option) {
  if (option >= SocketOption::first_kept)
    return options
        .kept[static_cast<std::size_t>(option) - static_cast<std::size_t>(SocketOption::first_kept)];
  switch (option) {
    case SocketOption::reuse_address:
      return options.reuse_address ? 1 : 0;
    case SocketOption::reuse_port:
      return options.reuse_port ? 1 : 0;
    case SocketOption::receive_bytes:
      return options.receive_bytes;
    case SocketOption::send_bytes:
      return options.send_bytes;
    case SocketOption::receive_low:
      return options.receive_low;
    case SocketOption::no_delay:
      return options.no_delay ? 1 : 0;
    case SocketOption::keep_alive:
      return options.keep_alive ? 1 : 0;
    case SocketOption::keep_idle:
      return options.keep_idle_s;
    case SocketOption::user_timeout:
      return options.user_timeout_ms;
    case SocketOption::linger:
      return options.linger_s;
    default:
      return -ENOPROTOOPT;
  }
}

bool is_writable(const OneSocket& own) {
  return 2 * own.seen.room >= own.seen.unsent;
}

// Linux, tcp_poll().
short ready_stream(const OneSocket& own) {
  constexpr int readable = POLLIN | POLLRDNORM;
  constexpr int writable = POLLOUT | POLLWRNORM;
  if (own.listens) return static_cast<short>(own.accepted.empty() ? 0 : readable);
  int events = 0;
  if (own.error != 0) events |= POLLERR;
  if ((own.reads_no_more && own.writes_no_more) || own.is_closed()) events |= POLLHUP;
  if (own.reads_no_more) events |= readable | POLLRDHUP;
  if (own.is_in_handshake()) return static_cast<short>(events);
  const auto received = static_cast<std::int64_t>(own.seen.received);
  // Linux, tcp_stream_is_readable(): never more than what the window can bring.
  const std::int64_t least = std::min(own.options.receive_low, own.options.receive_bytes / 2);
  if (received > 0 && received >= least) events |= readable;
  if (own.writes_no_more || is_writable(own)) events |= writable;
  return static_cast<short>(events);
}

// Linux, datagram_poll().
short ready_datagrams(const OneSocket& own, bool can_send) {
  int events = 0;
  if (own.error != 0) events |= POLLERR;
  if (own.reads_no_more) events |= POLLIN | POLLRDNORM | POLLRDHUP;
  if (own.reads_no_more && own.writes_no_more) events |= POLLHUP;
  if (!own.queue.empty()) events |= POLLIN | POLLRDNORM;
  if (can_send) events |= POLLOUT | POLLWRNORM | POLLWRBAND;
  return static_cast<short>(events);
}

SocketTable::Number SocketTable::add(OneSocket socket) {
  auto made = std::make_unique<OneSocket>(std::move(socket));
  if (free_.empty()) {
    sockets_.push_back(std::move(made));
    return static_cast<Number>(sockets_.size() - 1);
  }
  const auto least = std::min_element(free_.begin(), free_.end());
  const Number number = *least;
  free_.erase(least);
  sockets_[number] = std::move(made);
  return number;
}

void SocketTable::remove(Number number) {
  sockets_[number].reset();
  free_.push_back(number);
}

bool SocketTable::is_taken(const OneSocket& own, Endpoint local) const {
  return any([&](const OneSocket& other) {
    // What waits out a connection's last packets has the port, though its socket has not.
    const bool holds_port = other.holds_port || other.state() == APENET_IP_TIME_WAIT;
    if (&other == &own || other.type != own.type || !holds_port || other.local.port != local.port)
      return false;
    const bool are_apart =
        other.local.address != 0 && local.address != 0 && other.local.address != local.address;
    if (are_apart || (own.options.reuse_port && other.options.reuse_port)) return false;
    const bool are_reused = own.options.reuse_address && other.options.reuse_address;
    return !are_reused || (own.type == SocketType::stream && other.listens);
  });
}

bool SocketTable::listens_there(const OneSocket& own) const {
  return any([&](const OneSocket& other) {
    const bool overlaps =
        other.local.address == 0 || own.local.address == 0 || other.local.address == own.local.address;
    return &other != &own && other.listens && other.local.port == own.local.port && overlaps &&
           !(own.options.reuse_port && other.options.reuse_port);
  });
}

bool SocketTable::is_connected_there(const OneSocket& own) const {
  return any([&](const OneSocket& other) {
    return &other != &own && other.type == SocketType::stream && other.stack != no_socket &&
           other.state() != APENET_IP_CLOSED && other.local == own.local && other.remote == own.remote;
  });
}

// Linux, __udp4_lib_lookup(): one that is bound to the address before others, then one that is connected.
OneSocket* SocketTable::receiver_of(Endpoint from, Endpoint target) const {
  OneSocket* best = nullptr;
  const auto is_better = [](const OneSocket& left, const OneSocket& right) {
    const bool left_is_exact = left.local.address != 0;
    const bool right_is_exact = right.local.address != 0;
    if (left_is_exact != right_is_exact) return left_is_exact;
    if (left.has_peer != right.has_peer) return left.has_peer;
    return left.bound_as > right.bound_as;
  };
  for (const auto& socket : sockets_) {
    if (!socket || socket->type != SocketType::datagram || socket->stack == no_socket) continue;
    if (socket->local.port != target.port) continue;
    if (socket->local.address != 0 && socket->local.address != target.address) continue;
    if (socket->has_peer && socket->remote != from) continue;
    if (best == nullptr || is_better(*socket, *best)) best = socket.get();
  }
  return best;
}

std::uint16_t SocketTable::ephemeral_port(SocketType type, std::uint32_t address) {
  const OneSocket asks{.type = type};
  for (int tries = last_ephemeral_port - first_ephemeral_port; tries >= 0; --tries) {
    const std::uint16_t port = next_port_;
    next_port_ = port == last_ephemeral_port ? first_ephemeral_port : static_cast<std::uint16_t>(port + 1);
    if (!is_taken(asks, {address, port})) return port;
  }
  return 0;
}

}  // namespace apenet::ip
