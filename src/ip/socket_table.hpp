// SocketTable: the sockets of a node, by number, and which ports they have.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "ip/sockets.hpp"
#include "ip/stack/stack.h"

namespace apenet::ip {

inline constexpr std::uint32_t no_socket = UINT32_MAX;

struct SocketOptions {
  bool reuse_address = false;
  bool reuse_port = false;
  bool no_delay = false;
  std::int64_t receive_bytes = 0;
  std::int64_t send_bytes = 0;
  std::int64_t receive_low = 1;  // SO_RCVLOWAT
  bool keep_alive = false;
  std::int64_t keep_idle_s = 7200;  // net.ipv4.tcp_keepalive_time
  std::int64_t user_timeout_ms = 0;
  std::int64_t linger_s = -1;
  std::array<std::int64_t, kept_options> kept{};
};

// 0, or -ENOPROTOOPT for an option that is no such value.
[[nodiscard]] int set_option(SocketOptions& options, SocketOption option, std::int64_t value);
[[nodiscard]] std::int64_t get_option(const SocketOptions& options, SocketOption option);

struct Datagram {
  Endpoint from;
  std::vector<std::byte> data;
};

struct OneSocket {
  // What connect() has made of it: `state` of the kernel's struct socket.
  enum class Link : std::uint8_t { unconnected, connecting, connected, disconnecting };

  SocketType type = SocketType::stream;
  Link link = Link::unconnected;
  bool is_open = true;          // the program has it
  bool reads_no_more = false;   // RCV_SHUTDOWN: by the program, or with the end of the connection
  bool writes_no_more = false;  // SEND_SHUTDOWN
  bool has_ended = false;       // SOCK_DONE: the peer sends no more
  bool holds_port = false;      // else `local` is only its name
  bool binds_port = false;      // bind() has named it, so it stays
  bool binds_address = false;
  std::uint32_t stack = no_socket;  // number of the stack's socket
  apenet_ip_tcp seen{};             // as last read
  int error = 0;                    // SO_ERROR
  Endpoint local{};
  Endpoint remote{};
  std::uint32_t read_changes = 0;
  std::uint32_t write_changes = 0;
  bool waits_for_room = false;  // SOCK_NOSPACE: the program has seen that it cannot write
  SocketOptions options{};
  // Streams.
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t small_end = 0;  // how many bytes end with the last segment that was not full
  bool acks_at_once = true;
  Time stalled_since{};  // the peer has acknowledged nothing since
  // What can be read of a connection that was reset by what came after it: nothing of that.
  std::uint64_t readable_bytes = UINT64_MAX;
  // Datagrams.
  bool has_peer = false;
  std::uint64_t bound_as = 0;  // the latest of those that could take a datagram does
  std::deque<Datagram> queue{};
  std::size_t queued_bytes = 0;
  // A socket that listens.
  bool listens = false;
  int backlog = 0;
  std::size_t handshakes = 0;            // that have begun, among the embryos
  std::vector<std::uint32_t> embryos{};  // sockets of the stack that listen, or are in the handshake
  std::deque<Sockets::Number> accepted{};

  // All of what ready() tells may have changed.
  void note_change() {
    ++read_changes;
    ++write_changes;
  }
  [[nodiscard]] apenet_ip_state state() const {
    return stack == no_socket ? APENET_IP_CLOSED : static_cast<apenet_ip_state>(seen.state);
  }
  // As the kernel's states: a connection that waits out its last packets is no socket's any more.
  [[nodiscard]] bool is_closed() const {
    return !listens && (state() == APENET_IP_CLOSED || state() == APENET_IP_TIME_WAIT);
  }
  [[nodiscard]] bool is_in_handshake() const {
    return state() == APENET_IP_SYN_SENT || state() == APENET_IP_SYN_RECEIVED;
  }
};

// sk_stream_is_writeable(): a third of the buffer is free.
[[nodiscard]] bool is_writable(const OneSocket& own);
// Sockets::ready().
[[nodiscard]] short ready_stream(const OneSocket& own);
[[nodiscard]] short ready_datagrams(const OneSocket& own, bool can_send);

class SocketTable {
 public:
  using Number = Sockets::Number;

  [[nodiscard]] Number add(OneSocket socket);
  void remove(Number number);
  [[nodiscard]] std::size_t size() const { return sockets_.size(); }
  [[nodiscard]] bool has(Number number) const {
    return number < sockets_.size() && sockets_[number] != nullptr;
  }
  [[nodiscard]] OneSocket& at(Number number) { return *sockets_[number]; }
  // nullptr: the program has none of this number.
  [[nodiscard]] OneSocket* find(Number number) {
    return has(number) && sockets_[number]->is_open ? sockets_[number].get() : nullptr;
  }

  // Whether another socket has the port, for bind().
  [[nodiscard]] bool is_taken(const OneSocket& own, Endpoint local) const;
  [[nodiscard]] bool listens_there(const OneSocket& own) const;
  [[nodiscard]] bool is_connected_there(const OneSocket& own) const;
  // 0: all are in use.
  [[nodiscard]] std::uint16_t ephemeral_port(SocketType type, std::uint32_t address);
  // The socket that takes a datagram; nullptr: none does.
  [[nodiscard]] OneSocket* receiver_of(Endpoint from, Endpoint target) const;

  template <typename Is>
  [[nodiscard]] bool any(Is is) const {
    for (const auto& socket : sockets_) {
      if (socket && is(static_cast<const OneSocket&>(*socket))) return true;
    }
    return false;
  }
  template <typename Use>
  void for_each(Use use) {
    for (const auto& socket : sockets_) {
      if (socket) use(*socket);
    }
  }

 private:
  static constexpr std::uint16_t first_ephemeral_port = 32768;  // net.ipv4.ip_local_port_range
  static constexpr std::uint16_t last_ephemeral_port = 60999;

  std::vector<std::unique_ptr<OneSocket>> sockets_;
  std::vector<Number> free_;
  std::uint16_t next_port_ = first_ephemeral_port;
};

}  // namespace apenet::ip
