// SocketTable: the sockets of a node, by number, and which ports they have.
#pragma once

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
  std::int64_t keep_alive_s = 0;
  std::int64_t user_timeout_ms = 0;
  std::int64_t linger_s = -1;
};

// 0, or -ENOPROTOOPT for an option that is no such value.
[[nodiscard]] int set_option(SocketOptions& options, SocketOption option, std::int64_t value);
[[nodiscard]] std::int64_t get_option(const SocketOptions& options, SocketOption option);

struct OneSocket {
  enum class Role : std::uint8_t { fresh, listens, connects, connected };

  SocketType type = SocketType::stream;
  Role role = Role::fresh;
  bool is_open = true;  // the program has it
  bool reads_no_more = false;
  bool writes_no_more = false;
  std::uint32_t stack = no_socket;  // number of the stack's socket
  apenet_ip_tcp seen{};             // as last read
  int error = 0;                    // SO_ERROR
  // Streams.
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t small_end = 0;  // how many bytes end with the last segment that was not full
  bool acks_at_once = true;
  Endpoint local{};
  Endpoint remote{};
  std::uint64_t changes = 0;
  SocketOptions options{};
  // Role::listens.
  int backlog = 0;
  std::size_t handshakes = 0;            // that have begun, among the embryos
  std::vector<std::uint32_t> embryos{};  // sockets of the stack that listen, or are in the handshake
  std::deque<Sockets::Number> accepted{};
};

// Sockets::ready() of a stream.
[[nodiscard]] short ready_stream(const OneSocket& own);

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
  // 0: all are in use.
  [[nodiscard]] std::uint16_t ephemeral_port(SocketType type, std::uint32_t address);

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
