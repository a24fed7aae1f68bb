#include "ip/sockets.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "ip/packets.hpp"
#include "ip/socket_table.hpp"
#include "ip/stack/stack.h"

namespace apenet::ip {
namespace {

constexpr std::int64_t ps_per_us = 1'000'000;
constexpr std::int64_t us_per_s = 1'000'000;
constexpr int most_backlog = 4096;  // net.core.somaxconn
// The least delay that Linux gives an acknowledgement (TCP_DELACK_MIN).
constexpr std::int64_t ack_delay_us = 40'000;

std::int64_t to_us(Time time) {
  return time.ps() / ps_per_us;
}

apenet_ip_endpoint to_stack(Endpoint endpoint) {
  return {.address = endpoint.address, .port = endpoint.port};
}

Endpoint from_stack(apenet_ip_endpoint endpoint) {
  return {.address = endpoint.address, .port = endpoint.port};
}

bool is_loopback(std::uint32_t address) {
  return address >> 24U == loopback_address >> 24U;
}

const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
std::uint8_t* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

using Role = OneSocket::Role;

class StackSockets final : public Sockets {
 public:
  explicit StackSockets(const SocketsConfig& config)
      : config_(config),
        stack_(apenet_ip_stack_new(config.address, config.prefix, static_cast<std::size_t>(config.mtu_bytes),
                                   config.seed),
               &apenet_ip_stack_free) {}

  Number open(SocketType type) override {
    const Number number = table_.add({.type = type});
    OneSocket& own = table_.at(number);
    own.options.receive_bytes = config_.receive_buffer_bytes;
    own.options.send_bytes = config_.send_buffer_bytes;
    return number;
  }

  int bind(Number socket, Endpoint local) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->local.port != 0) return -EINVAL;
    if (!is_own_address(local.address)) return -EADDRNOTAVAIL;
    if (local.port == 0) {
      local.port = table_.ephemeral_port(own->type, local.address);
      if (local.port == 0) return -EADDRINUSE;
    } else if (table_.is_taken(*own, local)) {
      return -EADDRINUSE;
    }
    own->local = local;
    if (own->type == SocketType::datagram) begin_datagrams(*own);
    return 0;
  }

