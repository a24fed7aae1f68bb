// Stream sockets of StackSockets: their states, errors and ends are Linux's (net/ipv4/af_inet.c, tcp.c).
#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "ip/packets.hpp"
#include "ip/stack_sockets.hpp"

namespace apenet::ip {
namespace {

constexpr std::int64_t us_per_s = 1'000'000;
constexpr std::int64_t ps_per_ms = 1'000'000'000;
// The least delay that Linux gives an acknowledgement (TCP_DELACK_MIN).
constexpr std::int64_t ack_delay_us = 40'000;

bool has_come_to_its_end(apenet_ip_state state) {
  return state == APENET_IP_CLOSE_WAIT || state == APENET_IP_CLOSING || state == APENET_IP_LAST_ACK ||
         state == APENET_IP_TIME_WAIT;
}

bool awaits_end_of_peer(apenet_ip_state state) {
  return state == APENET_IP_FIN_WAIT_1 || state == APENET_IP_FIN_WAIT_2;
}

}  // namespace

std::uint32_t StackSockets::new_stream(const SocketOptions& options) {
  const std::uint32_t stack = apenet_ip_tcp_new(stack_.get(), static_cast<std::size_t>(options.receive_bytes),
                                                static_cast<std::size_t>(options.send_bytes));
  set_options(stack, options, {.holds_small = !options.no_delay, .acks_at_once = true});
  return stack;
}

void StackSockets::set_options(std::uint32_t stack, const SocketOptions& options, StackMode mode) {
  const apenet_ip_tcp_options given{.nagle = mode.holds_small ? 1U : 0U,
                                    .keep_alive_us = options.keep_alive ? options.keep_idle_s * us_per_s : 0,
                                    .ack_delay_us = mode.acks_at_once ? 0 : ack_delay_us};
  apenet_ip_tcp_set(stack_.get(), stack, &given);
}

void StackSockets::apply(const OneSocket& own, bool holds_small) {
  set_options(own.stack, own.options, {.holds_small = holds_small, .acks_at_once = own.acks_at_once});
}

std::uint64_t StackSockets::segment_bytes() const {
  constexpr std::int64_t header_bytes = 40;  // IP and TCP
  return static_cast<std::uint64_t>(config_.mtu_bytes - header_bytes);
}

// Linux, tcp_minshall_check(): a segment that is not full waits only for an earlier one of this kind. The
// stack's own rule, Nagle's, lets it wait for all segments.
void StackSockets::note_written(OneSocket& own, std::uint64_t bytes, bool more_follows) {
  const std::uint64_t acknowledged = own.written_bytes - own.seen.unsent;
  own.written_bytes += bytes;
  const bool is_small = (own.written_bytes - own.small_end) % segment_bytes() != 0;
  const bool waits = !own.options.no_delay && is_small && own.small_end > acknowledged;
  const bool holds_small = more_follows || waits;
  if (is_small && !holds_small) own.small_end = own.written_bytes;
  apply(own, holds_small);
}

int StackSockets::begin_connection(OneSocket& own, Endpoint remote, Time now) {
  if (remote.port == 0) return -ECONNREFUSED;
  if (remote.address == 0) remote.address = own_address_of(own);
  if (own.local.address == 0) own.local.address = local_address_to(remote);
  if (take_port(own, own.local.address) < 0) return -EADDRNOTAVAIL;
  own.remote = remote;
  own.error = 0;
  if (table_.is_connected_there(own)) return -EADDRNOTAVAIL;
  if (own.stack != no_socket) apenet_ip_socket_free(stack_.get(), own.stack);
  own.stack = new_stream(own.options);
  if (apenet_ip_tcp_connect(stack_.get(), own.stack, to_stack(own.local), to_stack(remote)) != 0)
    return -EADDRNOTAVAIL;
  own.link = OneSocket::Link::connecting;
  own.stalled_since = now;
  own.written_bytes = own.read_bytes = own.small_end = 0;
  own.readable_bytes = UINT64_MAX;
  own.acks_at_once = true;
  inspect(own);
  poll(now);
  return -EINPROGRESS;
}

// Linux, __inet_stream_connect(): the call that learns how it has ended.
int StackSockets::end_of_connecting(OneSocket& own) {
  if (!own.is_closed()) {
    own.link = OneSocket::Link::connected;
    return 0;
  }
  const int error = std::exchange(own.error, 0);
  own.link = OneSocket::Link::unconnected;
  disconnect_stream(own);
  return error != 0 ? -error : -ECONNABORTED;
}

// Linux, tcp_recvmsg_locked().
std::int64_t StackSockets::receive_stream(OneSocket& own, std::span<std::byte> data, ReceiveMode mode,
                                          Time now) {
  if (own.listens) return -ENOTCONN;
  if (own.seen.received > 0) {
    if (data.empty()) return 0;
    const bool may_grow = !own.has_ended && own.error == 0 && !own.reads_no_more && !own.is_closed();
    if (static_cast<std::int64_t>(own.seen.received) < mode.peeks_least && may_grow) return -EAGAIN;
    const std::size_t bytes = std::min<std::size_t>(data.size(), own.readable_bytes);
    const std::int64_t taken =
        apenet_ip_tcp_receive(stack_.get(), own.stack, raw(data), bytes, mode.only_peeks ? 1 : 0);
    if (taken > 0) {
      if (!mode.only_peeks) {
        if (own.readable_bytes != UINT64_MAX) own.readable_bytes -= static_cast<std::uint64_t>(taken);
        own.read_bytes += static_cast<std::uint64_t>(taken);
        poll(now);  // the window opens
      }
      return taken;
    }
  }
  if (own.has_ended) return 0;
  if (own.error != 0 && mode.has_taken) return 0;  // the next call tells it
  if (own.error != 0) return -std::exchange(own.error, 0);
  if (own.reads_no_more) return 0;
  return own.is_closed() ? -ENOTCONN : -EAGAIN;
}

// Linux, inet_shutdown().
int StackSockets::shutdown_stream(OneSocket& own, Direction direction, Time now) {
  using Link = OneSocket::Link;
  if (own.link == Link::connecting)
    own.link = own.is_closed() || own.is_in_handshake() ? Link::disconnecting : Link::connected;
  if (own.listens) {
    if (direction == Direction::write) return 0;
    disconnect_stream(own);
    own.link = Link::unconnected;
    poll(now);
    return 0;
  }
  if (own.is_in_handshake()) {
    disconnect_stream(own);
    own.link = Link::unconnected;
    poll(now);
    return 0;
  }
  const bool is_closed = own.is_closed();
  if (direction != Direction::write) own.reads_no_more = true;
  if (direction != Direction::read) own.writes_no_more = true;
  if (is_closed) return -ENOTCONN;
  if (direction != Direction::read) {
    apenet_ip_tcp_close(stack_.get(), own.stack);
    poll(now);
  }
  return 0;
}

void StackSockets::disconnect_stream(OneSocket& own) {
  const apenet_ip_state state = own.state();
  const bool was_closed = own.is_closed();
  if (own.listens) {
    stop_listening(own);
  } else if (!own.is_closed() && state != APENET_IP_CLOSING && state != APENET_IP_LAST_ACK) {
    own.error = ECONNRESET;
  }
  if (own.stack != no_socket) reset(own);
  if (!was_closed) release_port(own);
  if (!own.binds_address) own.local.address = 0;
  own.remote = {};
  own.reads_no_more = own.writes_no_more = own.has_ended = false;
  own.note_change();
}

void StackSockets::stop_listening(OneSocket& own) {
  own.listens = false;
  for (const Number waiting : std::exchange(own.accepted, {})) {
    reset(table_.at(waiting));
    remove(waiting);
  }
  for (const std::uint32_t embryo : std::exchange(own.embryos, {})) {
    apenet_ip_tcp_abort(stack_.get(), embryo);
    doomed_.push_back(embryo);
  }
  own.handshakes = 0;
}

// The name stays, as getsockname() tells.
void StackSockets::release_port(OneSocket& own) {
  if (!own.binds_port) own.holds_port = false;
}

void StackSockets::reset(OneSocket& own) {
  if (own.stack == no_socket) return;
  apenet_ip_tcp_abort(stack_.get(), own.stack);
  doomed_.push_back(own.stack);
  own.stack = no_socket;
  own.seen = {};
}

void StackSockets::inspect(OneSocket& own) {
  if (own.stack == no_socket) return;
  apenet_ip_tcp_inspect(stack_.get(), own.stack, &own.seen);
  own.seen.received = std::min(own.seen.received, own.readable_bytes);
}

// TCP_USER_TIMEOUT (RFC 5482), which the stack's own is not: that ends connections that have nothing to send.
Time StackSockets::time_limit(const OneSocket& own) {
  const bool is_pending = own.seen.unsent > 0 || own.is_in_handshake();
  if (own.stack == no_socket || own.options.user_timeout_ms == 0 || !is_pending || own.is_closed())
    return Time::never();
  return own.stalled_since + Time::from_ps(own.options.user_timeout_ms * ps_per_ms);
}

// Linux, tcp_write_err().
void StackSockets::give_up(OneSocket& own) {
  reset(own);
  own.reads_no_more = own.writes_no_more = true;
  own.error = ETIMEDOUT;
}

// What the peer, or the stack, has done with the connection.
void StackSockets::note_end(OneSocket& own, apenet_ip_state before) {
  const apenet_ip_state state = own.state();
  if (has_come_to_its_end(state)) own.reads_no_more = own.has_ended = true;
  if (!own.is_closed() || before == APENET_IP_CLOSED || before == APENET_IP_TIME_WAIT) return;
  own.reads_no_more = own.writes_no_more = true;
  const bool was_in_handshake = before == APENET_IP_SYN_SENT || before == APENET_IP_SYN_RECEIVED;
  if (was_in_handshake) {
    own.error = ECONNREFUSED;
  } else if (state == APENET_IP_CLOSED && before == APENET_IP_CLOSE_WAIT) {
    own.error = EPIPE;
  } else if (state == APENET_IP_CLOSED && (before == APENET_IP_ESTABLISHED || awaits_end_of_peer(before))) {
    own.error = ECONNRESET;
  }
}

void StackSockets::review_stream(Number number, OneSocket& own, Time now) {
  const apenet_ip_tcp before = own.seen;
  const auto state_before = static_cast<apenet_ip_state>(before.state);
  const bool reads_before = !own.reads_no_more;
  const int error_before = own.error;
  inspect(own);
  const apenet_ip_state state = own.state();
  if (own.seen.unsent < before.unsent || before.unsent == 0 || state != state_before) own.stalled_since = now;
  // Linux, tcp_rcv_state_process(): nobody will read it.
  const bool is_abandoned = own.seen.received > before.received && awaits_end_of_peer(state_before) &&
                            (!reads_before || !own.is_open) && !is_waiting_accept(number);
  if (is_abandoned) {
    apenet_ip_tcp_abort(stack_.get(), own.stack);
    own.readable_bytes = before.received;
    inspect(own);
    has_to_send_ = true;
    own.reads_no_more = own.writes_no_more = true;
    own.error = ECONNRESET;
  } else if (time_limit(own) <= now) {
    give_up(own);
  } else {
    note_end(own, state_before);
  }
  constexpr std::uint64_t quick_segments = 16;  // TCP_MAX_QUICKACKS
  if (own.acks_at_once && own.stack != no_socket &&
      own.read_bytes + own.seen.received > quick_segments * segment_bytes()) {
    own.acks_at_once = false;
    apply(own, !own.options.no_delay);
  }
  if (own.reads_no_more == reads_before || own.state() != state_before || own.error != error_before)
    own.note_change();
  if (own.seen.received > before.received) ++own.read_changes;
  if (own.waits_for_room && own.seen.room > before.room && is_writable(own)) {
    own.waits_for_room = false;
    ++own.write_changes;
  }
  const bool was_closed = state_before == APENET_IP_CLOSED || state_before == APENET_IP_TIME_WAIT;
  if (own.is_closed() && !was_closed) release_port(own);
  if (own.is_open || own.state() != APENET_IP_CLOSED || is_waiting_accept(number)) return;
  if (is_abandoned) doomed_.push_back(std::exchange(own.stack, no_socket));
  remove(number);
}

bool StackSockets::is_waiting_accept(Number number) const {
  return table_.any([number](const OneSocket& other) {
    return other.listens &&
           std::find(other.accepted.begin(), other.accepted.end(), number) != other.accepted.end();
  });
}

bool StackSockets::has_room(const OneSocket& own) {
  return own.accepted.size() + own.handshakes <= static_cast<std::size_t>(own.backlog);
}

// Keeps one socket of the stack listening while there is room for connections. True: it has made one.
bool StackSockets::review_listener(Number number) {
  std::vector<std::uint32_t> embryos = std::exchange(table_.at(number).embryos, {});
  bool listens = false;
  table_.at(number).handshakes = 0;
  for (const std::uint32_t embryo : embryos) {
    apenet_ip_tcp seen{};
    apenet_ip_tcp_inspect(stack_.get(), embryo, &seen);
    switch (static_cast<apenet_ip_state>(seen.state)) {
      case APENET_IP_LISTEN:
        if (listens) {  // a reset has made it so again
          apenet_ip_socket_free(stack_.get(), embryo);
        } else {
          table_.at(number).embryos.push_back(embryo);
        }
        listens = true;
        break;
      case APENET_IP_SYN_RECEIVED:
        ++table_.at(number).handshakes;
        table_.at(number).embryos.push_back(embryo);
        break;
      case APENET_IP_CLOSED:
        apenet_ip_socket_free(stack_.get(), embryo);
        break;
      default:
        accept_embryo(number, embryo, seen);
        break;
    }
  }
  OneSocket& own = table_.at(number);
  if (listens || !has_room(own)) return false;
  const std::uint32_t fresh = new_stream(own.options);
  apenet_ip_tcp_listen(stack_.get(), fresh, to_stack(own.local));
  own.embryos.push_back(fresh);
  return true;
}

void StackSockets::accept_embryo(Number listener, std::uint32_t embryo, const apenet_ip_tcp& seen) {
  const Number made = table_.add({.link = OneSocket::Link::connected,
                                  .is_open = false,
                                  .holds_port = true,
                                  .stack = embryo,
                                  .seen = seen,
                                  .local = from_stack(seen.local),
                                  .remote = from_stack(seen.remote)});
  OneSocket& own = table_.at(listener);
  OneSocket& fresh = table_.at(made);
  fresh.options = own.options;
  fresh.binds_address = own.binds_address;
  note_end(fresh, APENET_IP_ESTABLISHED);
  own.accepted.push_back(made);
  ++own.read_changes;
}

bool StackSockets::is_dropped(std::span<const std::byte> packet) const {
  if (packet.empty()) return true;
  const std::optional<std::uint16_t> port = opened_port(packet);
  if (!port) return false;
  const auto listens = [&](const OneSocket& own) { return own.listens && own.local.port == *port; };
  return table_.any(listens) &&
         !table_.any([&](const OneSocket& own) { return listens(own) && has_room(own); });
}

}  // namespace apenet::ip
