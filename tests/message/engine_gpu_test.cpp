// Messages and remote access whose buffers lie in the memory of GPUs: who reads and writes it, and what it
// costs.
#include <gtest/gtest.h>

#include "message/toy_transport.hpp"

namespace apenet::test {
namespace {

using message::AccessCall;
using message::Buffer;
using message::Request;
using message::RequestVerb;
using message::Segment;
using message::SendCall;

constexpr std::int64_t latency_us = 10;

// A byte takes a microsecond to copy between GPU and host, and a nanosecond within the host.
message::SoftwareCosts costs_with_gpu() {
  message::SoftwareCosts costs;
  costs.eager_limit_bytes = 256;
  costs.copy_bytes_per_second = 1'000'000'000;
  costs.gpu_copy_latency = Time::from_ns(1000 * latency_us);
  costs.gpu_copy_bytes_per_second = 1'000'000;
  return costs;
}

message::CardLimits card_that(bool reaches_gpus) {
  message::CardLimits card;
  card.reaches_gpus = reaches_gpus ? 1 : 0;
  return card;
}

enum class In : std::uint8_t { host, gpu };

Buffer buffer_in(In where, const Bytes& bytes) {
  Buffer buffer = buffer_of(bytes);
  if (where == In::gpu) buffer.gpu_pieces = 1;
  return buffer;
}

Time gpu_copy(std::size_t bytes) {
  return Time::from_ns(1000 * (latency_us + static_cast<std::int64_t>(bytes)));
}
Time host_copy(std::size_t bytes) {
  return Time::from_ns(static_cast<std::int64_t>(bytes));
}

// Rank 0 sends to rank 1.
struct GpuNetwork {
  explicit GpuNetwork(bool reaches_gpus) : GpuNetwork(card_that(reaches_gpus)) {}
  explicit GpuNetwork(const message::CardLimits& card) : network(2, costs_with_gpu(), card) {
    network.on_send = [this](std::uint32_t, const Request& request) { sends.push_back(request); };
    network.on_put = [this](std::uint32_t, const Request& request) { puts.push_back(request); };
  }
  void message(In from, In to, std::size_t length, bool inject = false) {
    const Bytes sent = bytes_from(1, length);
    Bytes source = sent;
    Bytes got(length);
    message::ReceiveCall receive;
    receive.buffer = buffer_in(to, got);
    network[1].engine.receive(network[1].inbox, receive);
    SendCall send;
    send.buffer = buffer_in(from, source);
    send.target = 1;
    send.inject = inject;
    left_at_once = network[0].engine.send(network[0].inbox, send);
    if (inject) std::fill(source.begin(), source.end(), std::byte{0});
    network.run();
    EXPECT_EQ(got, sent);
  }
  [[nodiscard]] Time charged(std::uint32_t rank) { return network[rank].transport.charged; }
  [[nodiscard]] int memory_of_put(std::size_t which) const {
    return puts[which].flags & (message::local_gpu | message::remote_gpu);
  }