  int listen(Number socket, int backlog, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type != SocketType::stream) return -EOPNOTSUPP;
    if (own->role != Role::fresh && own->role != Role::listens) return -EINVAL;
    if (own->local.port == 0) {
      if (const int error = bind(socket, {}); error < 0) return error;
    }
    if (own->role == Role::fresh && table_.listens_there(*own)) return -EADDRINUSE;
    own->role = Role::listens;
    own->backlog = std::clamp(backlog, 0, most_backlog);
    poll(now);
    return 0;
  }

  int connect(Number socket, Endpoint remote, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (remote.address == 0) remote.address = loopback_address;
    if (own->type == SocketType::datagram) {
      own->remote = remote;
      if (own->local.port == 0) return bind(socket, {local_address_to(remote), 0});
      if (own->local.address == 0) own->local.address = local_address_to(remote);
      return 0;
    }
    switch (own->role) {
      case Role::listens:
        return -EISCONN;
      case Role::connects:
        return -EALREADY;
      case Role::connected:
        return -EISCONN;
      case Role::fresh:
        break;
    }
    if (remote.port == 0) return -ECONNREFUSED;
    if (own->local.port == 0) {
      if (const int error = bind(socket, {own->local.address, 0}); error < 0) return error;
    }
    if (own->local.address == 0) own->local.address = local_address_to(remote);
    own->remote = remote;
    own->error = 0;
    own->stack = new_stream(own->options);
    if (apenet_ip_tcp_connect(stack_.get(), own->stack, to_stack(own->local), to_stack(remote)) != 0)
      return -EADDRNOTAVAIL;
    own->role = Role::connects;
    inspect(*own);
    poll(now);
    return -EINPROGRESS;
  }

  int connected(Number socket) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->role == Role::connects) return -EAGAIN;
    return -std::exchange(own->error, 0);
  }

  std::int64_t accept(Number socket, Endpoint& remote, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type != SocketType::stream) return -EOPNOTSUPP;
    if (own->role != Role::listens) return -EINVAL;
    if (own->accepted.empty()) return -EAGAIN;
    const Number made = own->accepted.front();
    own->accepted.pop_front();
    table_.at(made).is_open = true;
    remote = table_.at(made).remote;
    poll(now);
    return made;
  }

  std::int64_t send(Number socket, std::span<const std::byte> data, std::optional<Endpoint> to,
                    bool more_follows, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type == SocketType::datagram) return send_datagram(socket, *own, data, to, now);
    if (own->error != 0) return -std::exchange(own->error, 0);
    if (own->role == Role::connects) return -EAGAIN;
    if (own->role != Role::connected) return own->role == Role::fresh ? -EPIPE : -ENOTCONN;
    if (own->writes_no_more || own->seen.may_send == 0) return -EPIPE;
    if (data.empty()) return 0;
    const std::int64_t sent = apenet_ip_tcp_send(stack_.get(), own->stack, raw(data), data.size());
    if (sent < 0) return -EPIPE;
    if (sent == 0) return -EAGAIN;
    note_written(*own, static_cast<std::uint64_t>(sent), more_follows);
    poll(now);
    return sent;
  }

  std::int64_t receive(Number socket, std::span<std::byte> data, bool only_peeks, Endpoint& from,
                       Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type == SocketType::datagram) return receive_datagram(*own, data, only_peeks, from);
    from = own->remote;
    if (own->role == Role::connects) return -EAGAIN;
    if (own->role != Role::connected) {
      if (own->error != 0) return -std::exchange(own->error, 0);
      return -ENOTCONN;
    }
    if (own->seen.received > 0 && !data.empty()) {
      const std::int64_t taken =
          apenet_ip_tcp_receive(stack_.get(), own->stack, raw(data), data.size(), only_peeks ? 1 : 0);
      if (taken > 0) {
        if (!only_peeks) {
          own->read_bytes += static_cast<std::uint64_t>(taken);
          poll(now);  // the window opens
        }
        return taken;
      }
    }
    if (own->error != 0) return -std::exchange(own->error, 0);
    if (data.empty() || own->reads_no_more || own->seen.may_receive == 0) return 0;
    return -EAGAIN;
  }

  int shutdown(Number socket, Direction direction, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type == SocketType::datagram ? own->remote.port == 0 : own->role != Role::connected)
      return -ENOTCONN;
    if (direction != Direction::write) own->reads_no_more = true;
    if (direction != Direction::read) own->writes_no_more = true;
    ++own->changes;
    if (own->type == SocketType::stream && own->writes_no_more) {
      apenet_ip_tcp_close(stack_.get(), own->stack);
      poll(now);
    }
    return 0;
  }

  void close(Number socket, Time now) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return;
    own->is_open = false;
    if (own->type == SocketType::datagram || own->role == Role::fresh) {
      remove(socket);
    } else if (own->role == Role::listens) {
      for (const Number waiting : std::exchange(own->accepted, {})) abort(waiting);
      for (const std::uint32_t embryo : std::exchange(own->embryos, {})) {
        apenet_ip_tcp_abort(stack_.get(), embryo);
        doomed_.push_back(embryo);
      }
      remove(socket);
    } else if (own->seen.received > 0 || own->options.linger_s == 0 || own->role == Role::connects) {
      abort(socket);  // Linux, tcp_close(): unread data, or SO_LINGER of no time
    } else {
      apenet_ip_tcp_close(stack_.get(), own->stack);
    }
    poll(now);
  }

  int set(Number socket, SocketOption option, std::int64_t value) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (const int error = set_option(own->options, option, value); error != 0) return error;
    if (own->type == SocketType::stream && own->stack != no_socket) apply(*own, !own->options.no_delay);
    return 0;
  }

  std::int64_t get(Number socket, SocketOption option) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    switch (option) {
      case SocketOption::error:
        return std::exchange(own->error, 0);
      case SocketOption::is_listening:
        return own->role == Role::listens ? 1 : 0;
      case SocketOption::unread_bytes:
        if (own->type == SocketType::stream) return static_cast<std::int64_t>(own->seen.received);
        return own->stack == no_socket ? 0 : std::max<std::int64_t>(0, next_datagram(*own));
      case SocketOption::unsent_bytes:
        return static_cast<std::int64_t>(own->seen.unsent);
      case SocketOption::type:
        return static_cast<std::int64_t>(own->type);
      default:
        return get_option(own->options, option);
    }
  }

  Endpoint local(Number socket) override {
    const OneSocket* const own = table_.find(socket);
    return own == nullptr ? Endpoint{} : own->local;
  }

  int remote(Number socket, Endpoint& remote) override {
    const OneSocket* const own = table_.find(socket);
    if (own == nullptr) return -EBADF;
    if (own->type == SocketType::datagram ? own->remote.port == 0 : own->role != Role::connected)
      return -ENOTCONN;
    remote = own->remote;
    return 0;
  }

  short ready(Number socket) override {
    OneSocket* const own = table_.find(socket);
    if (own == nullptr) return POLLNVAL;
    int events = 0;
    if (own->type == SocketType::datagram) {
      if (own->stack == no_socket || apenet_ip_udp_can_send(stack_.get(), own->stack) != 0) events |= POLLOUT;
      if (own->stack != no_socket && next_datagram(*own) >= 0) events |= POLLIN;
      return static_cast<short>(events);
    }
    return ready_stream(*own);
  }

  std::uint64_t changes(Number socket) override {
    const OneSocket* const own = table_.find(socket);
    return own == nullptr ? 0 : own->changes;
  }

  void arrive(std::span<const std::byte> packet, Time now) override {
    if (is_dropped(packet)) return;
    apenet_ip_receive(stack_.get(), to_us(now), raw(packet), packet.size());
    note_arrival(packet);
    review(now);
  }

  void advance(Time now) override { poll(now); }

  Time next_time(Time now) override {
    const std::int64_t next_us = apenet_ip_next_us(stack_.get(), to_us(now));
    if (next_us < 0) return Time::never();
    return std::max(now, Time::from_ps(next_us * ps_per_us));
  }

  std::span<const std::byte> packet_to_send() override {
    std::size_t bytes = 0;
    const std::uint8_t* const packet = apenet_ip_to_send(stack_.get(), &bytes);
    return {reinterpret_cast<const std::byte*>(packet), packet == nullptr ? 0 : bytes};
  }

  void sent() override { apenet_ip_sent(stack_.get()); }

 private:
  void remove(Number number) {
    OneSocket& own = table_.at(number);
    if (own.stack != no_socket) apenet_ip_socket_free(stack_.get(), own.stack);
    table_.remove(number);
  }

  [[nodiscard]] bool is_own_address(std::uint32_t address) const {
    return address == 0 || address == config_.address || is_loopback(address);
  }

  // The source of what goes to this endpoint from a socket that is bound to no address.
  [[nodiscard]] std::uint32_t local_address_to(Endpoint remote) const {
    return is_loopback(remote.address) ? loopback_address : config_.address;
  }

  void begin_datagrams(OneSocket& own) {
    own.stack = apenet_ip_udp_new(stack_.get(), static_cast<std::size_t>(own.options.receive_bytes),
                                  static_cast<std::size_t>(own.options.send_bytes));
    apenet_ip_udp_bind(stack_.get(), own.stack, to_stack(own.local));
  }

  std::int64_t send_datagram(Number socket, OneSocket& own, std::span<const std::byte> data,
                             std::optional<Endpoint> to, Time now) {
    constexpr std::size_t most_bytes = 65507;
    if (data.size() > most_bytes) return -EMSGSIZE;
    if (own.writes_no_more) return -EPIPE;
    Endpoint target = to.value_or(own.remote);
    if (target.port == 0) return to ? -EINVAL : -EDESTADDRREQ;
    if (target.address == 0) target.address = loopback_address;
    if (own.local.port == 0) {
      if (const int error = bind(socket, {}); error < 0) return error;
    }
    Endpoint source = own.local;
    if (source.address == 0) source.address = local_address_to(target);
    switch (apenet_ip_udp_send(stack_.get(), own.stack, to_stack(source), to_stack(target), raw(data),
                               data.size())) {
      case -1:
        return -EAGAIN;
      case -2:
        return -EMSGSIZE;
      default:
        break;
    }
    poll(now);
    return static_cast<std::int64_t>(data.size());
  }

  // Length of the oldest datagram for this socket; those of others than its peer are dropped. -1: none.
  std::int64_t next_datagram(OneSocket& own) {
    if (own.remote.port == 0) return apenet_ip_udp_next_bytes(stack_.get(), own.stack);
    for (;;) {
      apenet_ip_endpoint source{};
      std::uint8_t none = 0;
      const std::int64_t bytes = apenet_ip_udp_receive(stack_.get(), own.stack, &none, 0, 1, &source);
      if (bytes < 0 || from_stack(source) == own.remote) return bytes;
      apenet_ip_udp_receive(stack_.get(), own.stack, &none, 0, 0, &source);
    }
  }

  std::int64_t receive_datagram(OneSocket& own, std::span<std::byte> data, bool only_peeks, Endpoint& from) {
    if (own.stack == no_socket) return own.reads_no_more ? 0 : -EAGAIN;
    if (next_datagram(own) < 0) return own.reads_no_more ? 0 : -EAGAIN;
    apenet_ip_endpoint source{};
    std::uint8_t none = 0;
    std::uint8_t* const to = data.empty() ? &none : raw(data);
    const std::int64_t bytes =
        apenet_ip_udp_receive(stack_.get(), own.stack, to, data.size(), only_peeks ? 1 : 0, &source);
    from = from_stack(source);
    return bytes;
  }

  std::uint32_t new_stream(const SocketOptions& options) {
    const std::uint32_t stack =
        apenet_ip_tcp_new(stack_.get(), static_cast<std::size_t>(options.receive_bytes),
                          static_cast<std::size_t>(options.send_bytes));
    set_options(stack, options, {.holds_small = !options.no_delay, .acks_at_once = true});
    return stack;
  }

  struct StackMode {
    bool holds_small = false;  // as Nagle's algorithm does
    bool acks_at_once = false;
  };
  void set_options(std::uint32_t stack, const SocketOptions& options, StackMode mode) {
    constexpr std::int64_t us_per_ms = 1000;
    const apenet_ip_tcp_options given{.nagle = mode.holds_small ? 1U : 0U,
                                      .keep_alive_us = options.keep_alive_s * us_per_s,
                                      .user_timeout_us = options.user_timeout_ms * us_per_ms,
                                      .ack_delay_us = mode.acks_at_once ? 0 : ack_delay_us};
    apenet_ip_tcp_set(stack_.get(), stack, &given);
  }
  void apply(const OneSocket& own, bool holds_small) {
    set_options(own.stack, own.options, {.holds_small = holds_small, .acks_at_once = own.acks_at_once});
  }

  [[nodiscard]] std::uint64_t segment_bytes() const {
    constexpr std::int64_t header_bytes = 40;  // IP and TCP
    return static_cast<std::uint64_t>(config_.mtu_bytes - header_bytes);
  }

  // Linux, tcp_minshall_check(): a segment that is not full waits only for an earlier one of this kind. The
  // stack's own rule, Nagle's, lets it wait for all segments.
  void note_written(OneSocket& own, std::uint64_t bytes, bool more_follows) {
    const std::uint64_t acknowledged = own.written_bytes - own.seen.unsent;
    own.written_bytes += bytes;
    const bool is_small = (own.written_bytes - own.small_end) % segment_bytes() != 0;
    const bool waits = !own.options.no_delay && is_small && own.small_end > acknowledged;
    const bool holds_small = more_follows || waits;
    if (is_small && !holds_small) own.small_end = own.written_bytes;
    apply(own, holds_small);
  }

  void abort(Number number) {
    OneSocket& own = table_.at(number);
    own.is_open = false;
    apenet_ip_tcp_abort(stack_.get(), own.stack);
    doomed_.push_back(own.stack);
    own.stack = no_socket;
    remove(number);
  }

  void poll(Time now) {
    apenet_ip_poll(stack_.get(), to_us(now));
    review(now);
  }

  void inspect(OneSocket& own) {
    if (own.type == SocketType::stream && own.stack != no_socket)
      apenet_ip_tcp_inspect(stack_.get(), own.stack, &own.seen);
  }

  // Looks at what the stack has done.
  void review(Time now) {
    bool again = false;
    for (const std::uint32_t stack : std::exchange(doomed_, {})) apenet_ip_socket_free(stack_.get(), stack);
    for (Number number = 0; number < table_.size(); ++number) {
      if (!table_.has(number)) continue;
      OneSocket& own = table_.at(number);
      if (own.type != SocketType::stream) continue;
      if (own.role == Role::listens) {
        again = review_listener(number) || again;
      } else if (own.stack != no_socket) {
        review_stream(number, own);
      }
    }
    if (again) apenet_ip_poll(stack_.get(), to_us(now));
  }

  void review_stream(Number number, OneSocket& own) {
    const apenet_ip_tcp before = own.seen;
    inspect(own);
    const auto state = static_cast<apenet_ip_state>(own.seen.state);
    if (own.role == Role::connects && state != APENET_IP_SYN_SENT && state != APENET_IP_SYN_RECEIVED) {
      if (state == APENET_IP_CLOSED) {
        fail_connection(own);
        return;
      }
      own.role = Role::connected;
      ++own.changes;
    }
    constexpr std::uint64_t quick_segments = 16;  // TCP_MAX_QUICKACKS
    if (own.acks_at_once && own.read_bytes + own.seen.received > quick_segments * segment_bytes()) {
      own.acks_at_once = false;
      apply(own, !own.options.no_delay);
    }
    const bool was_alive = before.state == APENET_IP_ESTABLISHED || before.state == APENET_IP_FIN_WAIT_1 ||
                           before.state == APENET_IP_FIN_WAIT_2 || before.state == APENET_IP_CLOSE_WAIT;
    if (state == APENET_IP_CLOSED && was_alive)
      own.error = before.state == APENET_IP_CLOSE_WAIT ? EPIPE : ECONNRESET;
    if (own.seen.received > before.received || own.seen.may_receive != before.may_receive ||
        own.seen.may_send != before.may_send || own.error != 0 || own.seen.room > before.room)
      ++own.changes;
    if (!own.is_open && !is_waiting_accept(number) && state == APENET_IP_CLOSED) remove(number);
  }

  void fail_connection(OneSocket& own) {
    apenet_ip_socket_free(stack_.get(), own.stack);
    own.stack = no_socket;
    own.seen = {};
    own.role = Role::fresh;
    own.local.address = 0;
    own.error = ECONNREFUSED;
    ++own.changes;
  }

  [[nodiscard]] bool is_waiting_accept(Number number) const {
    return table_.any([number](const OneSocket& other) {
      return other.role == Role::listens &&
             std::find(other.accepted.begin(), other.accepted.end(), number) != other.accepted.end();
    });
  }

  [[nodiscard]] static bool has_room(const OneSocket& own) {
    return own.accepted.size() + own.handshakes <= static_cast<std::size_t>(own.backlog);
  }

  // Keeps one socket of the stack listening while there is room for connections. True: it has made one.
  bool review_listener(Number number) {
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

  void accept_embryo(Number listener, std::uint32_t embryo, const apenet_ip_tcp& seen) {
    const Number made = table_.add({.role = Role::connected,
                                    .is_open = false,
                                    .stack = embryo,
                                    .seen = seen,
                                    .local = from_stack(seen.local),
                                    .remote = from_stack(seen.remote)});
    OneSocket& own = table_.at(listener);
    table_.at(made).options = own.options;
    own.accepted.push_back(made);
    ++own.changes;
  }

  // A SYN for a listener whose queue is full is lost, as in Linux; the stack would refuse it.
  [[nodiscard]] bool is_dropped(std::span<const std::byte> packet) const {
    if (packet.empty()) return true;
    const std::optional<std::uint16_t> port = opened_port(packet);
    if (!port) return false;
    const auto listens = [&](const OneSocket& own) {
      return own.role == Role::listens && own.local.port == *port;
    };
    return table_.any(listens) &&
           !table_.any([&](const OneSocket& own) { return listens(own) && has_room(own); });
  }

  // Datagrams change nothing that review() sees.
  void note_arrival(std::span<const std::byte> packet) {
    if (is_tcp(packet)) return;
    table_.for_each([](OneSocket& own) {
      if (own.type == SocketType::datagram) ++own.changes;
    });
  }

  SocketsConfig config_;
  std::unique_ptr<apenet_ip_stack, void (*)(apenet_ip_stack*)> stack_;
  SocketTable table_;
  std::vector<std::uint32_t> doomed_;  // the stack's sockets whose reset is to be sent before they end
};

}  // namespace

bool has_stack() {
  return true;
}

std::unique_ptr<Sockets> make_sockets(const SocketsConfig& config) {
  return std::make_unique<StackSockets>(config);
}

}  // namespace apenet::ip
