// The resequencer on a network that delivers packets in any order that the test chooses.
#include "network/routing/resequencer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kernel/random.hpp"

namespace apenet::testing {
namespace {

// Two nodes. An injected packet waits until the test delivers it.
class Shuffler final : public Network {
 public:
  [[nodiscard]] std::uint32_t node_count() const override { return 2; }
  void attach(NodeId node, NetworkClient& client) override { clients_[node] = &client; }
  [[nodiscard]] std::int64_t injection_room(NodeId, std::uint16_t) const override { return 1 << 20; }
  void await_injection_room(NodeId node, std::uint16_t channel) override {
    clients_[node]->injection_freed(channel);
  }
  std::int64_t inject(const Packet& packet, Time) override {
    packets.push_back(packet);
    return injection_room(packet.source, packet.channel);
  }
  void consumed(NodeId, const Packet& packet) override { consumed_messages.push_back(packet.message); }
  [[nodiscard]] std::uint32_t link_count() const override { return 0; }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t) const override { return {}; }

  void deliver(std::size_t index) {
    const Packet packet = packets[index];
    packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(index));
    clients_[packet.destination]->packet_arrived(packet, Time::zero());
  }

  std::vector<Packet> packets;
  std::vector<std::uint64_t> consumed_messages;

 private:
  NetworkClient* clients_[2] = {};
};

class Card final : public NetworkClient {
 public:
  void packet_arrived(const Packet& packet, Time) override { arrived.push_back(packet); }
  void injection_freed(std::uint16_t channel) override { freed = channel; }
  std::vector<Packet> arrived;
  int freed = -1;
};

class ResequencerTest : public ::testing::Test {
 protected:
  ResequencerTest() {
    auto inner = std::make_unique<Shuffler>();
    inner_ = inner.get();
    network_ = std::make_unique<Resequencer>(simulation_, std::move(inner));
    network_->attach(0, cards_[0]);
    network_->attach(1, cards_[1]);
  }

  void inject(NodeId source, std::uint16_t channel, std::uint64_t message) {
    Packet packet;
    packet.source = source;
    packet.destination = 1 - source;
    packet.channel = channel;
    packet.message = message;
    packet.wire_bytes = 10;
    network_->inject(packet, Time::zero());
  }

  Simulation simulation_;
  Shuffler* inner_ = nullptr;
  std::unique_ptr<Resequencer> network_;
  Card cards_[2];
};

TEST_F(ResequencerTest, HoldsEarlyPacketsOutsideTheEjectionBuffer) {
  for (std::uint64_t message = 0; message < 3; ++message) inject(0, 0, message);
  inner_->deliver(2);
  inner_->deliver(1);
  EXPECT_TRUE(cards_[1].arrived.empty());
  EXPECT_EQ(inner_->consumed_messages, (std::vector<std::uint64_t>{2, 1}));
  inner_->deliver(0);
  ASSERT_EQ(cards_[1].arrived.size(), 3U);
  EXPECT_EQ(network_->reorder_use().held_packets, 2U);
  EXPECT_EQ(network_->reorder_use().peak_bytes, 20);
  // The card has consumed all three packets, but only the one that was never held frees ejection buffer space
  // now.
  for (const Packet& packet : cards_[1].arrived) network_->consumed(1, packet);
  EXPECT_EQ(inner_->consumed_messages, (std::vector<std::uint64_t>{2, 1, 0}));
}

TEST_F(ResequencerTest, ForwardsWaitsForInjectionRoom) {
  network_->await_injection_room(1, 2);
  EXPECT_EQ(cards_[1].freed, 2);
  EXPECT_EQ(cards_[0].freed, -1);
}

TEST_F(ResequencerTest, ChannelsDoNotWaitForEachOther) {
  inject(0, 0, 0);
  inject(0, 1, 1);
  inject(1, 0, 2);
  inner_->deliver(1);
  inner_->deliver(1);
  EXPECT_EQ(cards_[1].arrived.size(), 1U);
  EXPECT_EQ(cards_[0].arrived.size(), 1U);
  EXPECT_EQ(network_->reorder_use().held_packets, 0U);
}

TEST_F(ResequencerTest, RestoresOrderFromAnyOrder) {
  RandomStream random(4, 0);
  std::vector<std::uint64_t> next(2 * 3);
  std::uint64_t delivered = 0;
  const auto check = [&](NodeId node) {
    for (const Packet& packet : cards_[node].arrived) {
      EXPECT_EQ(packet.message, next[node * 3 + packet.channel]++);
      network_->consumed(node, packet);
      ++delivered;
    }
    cards_[node].arrived.clear();
  };
  std::vector<std::uint64_t> sent(2 * 3);
  for (int i = 0; i < 3000; ++i) {
    const auto source = static_cast<NodeId>(random.below(2));
    const auto channel = static_cast<std::uint16_t>(random.below(3));
    inject(source, channel, sent[(1 - source) * 3 + channel]++);
    while (!inner_->packets.empty() && random.below(2) == 0)
      inner_->deliver(random.below(inner_->packets.size()));
    check(0);
    check(1);
  }
  while (!inner_->packets.empty()) inner_->deliver(random.below(inner_->packets.size()));
  check(0);
  check(1);
  EXPECT_EQ(delivered, 3000U);
  EXPECT_EQ(inner_->consumed_messages.size(), 3000U);
  EXPECT_GT(network_->reorder_use().peak_bytes, 0);
}

}  // namespace
}  // namespace apenet::testing