  ToyNetwork network;
  std::vector<Request> sends;
  std::vector<Request> puts;
  bool left_at_once = false;
};

TEST(GpuMessages, TheCardMovesThemWithoutACopyOfTheCpu) {
  for (const std::size_t length : {1U, 256U, 5000U}) {
    GpuNetwork peers(true);
    peers.message(In::gpu, In::gpu, length);
    EXPECT_FALSE(peers.left_at_once) << "an eager message would be copied";
    ASSERT_EQ(peers.puts.size(), 1U);
    EXPECT_EQ(peers.memory_of_put(0), message::local_gpu | message::remote_gpu);
    EXPECT_EQ(peers.charged(0), Time::zero());
    EXPECT_EQ(peers.charged(1), Time::zero());
  }
}

TEST(GpuMessages, EachSideHasItsOwnMemory) {
  GpuNetwork from_host(true);
  from_host.message(In::host, In::gpu, 5000);
  EXPECT_EQ(from_host.memory_of_put(0), message::remote_gpu);
  GpuNetwork to_host(true);
  to_host.message(In::gpu, In::host, 100);
  EXPECT_EQ(to_host.memory_of_put(0), message::local_gpu);
}

TEST(GpuMessages, AnEmptyOneTouchesNoMemory) {
  GpuNetwork peers(true);
  peers.message(In::gpu, In::gpu, 0);
  EXPECT_TRUE(peers.left_at_once);
  EXPECT_EQ(peers.charged(0) + peers.charged(1), Time::zero());
}

TEST(GpuMessages, TheReceiverCopiesAnEagerOneFromTheHost) {
  GpuNetwork peers(true);
  peers.message(In::host, In::gpu, 200);
  EXPECT_TRUE(peers.left_at_once);
  EXPECT_EQ(peers.charged(0), host_copy(200));
  EXPECT_EQ(peers.charged(1), gpu_copy(200));
}

TEST(GpuMessages, AnInjectedOneLeavesTheGpuWithoutFurtherHelpOfItsSender) {
  message::CardLimits writes_by_cpu = card_that(true);
  writes_by_cpu.max_pio_bytes = 1000;
  for (const message::CardLimits& card : {card_that(true), writes_by_cpu}) {
    GpuNetwork peers(card);
    peers.message(In::gpu, In::gpu, 200, true);
    EXPECT_TRUE(peers.left_at_once);
    EXPECT_EQ(peers.sends.size(), 1U);
    EXPECT_EQ(peers.sends[0].flags, message::local_gpu);
    EXPECT_EQ(peers.charged(0), Time::zero());
    EXPECT_EQ(peers.charged(1), gpu_copy(200));
  }
}

TEST(GpuMessages, ALongInjectedOneIsKeptForItsRendezvous) {
  GpuNetwork peers(true);
  peers.message(In::gpu, In::gpu, 300, true);
  EXPECT_FALSE(peers.left_at_once);
  ASSERT_EQ(peers.puts.size(), 1U);
  EXPECT_EQ(peers.memory_of_put(0), message::local_gpu | message::remote_gpu);
}

TEST(GpuMessages, WithoutPeerToPeerBothSidesCopy) {
  for (const std::size_t length : {200U, 5000U}) {
    GpuNetwork peers(false);
    peers.message(In::gpu, In::gpu, length);
    EXPECT_EQ(peers.left_at_once, length == 200U);
    EXPECT_EQ(peers.charged(0), gpu_copy(length));
    EXPECT_EQ(peers.charged(1), gpu_copy(length));
    for (std::size_t i = 0; i < peers.puts.size(); ++i) EXPECT_EQ(peers.memory_of_put(i), 0);
  }
}

TEST(GpuMessages, OnlyThePiecesInTheGpuAreCopiedThere) {
  GpuNetwork peers(false);
  const Bytes parts = bytes_from(1, 150);
  Bytes got(150);
  message::ReceiveCall receive;
  receive.buffer = buffer_of(got);
  peers.network[1].engine.receive(peers.network[1].inbox, receive);
  SendCall send;
  send.target = 1;
  send.buffer.count = 2;
  send.buffer.length = 150;
  send.buffer.pieces[0] = {message::address_of(parts.data()), 50};
  send.buffer.pieces[1] = {message::address_of(parts.data() + 50), 100};
  send.buffer.gpu_pieces = 2;
  EXPECT_TRUE(peers.network[0].engine.send(peers.network[0].inbox, send));
  peers.network.run();
  EXPECT_EQ(got, parts);
  EXPECT_EQ(peers.charged(0), gpu_copy(100) + host_copy(50));
}

TEST(GpuBuffers, PartsKnowWhereTheyLie) {
  Buffer buffer;
  buffer.count = 3;
  buffer.length = 30;
  for (std::uint64_t i = 0; i < 3; ++i) buffer.pieces[i] = {1000 * (i + 1), 10};
  buffer.gpu_pieces = 0b101;
  EXPECT_EQ(buffer.gpu_bytes(), 20U);
  EXPECT_EQ(part_of(buffer, 5, 10).gpu_bytes(), 5U);
  EXPECT_EQ(part_of(buffer, 12, 5).gpu_bytes(), 0U);
  EXPECT_EQ(part_of(buffer, 15, 15).gpu_pieces, 0b10U);
}

TEST(GpuAccess, TheCardReadsAndWritesTheOriginsGpu) {
  for (const bool is_write : {true, false}) {
    for (const bool reaches_gpus : {true, false}) {
      GpuNetwork peers(reaches_gpus);
      Bytes remote = bytes_from(2, 64);
      Bytes local = bytes_from(1, 64);
      peers.network[1].transport.regions[5] = {message::address_of(remote.data()), remote.size()};
      const Segment where{message::address_of(remote.data()), remote.size()};
      AccessCall call;
      call.buffer = buffer_in(In::gpu, local);
      call.remote = {&where, 1};
      call.keys[0] = 5;
      call.target = 1;
      auto& origin = peers.network[0];
      is_write ? origin.engine.write(origin.inbox, call) : origin.engine.read(origin.inbox, call);
      peers.network.run();
      EXPECT_EQ(local, remote);
      ASSERT_EQ(peers.puts.size(), 1U);
      EXPECT_EQ(peers.memory_of_put(0), reaches_gpus ? message::local_gpu : 0);
      EXPECT_EQ(peers.charged(0), reaches_gpus ? Time::zero() : gpu_copy(64));
      EXPECT_EQ(peers.charged(1), Time::zero());
    }
  }
}

TEST(GpuWire, AClearNamesTheMemoryOfItsSegmentsOnly) {
  message::ClearBody body;
  body.segment_count = 2;
  body.gpu_segments = 0b11;
  const std::span bytes{reinterpret_cast<const std::byte*>(&body), message::clear_bytes(2)};
  EXPECT_EQ(message::decode_clear(bytes).gpu_segments, 0b11U);
  body.gpu_segments = 0b100;
  EXPECT_THROW((void)message::decode_clear(bytes), message::MalformedMessage);
}

}  // namespace
}  // namespace apenet::test
