// Sockets of two nodes with a wire between them, without a machine.
#include "ip/sockets.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "ip/packets.hpp"

namespace apenet::ip {
namespace {

constexpr std::uint32_t first_address = 0x0a000001;
constexpr Time latency = Time::from_ps(10'000'000);

// Two nodes. Packets take `latency`, unless they are lost.
class Wire {
 public:
  Wire() {
    for (std::uint32_t node = 0; node < 2; ++node) {
      nodes_[node] = make_sockets({.address = first_address + node,
                                   .mtu_bytes = 1500,
                                   .seed = 1,
                                   .receive_buffer_bytes = 65536,
                                   .send_buffer_bytes = 65536});
    }
  }
  Sockets& node(std::size_t number) { return *nodes_[number]; }
  [[nodiscard]] Time now() const { return now_; }
  // Packets for which it is true are lost.
  void lose(std::function<bool(std::span<const std::byte>)> is_lost) { is_lost_ = std::move(is_lost); }
  [[nodiscard]] const std::vector<std::vector<std::byte>>& sent() const { return sent_; }

  // Runs until done(), or until nothing is due.
  bool run_until(const std::function<bool()>& done) {
    for (;;) {
      collect();
      if (done()) return true;
      Time next = on_wire_.empty() ? Time::never() : on_wire_.front().arrives;
      for (const auto& own : nodes_) next = std::min(next, own->next_time(now_));
      if (next == Time::never()) return false;
      now_ = std::max(now_, next);
      if (!on_wire_.empty() && on_wire_.front().arrives <= now_) {
        const Packet packet = std::move(on_wire_.front());
        on_wire_.pop_front();
        nodes_[packet.to]->arrive(packet.bytes, now_);
      } else {
        for (const auto& own : nodes_) own->advance(now_);
      }
    }
  }

 private:
  struct Packet {
    Time arrives;
    std::size_t to = 0;
    std::vector<std::byte> bytes{};
  };
  void collect() {
    for (const auto& own : nodes_) {
      for (auto packet = own->packet_to_send(); !packet.empty(); packet = own->packet_to_send()) {
        sent_.emplace_back(packet.begin(), packet.end());
        const std::size_t to = target_of(packet) - first_address;
        if (!is_lost_ || !is_lost_(packet)) on_wire_.push_back({now_ + latency, to, sent_.back()});
        own->sent();
      }
    }
  }

  std::array<std::unique_ptr<Sockets>, 2> nodes_;
  Time now_;
  std::deque<Packet> on_wire_;
  std::vector<std::vector<std::byte>> sent_;
  std::function<bool(std::span<const std::byte>)> is_lost_;
};

constexpr Endpoint server_endpoint{first_address, 80};

struct Connection {
  Sockets::Number listener = 0;
  Sockets::Number client = 0;
  Sockets::Number server = 0;
};

// From node 1 to node 0.
Connection connect(Wire& wire) {
  Connection made;
  made.listener = wire.node(0).open(SocketType::stream);
  EXPECT_EQ(wire.node(0).bind(made.listener, {0, 80}), 0);
  EXPECT_EQ(wire.node(0).listen(made.listener, 4, wire.now()), 0);
  made.client = wire.node(1).open(SocketType::stream);
  EXPECT_EQ(wire.node(1).connect(made.client, server_endpoint, 0, wire.now()), -EINPROGRESS);
  Endpoint peer;
  std::int64_t accepted = -EAGAIN;
  EXPECT_TRUE(wire.run_until([&] {
    if (accepted < 0) accepted = wire.node(0).accept(made.listener, peer, wire.now());
    return accepted >= 0 && wire.node(1).connected(made.client) == 0;
  }));
  EXPECT_EQ(peer.address, first_address + 1);
  made.server = static_cast<Sockets::Number>(accepted);
  return made;
}

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 >> (i % 3));
  return data;
}

