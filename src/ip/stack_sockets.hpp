// StackSockets: Sockets over the stack (stack/stack.h). Streams and datagrams have a file each.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ip/socket_table.hpp"
#include "ip/sockets.hpp"
#include "ip/stack/stack.h"

namespace apenet::ip {

class StackSockets final : public Sockets {
 public:
  explicit StackSockets(const SocketsConfig& config);

  Number open(SocketType type) override;
  int bind(Number socket, Endpoint local) override;
  int listen(Number socket, int backlog, Time now) override;
  int connect(Number socket, Endpoint remote, int address_error, Time now) override;
  int disconnect(Number socket, Time now) override;
  int connected(Number socket) override;
  std::int64_t accept(Number socket, Endpoint& remote, Time now) override;
  std::int64_t send(Number socket, const Sending& sending, Time now) override;
  std::int64_t receive(Number socket, std::span<std::byte> data, ReceiveMode mode, Endpoint& from,
                       Time now) override;
  int shutdown(Number socket, Direction direction, Time now) override;
  void close(Number socket, Time now) override;
  int set(Number socket, SocketOption option, std::int64_t value) override;
  std::int64_t get(Number socket, SocketOption option) override;
  Endpoint local(Number socket) override;
  int remote(Number socket, Endpoint& remote) override;
  short ready(Number socket) override;
  std::uint64_t changes(Number socket) override;
  void arrive(std::span<const std::byte> packet, Time now) override;
  void advance(Time now) override { poll(now); }
  Time next_time(Time now) override;
  std::span<const std::byte> packet_to_send() override;
  void sent() override;

 private:
  [[nodiscard]] bool is_own_address(std::uint32_t address) const;
  // The target of what goes to no address: the socket's own, as in Linux.
  [[nodiscard]] static std::uint32_t own_address_of(const OneSocket& own);
  // The source of what goes to this endpoint from a socket that is bound to no address.
  [[nodiscard]] std::uint32_t local_address_to(Endpoint remote) const;
  void remove(Number number);
  void poll(Time now);
  // Looks at what the stack has done.
  void review(Time now);
  // Gives the socket a port if it has none. The address becomes its name.
  int take_port(OneSocket& own, std::uint32_t address);

  // Datagrams.
  int connect_datagrams(OneSocket& own, Endpoint remote, int address_error);
  void disconnect_datagrams(OneSocket& own);
  void begin_datagrams(OneSocket& own);
  std::int64_t send_datagram(OneSocket& own, const Sending& sending, Time now);
  static std::int64_t receive_datagram(OneSocket& own, std::span<std::byte> data, ReceiveMode mode,
                                       Endpoint& from);
  void take_datagrams();
  void dispatch(Datagram datagram, Endpoint target);
  // The peer's kernel says that nobody has the port.
  void note_unreachable(std::span<const std::byte> packet);

  // Streams.
  struct StackMode {
    bool holds_small = false;  // as Nagle's algorithm does
    bool acks_at_once = false;
  };
  void set_options(std::uint32_t stack, const SocketOptions& options, StackMode mode);
  void apply(const OneSocket& own, bool holds_small);
  std::uint32_t new_stream(const SocketOptions& options);
  [[nodiscard]] std::uint64_t segment_bytes() const;
  void note_written(OneSocket& own, std::uint64_t bytes, bool more_follows);
  int begin_connection(OneSocket& own, Endpoint remote, Time now);
  int end_of_connecting(OneSocket& own);
  std::int64_t receive_stream(OneSocket& own, std::span<std::byte> data, ReceiveMode mode, Time now);
  int shutdown_stream(OneSocket& own, Direction direction, Time now);
  // tcp_disconnect(): the socket is as a new one, but for the port that bind() has named.
  void disconnect_stream(OneSocket& own);
  void stop_listening(OneSocket& own);
  void release_port(OneSocket& own);
  void reset(OneSocket& own);
  void inspect(OneSocket& own);
  void review_stream(Number number, OneSocket& own, Time now);
  [[nodiscard]] static Time time_limit(const OneSocket& own);
  void give_up(OneSocket& own);
  static void note_end(OneSocket& own, apenet_ip_state before);
  [[nodiscard]] bool is_waiting_accept(Number number) const;
  [[nodiscard]] static bool has_room(const OneSocket& own);
  bool review_listener(Number number);
  void accept_embryo(Number listener, std::uint32_t embryo, const apenet_ip_tcp& seen);
  // A SYN for a listener whose queue is full is lost, as in Linux; the stack would refuse it.
  [[nodiscard]] bool is_dropped(std::span<const std::byte> packet) const;

  SocketsConfig config_;
  std::unique_ptr<apenet_ip_stack, void (*)(apenet_ip_stack*)> stack_;
  SocketTable table_;
  std::vector<std::uint32_t> doomed_;  // the stack's sockets whose reset is to be sent before they end
  std::deque<std::vector<std::byte>> own_packets_;  // that the stack does not make
  std::uint64_t next_bound_ = 0;
  bool has_to_send_ = false;  // since the last review
};

// The forms of the stack.
inline apenet_ip_endpoint to_stack(Endpoint endpoint) {
  return {.address = endpoint.address, .port = endpoint.port};
}
inline Endpoint from_stack(apenet_ip_endpoint endpoint) {
  return {.address = endpoint.address, .port = endpoint.port};
}
inline const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
inline std::uint8_t* raw(std::span<std::byte> bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes.data());
}

}  // namespace apenet::ip
