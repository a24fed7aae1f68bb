#include "ip/sockets.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ip/packets.hpp"
#include "ip/stack_sockets.hpp"

namespace apenet::ip {
namespace {

constexpr std::int64_t ps_per_us = 1'000'000;
constexpr int most_backlog = 4096;  // net.core.somaxconn

std::int64_t to_us(Time time) {
  return time.ps() / ps_per_us;
}

bool is_loopback(std::uint32_t address) {
  return address >> 24U == loopback_address >> 24U;
}

}  // namespace

StackSockets::StackSockets(const SocketsConfig& config)
    : config_(config),
      stack_(apenet_ip_stack_new(config.address, config.prefix, static_cast<std::size_t>(config.mtu_bytes),
                                 config.seed),
             &apenet_ip_stack_free) {}

Sockets::Number StackSockets::open(SocketType type) {
  const Number number = table_.add({.type = type});
  OneSocket& own = table_.at(number);
  own.options.receive_bytes = config_.receive_buffer_bytes;
  own.options.send_bytes = config_.send_buffer_bytes;
  return number;
}

int StackSockets::bind(Number socket, Endpoint local) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (!is_own_address(local.address)) return -EADDRNOTAVAIL;
  if (own->holds_port || own->listens || !own->is_closed()) return -EINVAL;
  if (local.port != 0 && table_.is_taken(*own, local)) {
    own->local.address = 0;  // as the kernel does, though it refuses the call
    return -EADDRINUSE;
  }
  own->local = local;
  if (local.port != 0) own->binds_port = true;
  if (local.address != 0) own->binds_address = true;
  if (local.port == 0) return take_port(*own, local.address);
  own->holds_port = true;
  own->bound_as = ++next_bound_;
  if (own->type == SocketType::datagram) begin_datagrams(*own);
  return 0;
}

int StackSockets::take_port(OneSocket& own, std::uint32_t address) {
  if (own.holds_port) return 0;
  const std::uint16_t port = table_.ephemeral_port(own.type, address);
  if (port == 0) return -EADDRINUSE;
  own.local = {address, port};
  own.holds_port = true;
  own.bound_as = ++next_bound_;
  if (own.type == SocketType::datagram) begin_datagrams(own);
  return 0;
}

int StackSockets::listen(Number socket, int backlog, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type != SocketType::stream) return -EOPNOTSUPP;
  if (own->link != OneSocket::Link::unconnected || (!own->listens && !own->is_closed())) return -EINVAL;
  if (const int error = take_port(*own, own->local.address); error < 0) return error;
  if (!own->listens && table_.listens_there(*own)) return -EADDRINUSE;
  own->listens = true;
  own->backlog = backlog < 0 ? most_backlog : std::min(backlog, most_backlog);
  poll(now);
  return 0;
}

int StackSockets::connect(Number socket, Endpoint remote, int address_error, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type == SocketType::datagram) return connect_datagrams(*own, remote, address_error);
  switch (own->link) {
    case OneSocket::Link::disconnecting:
      return -EINVAL;
    case OneSocket::Link::connected:
      return -EISCONN;
    case OneSocket::Link::connecting:
      return own->is_in_handshake() ? -EALREADY : end_of_connecting(*own);
    case OneSocket::Link::unconnected:
      break;
  }
  if (own->listens || !own->is_closed()) return -EISCONN;
  if (address_error != 0) return address_error;
  return begin_connection(*own, remote, now);
}

int StackSockets::disconnect(Number socket, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type == SocketType::datagram) {
    disconnect_datagrams(*own);
    return 0;
  }
  disconnect_stream(*own);
  own->link = OneSocket::Link::unconnected;
  poll(now);
  return 0;
}

int StackSockets::connected(Number socket) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->link != OneSocket::Link::connecting) return 0;
  return own->is_in_handshake() ? -EAGAIN : end_of_connecting(*own);
}

