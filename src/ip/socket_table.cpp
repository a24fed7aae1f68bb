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
    case SocketOption::no_delay:
      options.no_delay = value != 0;
      return 0;
    case SocketOption::keep_alive:
      options.keep_alive_s = value;
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
  switch (option) {
    case SocketOption::reuse_address:
      return options.reuse_address ? 1 : 0;
    case SocketOption::reuse_port:
      return options.reuse_port ? 1 : 0;
    case SocketOption::receive_bytes:
      return options.receive_bytes;
    case SocketOption::send_bytes:
      return options.send_bytes;
    case SocketOption::no_delay:
      return options.no_delay ? 1 : 0;
    case SocketOption::keep_alive:
      return options.keep_alive_s;
    case SocketOption::user_timeout:
      return options.user_timeout_ms;
    case SocketOption::linger:
      return options.linger_s;
    default:
      return -ENOPROTOOPT;
  }
}

short ready_stream(const OneSocket& own) {
  int events = 0;
  if (own.error != 0) events |= POLLERR;
  switch (own.role) {
    case OneSocket::Role::fresh:
      return static_cast<short>(events | POLLOUT | POLLHUP);
    case OneSocket::Role::listens:
      return static_cast<short>(own.accepted.empty() ? 0 : POLLIN);
    case OneSocket::Role::connects:
      return 0;
    case OneSocket::Role::connected:
      break;
  }
  const bool is_over = own.reads_no_more || own.seen.may_receive == 0;
  if (own.seen.received > 0 || is_over || own.error != 0) events |= POLLIN;
  if (is_over) events |= POLLRDHUP;
  const bool writes_no_more = own.writes_no_more || own.seen.may_send == 0;
  if (is_over && writes_no_more) events |= POLLHUP;
  // Linux, sk_stream_is_writeable(): a third of the buffer is free.
  if (writes_no_more || 2 * own.seen.room >= own.seen.unsent) events |= POLLOUT;
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
    if (&other == &own || other.type != own.type || other.local.port != local.port) return false;
    const bool are_apart =
        other.local.address != 0 && local.address != 0 && other.local.address != local.address;
    if (are_apart || (own.options.reuse_port && other.options.reuse_port)) return false;
    const bool are_reused = own.options.reuse_address && other.options.reuse_address;
    return !are_reused || (own.type == SocketType::stream && other.role == OneSocket::Role::listens);
  });
}

bool SocketTable::listens_there(const OneSocket& own) const {
  return any([&](const OneSocket& other) {
    const bool overlaps =
        other.local.address == 0 || own.local.address == 0 || other.local.address == own.local.address;
    return &other != &own && other.role == OneSocket::Role::listens && other.local.port == own.local.port &&
           overlaps && !(own.options.reuse_port && other.options.reuse_port);
  });
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
