// Datagram sockets of StackSockets. The stack puts fragments together; which socket takes a datagram, what
// waits in it, and its errors are Linux's, and here.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "ip/packets.hpp"
#include "ip/stack_sockets.hpp"

namespace apenet::ip {
namespace {

constexpr std::size_t most_datagram_bytes = 65507;
constexpr std::size_t least_counted_bytes = 256;  // a datagram takes as much of a buffer

}  // namespace

void StackSockets::begin_datagrams(OneSocket& own) {
  if (own.stack == no_socket)
    own.stack = apenet_ip_udp_new(stack_.get(), static_cast<std::size_t>(own.options.receive_bytes),
                                  static_cast<std::size_t>(own.options.send_bytes));
  apenet_ip_udp_bind(stack_.get(), own.stack, to_stack(own.local));
}

// Linux, inet_dgram_connect() and __ip4_datagram_connect().
int StackSockets::connect_datagrams(OneSocket& own, Endpoint remote, int address_error) {
  if (const int error = take_port(own, own.local.address); error < 0) return error;
  if (address_error != 0) return address_error;
  if (remote.address == 0) remote.address = own_address_of(own);
  own.remote = remote;
  own.has_peer = true;
  if (own.local.address == 0) own.local.address = local_address_to(remote);
  begin_datagrams(own);
  return 0;
}

void StackSockets::disconnect_datagrams(OneSocket& own) {
  own.has_peer = false;
  own.remote = {};
  if (!own.binds_address) own.local.address = 0;
  if (own.stack == no_socket) return;
  if (own.binds_port) {
    begin_datagrams(own);
    return;
  }
  own.local.port = 0;
  own.holds_port = false;
  apenet_ip_socket_free(stack_.get(), std::exchange(own.stack, no_socket));
}

// Linux, udp_sendmsg().
std::int64_t StackSockets::send_datagram(OneSocket& own, const Sending& sending, Time now) {
  constexpr std::size_t longest = 0xffff;
  const std::span<const std::byte> data = sending.data;
  if (take_port(own, own.local.address) < 0) return -EAGAIN;
  if (data.size() > longest) return -EMSGSIZE;
  if (sending.address_error != 0) return sending.address_error;
  if (sending.to && sending.to->port == 0) return -EINVAL;
  if (!sending.to && !own.has_peer) return -EDESTADDRREQ;
  Endpoint target = sending.to.value_or(own.remote);
  if (target.address == 0) target.address = own_address_of(own);
  if (data.size() > most_datagram_bytes) return -EMSGSIZE;
  if (own.error != 0) return -std::exchange(own.error, 0);
  if (own.writes_no_more) return -EPIPE;
  if (sending.data_error != 0) return sending.data_error;
  Endpoint source = own.local;
  if (source.address == 0) source.address = local_address_to(target);
  if (target.port == 0) {  // which nobody has
    own.error = ECONNREFUSED;
    return static_cast<std::int64_t>(data.size());
  }
  switch (apenet_ip_udp_send(stack_.get(), own.stack, to_stack(source), to_stack(target), raw(data),
                             data.size())) {
    case -1:
      return -EAGAIN;
    case -2:
      return -EMSGSIZE;
    default:
      break;
  }
  ++own.write_changes;  // Linux, sock_wfree()
  poll(now);
  return static_cast<std::int64_t>(data.size());
}

// Linux, __skb_recv_udp().
std::int64_t StackSockets::receive_datagram(OneSocket& own, std::span<std::byte> data, ReceiveMode mode,
                                            Endpoint& from) {
  if (own.error != 0) return -std::exchange(own.error, 0);
  if (own.queue.empty()) return own.reads_no_more && mode.may_wait ? 0 : -EAGAIN;
  const Datagram& first = own.queue.front();
  const std::size_t bytes = first.data.size();
  std::copy_n(first.data.begin(), std::min(bytes, data.size()), data.begin());
  from = first.from;
  if (!mode.only_peeks) {
    own.queued_bytes -= bytes;
    own.queue.pop_front();
  }
  return static_cast<std::int64_t>(bytes);
}

void StackSockets::take_datagrams() {
  table_.for_each([&](OneSocket& own) {
    if (own.type != SocketType::datagram || own.stack == no_socket) return;
    for (;;) {
      const std::int64_t bytes = apenet_ip_udp_next_bytes(stack_.get(), own.stack);
      if (bytes < 0) return;
      Datagram datagram{.from = {}, .data = std::vector<std::byte>(static_cast<std::size_t>(bytes))};
      std::uint8_t none = 0;
      std::uint8_t* const to = bytes == 0 ? &none : raw(std::span(datagram.data));
      apenet_ip_endpoint source{};
      apenet_ip_endpoint target{};
      apenet_ip_udp_receive(stack_.get(), own.stack, to, datagram.data.size(), &source, &target);
      datagram.from = from_stack(source);
      dispatch(std::move(datagram), {target.address, own.local.port});
    }
  });
}

void StackSockets::dispatch(Datagram datagram, Endpoint target) {
  OneSocket* const receiver = table_.receiver_of(datagram.from, target);
  if (receiver == nullptr) {
    own_packets_.push_back(port_unreachable(datagram.from, target, datagram.data.size()));
    return;
  }
  const auto capacity = static_cast<std::size_t>(receiver->options.receive_bytes);
  if (receiver->queued_bytes + datagram.data.size() > capacity) return;
  if (receiver->queue.size() >= capacity / least_counted_bytes) return;
  receiver->queued_bytes += datagram.data.size();
  receiver->queue.push_back(std::move(datagram));
  ++receiver->read_changes;
}

// Linux, __udp4_lib_err(): only a socket with a peer is told.
void StackSockets::note_unreachable(std::span<const std::byte> packet) {
  const std::optional<UnreachablePort> unreachable = unreachable_port(packet);
  if (!unreachable) return;
  OneSocket* const own = table_.receiver_of(unreachable->remote, unreachable->local);
  if (own == nullptr || !own->has_peer) return;
  own->error = ECONNREFUSED;
  own->note_change();
}

}  // namespace apenet::ip