std::int64_t StackSockets::accept(Number socket, Endpoint& remote, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type != SocketType::stream) return -EOPNOTSUPP;
  if (!own->listens) return -EINVAL;
  if (own->accepted.empty()) return -EAGAIN;
  const Number made = own->accepted.front();
  own->accepted.pop_front();
  table_.at(made).is_open = true;
  remote = table_.at(made).remote;
  poll(now);
  return made;
}

std::int64_t StackSockets::send(Number socket, const Sending& sending, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type == SocketType::datagram) return send_datagram(*own, sending, now);
  const apenet_ip_state state = own->state();
  const bool may_send = state == APENET_IP_ESTABLISHED || state == APENET_IP_CLOSE_WAIT;
  if (own->error != 0) return -std::exchange(own->error, 0);
  if (own->is_in_handshake()) return -EAGAIN;
  if (!may_send || own->writes_no_more) return -EPIPE;
  if (sending.data_error != 0) return sending.data_error;
  if (sending.data.empty()) return 0;
  const std::int64_t sent =
      apenet_ip_tcp_send(stack_.get(), own->stack, raw(sending.data), sending.data.size());
  if (sent < 0) return -EPIPE;
  if (sent < static_cast<std::int64_t>(sending.data.size())) own->waits_for_room = true;
  if (sent == 0) return -EAGAIN;
  note_written(*own, static_cast<std::uint64_t>(sent), sending.more_follows);
  poll(now);
  return sent;
}

std::int64_t StackSockets::receive(Number socket, std::span<std::byte> data, ReceiveMode mode, Endpoint& from,
                                   Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (own->type == SocketType::datagram) return receive_datagram(*own, data, mode, from);
  from = own->remote;
  return receive_stream(*own, data, mode, now);
}

int StackSockets::shutdown(Number socket, Direction direction, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  own->note_change();
  if (own->type == SocketType::stream) return shutdown_stream(*own, direction, now);
  // Linux, inet_shutdown(): also of a socket without a peer, for which it says that it has none.
  if (direction != Direction::write) own->reads_no_more = true;
  if (direction != Direction::read) own->writes_no_more = true;
  return own->has_peer ? 0 : -ENOTCONN;
}

void StackSockets::close(Number socket, Time now) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return;
  own->is_open = false;
  if (own->listens) stop_listening(*own);
  if (own->type == SocketType::datagram || own->state() == APENET_IP_CLOSED) {
    remove(socket);
  } else if (!own->is_closed() &&
             (own->seen.received > 0 || own->options.linger_s == 0 || own->is_in_handshake())) {
    reset(*own);  // Linux, tcp_close(): unread data, or SO_LINGER of no time
    remove(socket);
  } else {
    apenet_ip_tcp_close(stack_.get(), own->stack);
  }
  poll(now);
}

int StackSockets::set(Number socket, SocketOption option, std::int64_t value) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  if (const int error = set_option(own->options, option, value); error != 0) return error;
  if (own->type == SocketType::stream && own->stack != no_socket) apply(*own, !own->options.no_delay);
  return 0;
}

std::int64_t StackSockets::get(Number socket, SocketOption option) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  switch (option) {
    case SocketOption::error:
      return std::exchange(own->error, 0);
    case SocketOption::is_listening:
      return own->listens ? 1 : 0;
    case SocketOption::unread_bytes:
      if (own->listens) return -EINVAL;
      if (own->type == SocketType::stream) return static_cast<std::int64_t>(own->seen.received);
      return own->queue.empty() ? 0 : static_cast<std::int64_t>(own->queue.front().data.size());
    case SocketOption::unsent_bytes:
      if (own->listens) return -EINVAL;
      return static_cast<std::int64_t>(own->seen.unsent);
    case SocketOption::type:
      return static_cast<std::int64_t>(own->type);
    default:
      return get_option(own->options, option);
  }
}

Endpoint StackSockets::local(Number socket) {
  const OneSocket* const own = table_.find(socket);
  return own == nullptr ? Endpoint{} : own->local;
}

