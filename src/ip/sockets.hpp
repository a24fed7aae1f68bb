// Sockets: the sockets of one simulated node, as its processes' system calls see them.
//
// The protocols are smoltcp's (stack/); what is Linux's is here: listening, ports, errors, descriptors that
// are closed before their connection is. No call waits: what cannot be done yet is -EAGAIN, and the caller
// tries again when something has changed. Results below zero are negative errno.
//
// The caller passes the time with each call, which never goes back. After a call, and after arrive() and
// advance(), it takes the packets (take_packet()) and asks for the time of the next advance().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "kernel/time.hpp"

namespace apenet::ip {

struct Endpoint {
  std::uint32_t address = 0;  // in the order of the host; 0: any
  std::uint16_t port = 0;     // 0: any

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

inline constexpr std::uint32_t loopback_address = 0x7f000001;

enum class SocketType : std::uint8_t { stream, datagram };
// As the arguments of shutdown().
enum class Direction : std::uint8_t { read, write, both };

// SO_*, TCP_* and so on that have an effect here.
enum class SocketOption : std::uint8_t {
  reuse_address,
  reuse_port,
  receive_bytes,
  send_bytes,
  no_delay,
  keep_alive,    // 0 or 1
  user_timeout,  // milliseconds; 0: none
  linger,        // seconds; -1: none
  error,         // only to read, which clears it
  is_listening,  // only to read
  unread_bytes,  // only to read: FIONREAD
  unsent_bytes,  // only to read: SIOCOUTQ
  type,          // only to read: SocketType
  receive_low,   // bytes
  keep_idle,     // seconds
  first_kept,    // from here on: numbers that change nothing here, which the process gives and gets back
};
inline constexpr std::size_t kept_options = 64;

struct Sending {
  std::span<const std::byte> data{};
  std::optional<Endpoint> to{};
  // What is wrong with the address, or the memory of the data: a negative errno, if nothing else is wrong
  // before.
  int address_error = 0;
  int data_error = 0;
  bool more_follows = false;  // as MSG_MORE
};

struct ReceiveMode {
  bool only_peeks = false;
  bool may_wait = false;
  bool has_taken = false;  // the call has bytes already
  // A peek into a stream finds nothing until there are as many bytes, or no more can come.
  std::int64_t peeks_least = 0;
};

struct SocketsConfig {
  std::uint32_t address = 0;
  std::uint8_t prefix = 8;
  std::int64_t mtu_bytes = 0;
  std::uint64_t seed = 0;
  std::int64_t receive_buffer_bytes = 0;
  std::int64_t send_buffer_bytes = 0;
};

class Sockets {
 public:
  using Number = std::uint32_t;

  virtual ~Sockets() = default;

  [[nodiscard]] virtual Number open(SocketType type) = 0;
  virtual int bind(Number socket, Endpoint local) = 0;
  virtual int listen(Number socket, int backlog, Time now) = 0;
  // address_error: what is wrong with the address, a negative errno, if nothing else is wrong before. Returns
  // 0 for a datagram socket; else -EINPROGRESS once it has begun, or -EALREADY.
  virtual int connect(Number socket, Endpoint remote, int address_error, Time now) = 0;
  // As connect() with AF_UNSPEC.
  virtual int disconnect(Number socket, Time now) = 0;
  // How connect() of a stream has ended: -EAGAIN until it is known.
  virtual int connected(Number socket) = 0;
  // The number of the connection's socket.
  virtual std::int64_t accept(Number socket, Endpoint& remote, Time now) = 0;
  // A stream takes as much as it has room for, and at least a byte.
  virtual std::int64_t send(Number socket, const Sending& sending, Time now) = 0;
  // For datagrams the result is the length that was sent, also if `data` has less room.
  virtual std::int64_t receive(Number socket, std::span<std::byte> data, ReceiveMode mode, Endpoint& from,
                               Time now) = 0;
  virtual int shutdown(Number socket, Direction direction, Time now) = 0;
  // The number is free; the connection goes on to its end.
  virtual void close(Number socket, Time now) = 0;
  virtual int set(Number socket, SocketOption option, std::int64_t value) = 0;
  virtual std::int64_t get(Number socket, SocketOption option) = 0;
  [[nodiscard]] virtual Endpoint local(Number socket) = 0;
  // -ENOTCONN, or 0.
  virtual int remote(Number socket, Endpoint& remote) = 0;
  // As the revents of poll() for all events; POLLNVAL if there is no such socket.
  [[nodiscard]] virtual short ready(Number socket) = 0;
  // For edge-triggered waits. The low half changes when something has come to read, the high half when
  // something can be written again, and both with all else that ready() tells of.
  [[nodiscard]] virtual std::uint64_t changes(Number socket) = 0;

  virtual void arrive(std::span<const std::byte> packet, Time now) = 0;
  virtual void advance(Time now) = 0;
  // When advance() is due; Time::never(): nothing is.
  [[nodiscard]] virtual Time next_time(Time now) = 0;
  // Valid until sent(); empty: there is none.
  [[nodiscard]] virtual std::span<const std::byte> packet_to_send() = 0;
  virtual void sent() = 0;
};

// Whether this build has the stack: it is compiled only where cargo is.
[[nodiscard]] bool has_stack();
// Requires has_stack().
[[nodiscard]] std::unique_ptr<Sockets> make_sockets(const SocketsConfig& config);

}  // namespace apenet::ip