// Sends from the client and receives at the server until all is there.
std::vector<std::byte> transfer(Wire& wire, const Connection& on, const std::vector<std::byte>& data) {
  std::vector<std::byte> received;
  std::size_t sent = 0;
  wire.run_until([&] {
    const auto left = std::span(data).subspan(sent);
    if (!left.empty()) {
      const std::int64_t more = wire.node(1).send(on.client, {.data = left}, wire.now());
      if (more > 0) sent += static_cast<std::size_t>(more);
    }
    std::array<std::byte, 4096> buffer{};
    Endpoint from;
    for (std::int64_t more = 1; more > 0;) {
      more = wire.node(0).receive(on.server, buffer, {}, from, wire.now());
      if (more > 0) received.insert(received.end(), buffer.begin(), buffer.begin() + more);
    }
    return received.size() == data.size();
  });
  return received;
}

TEST(Sockets, CarryAStreamOnceAndInOrder) {
  Wire wire;
  const Connection on = connect(wire);
  const std::vector<std::byte> data = numbered(300'000);
  EXPECT_EQ(transfer(wire, on, data), data);
}

// Segments of which the last is not full: it does not wait for the others, whose acknowledgement is delayed.
TEST(Sockets, SendTheEndOfALongWriteAtOnce) {
  Wire wire;
  const Connection on = connect(wire);
  transfer(wire, on, numbered(std::size_t{1460} * 34));
  const Time before = wire.now();
  transfer(wire, on, numbered(1460 * 3 + 100));
  EXPECT_LT(wire.now() - before, Time::from_ps(1'000'000'000));
}

TEST(Sockets, RepeatInBytes) {
  const auto packets = [] {
    Wire wire;
    const Connection on = connect(wire);
    transfer(wire, on, numbered(100'000));
    return wire.sent();
  };
  EXPECT_EQ(packets(), packets());
}

TEST(Sockets, RecoverWhatIsLost) {
  Wire wire;
  const Connection on = connect(wire);
  int count = 0;
  wire.lose(
      [&count](std::span<const std::byte> packet) { return packet.size() > 1000 && ++count % 20 == 7; });
  const std::vector<std::byte> data = numbered(300'000);
  EXPECT_EQ(transfer(wire, on, data), data);
  EXPECT_GT(count, 200);
}

TEST(Sockets, RefuseAPortAtWhichNobodyListens) {
  Wire wire;
  Sockets& own = wire.node(1);
  const auto socket = own.open(SocketType::stream);
  EXPECT_EQ(own.connect(socket, {first_address, 81}, 0, wire.now()), -EINPROGRESS);
  int result = -EAGAIN;
  EXPECT_TRUE(wire.run_until([&] { return (result = own.connected(socket)) != -EAGAIN; }));
  EXPECT_EQ(result, -ECONNREFUSED);
  EXPECT_EQ(own.connected(socket), 0) << "an error is told once";
  EXPECT_EQ(own.connect(socket, server_endpoint, 0, wire.now()), -EINPROGRESS)
      << "as in Linux, it may try again";
}

TEST(Sockets, TellTheEndOfAStreamAndAReset) {
  Wire wire;
  const Connection on = connect(wire);
  std::array<std::byte, 16> buffer{};
  Endpoint from;
  EXPECT_EQ(wire.node(0).receive(on.server, buffer, {}, from, wire.now()), -EAGAIN);
  EXPECT_EQ(wire.node(0).ready(on.server), POLLOUT | POLLWRNORM);
  EXPECT_EQ(wire.node(1).shutdown(on.client, Direction::write, wire.now()), 0);
  EXPECT_EQ(wire.node(1).send(on.client, {.data = buffer}, wire.now()), -EPIPE);
  EXPECT_TRUE(wire.run_until([&] { return (wire.node(0).ready(on.server) & POLLIN) != 0; }));
  EXPECT_EQ(wire.node(0).receive(on.server, buffer, {}, from, wire.now()), 0);
  EXPECT_EQ(wire.node(0).send(on.server, {.data = buffer}, wire.now()), 16);
  // What was not read when a socket is closed resets the connection.
  EXPECT_TRUE(wire.run_until([&] { return (wire.node(1).ready(on.client) & POLLIN) != 0; }));
  wire.node(1).close(on.client, wire.now());
  EXPECT_TRUE(wire.run_until([&] { return (wire.node(0).ready(on.server) & POLLERR) != 0; }));
  // Linux, tcp_reset(): EPIPE, because the client had ended its half.
  EXPECT_EQ(wire.node(0).send(on.server, {.data = buffer}, wire.now()), -EPIPE);
}

TEST(Sockets, HoldNoMoreConnectionsThanTheBacklog) {
  Wire wire;
  Sockets& server = wire.node(0);
  const auto listener = server.open(SocketType::stream);
  EXPECT_EQ(server.bind(listener, {0, 80}), 0);
  EXPECT_EQ(server.listen(listener, 1, wire.now()), 0);
  std::vector<Sockets::Number> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(wire.node(1).open(SocketType::stream));
    EXPECT_EQ(wire.node(1).connect(clients.back(), server_endpoint, 0, wire.now()), -EINPROGRESS);
  }
  const Time limit = wire.now() + Time::from_ps(500'000'000'000);
  wire.run_until([&] { return wire.now() > limit; });
  const auto is_connected = [&](Sockets::Number one) { return wire.node(1).connected(one) == 0; };
  EXPECT_EQ(std::count_if(clients.begin(), clients.end(), is_connected), 2) << "one more, as in Linux";
  Endpoint peer;
  EXPECT_GE(server.accept(listener, peer, wire.now()), 0);
  EXPECT_GE(server.accept(listener, peer, wire.now()), 0);
  EXPECT_TRUE(wire.run_until([&] { return std::all_of(clients.begin(), clients.end(), is_connected); }))
      << "the others try again, by their timers";
}

TEST(Sockets, CarryDatagramsOfAnyLength) {
  Wire wire;
  const auto server = wire.node(0).open(SocketType::datagram);
  EXPECT_EQ(wire.node(0).bind(server, server_endpoint), 0);
  const auto client = wire.node(1).open(SocketType::datagram);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1472}, std::size_t{1473}, std::size_t{60'000}}) {
    const std::vector<std::byte> data = numbered(bytes);
    EXPECT_EQ(wire.node(1).send(client, {.data = data, .to = server_endpoint}, wire.now()),
              static_cast<std::int64_t>(bytes));
    EXPECT_TRUE(wire.run_until([&] { return (wire.node(0).ready(server) & POLLIN) != 0; })) << bytes;
    std::vector<std::byte> buffer(65'536);
    Endpoint from;
    EXPECT_EQ(wire.node(0).receive(server, buffer, {}, from, wire.now()), static_cast<std::int64_t>(bytes));
    buffer.resize(bytes);
    EXPECT_EQ(buffer, data);
    EXPECT_EQ(from.address, first_address + 1);
  }
  EXPECT_EQ(wire.node(1).send(client, {.data = numbered(65'508), .to = server_endpoint}, wire.now()),
            -EMSGSIZE);
}

TEST(Sockets, GiveAPortToOneSocket) {
  Wire wire;
  Sockets& own = wire.node(0);
  const auto first = own.open(SocketType::stream);
  const auto second = own.open(SocketType::stream);
  EXPECT_EQ(own.bind(first, {0, 80}), 0);
  EXPECT_EQ(own.bind(first, {0, 81}), -EINVAL);
  EXPECT_EQ(own.bind(second, {first_address, 80}), -EADDRINUSE);
  EXPECT_EQ(own.bind(second, {first_address + 1, 80}), -EADDRNOTAVAIL);
  EXPECT_EQ(own.bind(own.open(SocketType::datagram), {0, 80}), 0) << "a port of UDP is another one";
  own.close(first, wire.now());
  EXPECT_EQ(own.bind(second, {0, 80}), 0);
  EXPECT_EQ(own.bind(99, {0, 82}), -EBADF);
}

TEST(Packets, SayWhereTheyGoAndWhatTheyOpen) {
  Wire wire;
  connect(wire);
  ASSERT_GE(wire.sent().size(), 3U);
  EXPECT_EQ(target_of(wire.sent()[0]), first_address);
  EXPECT_EQ(opened_port(wire.sent()[0]), 80);
  EXPECT_EQ(opened_port(wire.sent()[1]), std::nullopt) << "the answer of the handshake";
  EXPECT_EQ(target_of({}), 0U);
  EXPECT_FALSE(is_tcp({}));
}

}  // namespace
}  // namespace apenet::ip