int StackSockets::remote(Number socket, Endpoint& remote) {
  const OneSocket* const own = table_.find(socket);
  if (own == nullptr) return -EBADF;
  const bool is_there = own->type == SocketType::datagram
                            ? own->has_peer && own->remote.port != 0
                            : !own->listens && !own->is_closed() && !own->is_in_handshake();
  if (!is_there) return -ENOTCONN;
  remote = own->remote;
  return 0;
}

short StackSockets::ready(Number socket) {
  OneSocket* const own = table_.find(socket);
  if (own == nullptr) return POLLNVAL;
  if (own->type == SocketType::stream) {
    if (!is_writable(*own)) own->waits_for_room = true;
    return ready_stream(*own);
  }
  return ready_datagrams(*own,
                         own->stack == no_socket || apenet_ip_udp_can_send(stack_.get(), own->stack) != 0);
}

std::uint64_t StackSockets::changes(Number socket) {
  const OneSocket* const own = table_.find(socket);
  constexpr unsigned half = 32;
  return own == nullptr ? 0 : std::uint64_t{own->write_changes} << half | own->read_changes;
}

void StackSockets::arrive(std::span<const std::byte> packet, Time now) {
  if (is_dropped(packet)) return;
  apenet_ip_receive(stack_.get(), to_us(now), raw(packet), packet.size());
  if (!is_tcp(packet)) {
    note_unreachable(packet);
    take_datagrams();
  }
  review(now);
}

Time StackSockets::next_time(Time now) {
  const std::int64_t next_us = apenet_ip_next_us(stack_.get(), to_us(now));
  Time next = next_us < 0 ? Time::never() : Time::from_ps(next_us * ps_per_us);
  table_.for_each([&](const OneSocket& own) { next = std::min(next, time_limit(own)); });
  return next == Time::never() ? next : std::max(now, next);
}

std::span<const std::byte> StackSockets::packet_to_send() {
  if (!own_packets_.empty()) return own_packets_.front();
  std::size_t bytes = 0;
  const std::uint8_t* const packet = apenet_ip_to_send(stack_.get(), &bytes);
  return {reinterpret_cast<const std::byte*>(packet), packet == nullptr ? 0 : bytes};
}

void StackSockets::sent() {
  if (own_packets_.empty()) {
    apenet_ip_sent(stack_.get());
  } else {
    own_packets_.pop_front();
  }
}

bool StackSockets::is_own_address(std::uint32_t address) const {
  return address == 0 || address == config_.address || is_loopback(address);
}

std::uint32_t StackSockets::own_address_of(const OneSocket& own) {
  return own.local.address == 0 ? loopback_address : own.local.address;
}

std::uint32_t StackSockets::local_address_to(Endpoint remote) const {
  return is_loopback(remote.address) ? loopback_address : config_.address;
}

void StackSockets::remove(Number number) {
  OneSocket& own = table_.at(number);
  if (own.stack != no_socket) apenet_ip_socket_free(stack_.get(), own.stack);
  table_.remove(number);
}

void StackSockets::poll(Time now) {
  apenet_ip_poll(stack_.get(), to_us(now));
  review(now);
}

void StackSockets::review(Time now) {
  bool again = false;
  for (const std::uint32_t stack : std::exchange(doomed_, {})) apenet_ip_socket_free(stack_.get(), stack);
  for (Number number = 0; number < table_.size(); ++number) {
    if (!table_.has(number)) continue;
    OneSocket& own = table_.at(number);
    if (own.type != SocketType::stream) continue;
    if (own.listens) {
      again = review_listener(number) || again;
    } else if (own.stack != no_socket) {
      review_stream(number, own, now);
    }
  }
  if (again || !doomed_.empty() || std::exchange(has_to_send_, false))
    apenet_ip_poll(stack_.get(), to_us(now));
}

bool has_stack() {
  return true;
}

std::unique_ptr<Sockets> make_sockets(const SocketsConfig& config) {
  return std::make_unique<StackSockets>(config);
}

}  // namespace apenet::ip
