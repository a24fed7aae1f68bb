// The contract of the message engine with its transport: remote access, and what each step costs.
#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "message/toy_transport.hpp"

namespace apenet::test {
namespace {

using message::AccessCall;
using message::ReceiveCall;
using message::Segment;
using message::SendCall;
using What = Report::What;

// Memory of rank 1 that rank 0 accesses: key 5 names it.
class RemoteAccess : public testing::Test {
 protected:
  RemoteAccess() : remote(64), local(bytes_from(1, 64)) {
    network[1].transport.regions[5] = {message::address_of(remote.data()), remote.size()};
  }
  [[nodiscard]] AccessCall call_of(const Segment& segment, std::uint64_t key = 5) {
    where = segment;
    AccessCall call;
    call.buffer = message::one_piece(message::address_of(local.data()), segment.length);
    call.remote = {&where, 1};
    call.keys[0] = key;
    call.target = 1;
    call.owner.context = &contexts[0];
    return call;
  }
  [[nodiscard]] Segment remote_part(std::uint64_t offset, std::uint64_t length) const {
    return {message::address_of(remote.data()) + offset, length};
  }
  void write(const AccessCall& call) { network[0].engine.write(network[0].inbox, call); }
  void read(const AccessCall& call) { network[0].engine.read(network[0].inbox, call); }
  std::vector<Report>& reported(std::uint32_t rank) { return network[rank].transport.reported; }

  ToyNetwork network{2};
  Contexts contexts{};
  Bytes remote;
  Bytes local;
  Segment where;
};

TEST_F(RemoteAccess, AWriteNeedsNoHelpOfTheTarget) {
  for (const bool is_delivered : {false, true}) {
    AccessCall call = call_of(remote_part(8, 16));
    call.delivered = is_delivered;
    write(call);
    EXPECT_EQ(network[0].engine.accesses_under_way(), 1U);
    network.run();
    EXPECT_TRUE(std::equal(local.begin(), local.begin() + 16, remote.begin() + 8));
    ASSERT_EQ(reported(0).size(), 1U);
    EXPECT_FALSE(reported(0)[0].failed);
    EXPECT_EQ(reported(1).size(), 0U);
    EXPECT_EQ(network[0].engine.accesses_under_way(), 0U);
    reported(0).clear();
  }
}

TEST_F(RemoteAccess, AWriteThatTellsItsTargetTellsItOnceAndLast) {
  const std::array<Segment, 3> segments = {remote_part(0, 8), remote_part(16, 8), remote_part(32, 8)};
  AccessCall call = call_of({0, 24});
  call.remote = segments;
  call.keys = {5, 5, 5, 0};
  call.has_data = true;
  call.data = 77;
  write(call);
  while (network.under_way() > 0) {
    if (!reported(1).empty()) break;
    network.deliver(network.under_way() - 1);
  }
  EXPECT_TRUE(std::equal(local.begin(), local.begin() + 8, remote.begin()));
  EXPECT_TRUE(std::equal(local.begin() + 16, local.begin() + 24, remote.begin() + 32));
  network.run();
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].what, What::written);
  EXPECT_EQ(reported(1)[0].data, 77U);
  EXPECT_EQ(reported(0).size(), 1U);
}

TEST_F(RemoteAccess, AReadFetchesAndMayTellItsTarget) {
  remote = bytes_from(100, 64);
  network[1].transport.regions[5] = {message::address_of(remote.data()), remote.size()};
  AccessCall call = call_of(remote_part(10, 30));
  call.notifies = true;
  read(call);
  network.run();
  EXPECT_TRUE(std::equal(local.begin(), local.begin() + 30, remote.begin() + 10));
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].what, What::was_read);
  EXPECT_EQ(reported(1)[0].tag, 5U);
  EXPECT_EQ(reported(0).size(), 1U);
}

TEST_F(RemoteAccess, AnAccessOfNoByteEndsAtOnceOrTells) {
  write(call_of(remote_part(0, 0)));
  read(call_of(remote_part(0, 0)));
  EXPECT_EQ(reported(0).size(), 2U);
  AccessCall call = call_of(remote_part(0, 0));
  call.notifies = true;
  write(call);
  network.run();
  EXPECT_EQ(reported(0).size(), 3U);
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].length, 0U);
}

TEST_F(RemoteAccess, AFaultEndsTheAccessAndMovesNothing) {
  write(call_of(remote_part(0, 8), 6));  // no such key
  read(call_of(remote_part(60, 8)));     // past the end
  network.run();
  ASSERT_EQ(reported(0).size(), 2U);
  EXPECT_TRUE(reported(0)[0].failed);
  EXPECT_TRUE(reported(0)[1].failed);
  EXPECT_EQ(remote, Bytes(64));
  EXPECT_EQ(local, bytes_from(1, 64));
}

// Each step costs what the description of the machine says: a picosecond of its own digit for each.
class Costs : public testing::Test {
 protected:
  static message::SoftwareCosts digits() {
    message::SoftwareCosts costs = ToyNetwork::small_eager_limit();
    costs.send = Time::from_ps(1);
    costs.receive = Time::from_ps(100);
    costs.completion = Time::from_ps(10'000);
    costs.rendezvous = Time::from_ps(1'000'000);
    costs.publish = Time::from_ps(100'000'000);
    costs.after_receive = Time::from_ps(7);
    costs.send_packet = Time::from_ps(10'000'000'000);
    costs.receive_packet = Time::from_ps(1'000'000'000'000);
    return costs;
  }
  void exchange(ToyNetwork& network, std::size_t bytes) {
    const Bytes sent(bytes);
    Bytes got(bytes);
    ReceiveCall receive;
    receive.buffer = buffer_of(got);
    receive.owner.context = &contexts[1];
    network[1].engine.receive(network[1].inbox, receive);
    SendCall send;
    send.buffer = buffer_of(sent);
    send.target = 1;
    send.owner.context = &contexts[0];
    std::ignore = network[0].engine.send(network[0].inbox, send);
    network.run();
  }
  Contexts contexts{};
};

TEST_F(Costs, OfAnEagerMessage) {
  message::SoftwareCosts costs = digits();
  costs.copy_bytes_per_second = 1'000'000'000'000;  // a picosecond a byte
  ToyNetwork network(2, costs);
  exchange(network, 50);
  EXPECT_EQ(network[0].transport.charged.ps(), 1 + 50);
  EXPECT_EQ(network[1].transport.charged.ps(), 100 + 50);
  EXPECT_EQ(network[1].transport.charged_later.ps(), 7);
  EXPECT_EQ(network[0].transport.works_for_context, &contexts[0]);
  EXPECT_EQ(network[1].transport.works_for_context, &contexts[1]);
}

TEST_F(Costs, OfAMessageThatTheProcessorWritesPacketByPacket) {
  message::SoftwareCosts costs = digits();
  costs.copy_bytes_per_second = 1'000'000'000'000;
  message::CardLimits card;
  card.max_pio_bytes = 200;
  card.send_packet_bytes = 64;
  ToyNetwork network(2, costs, card);
  exchange(network, 100);  // with its header of 24 bytes: two packets, and no copy at the sender
  EXPECT_EQ(network[0].transport.charged.ps(), 1 + 10'000'000'000);
  EXPECT_EQ(network[1].transport.charged.ps(), 100 + 100);
}

// The card reads and writes the program's memory, and says when it has read it.
class DirectCosts : public Costs {
 protected:
  DirectCosts() {
    message::SoftwareCosts costs = digits();
    costs.copy_bytes_per_second = 1'000'000'000'000;
    network = std::make_unique<ToyNetwork>(2, costs, card);
  }
  void send(const Bytes& bytes, std::uint64_t direct_bytes) {
    SendCall call;
    call.buffer = buffer_of(bytes);
    call.target = 1;
    call.direct_bytes = direct_bytes;
    call.owner.context = &contexts[0];
    EXPECT_FALSE((*network)[0].engine.send((*network)[0].inbox, call));
  }
  void receive(Bytes& bytes) {
    ReceiveCall call;
    call.buffer = buffer_of(bytes);
    call.landing = message::Landing::direct;
    call.owner.context = &contexts[1];
    (*network)[1].engine.receive((*network)[1].inbox, call);
  }
  [[nodiscard]] std::int64_t charged(std::uint32_t rank) const {
    return (*network)[rank].transport.charged.ps();
  }
  message::CardLimits card;
  std::unique_ptr<ToyNetwork> network;
};

TEST_F(DirectCosts, OfAShortMessage) {
  const Bytes sent = bytes_from(3, 200);
  Bytes got(200);
  receive(got);
  send(sent, 256);
  network->run();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(charged(0), 1 + 10'000);
  EXPECT_EQ(charged(1), 100);
  ASSERT_EQ((*network)[0].transport.reported.size(), 1U);
  EXPECT_EQ((*network)[0].transport.reported[0].context, &contexts[0]);
}

TEST_F(DirectCosts, OfAMessageThatComesBeforeItsReceive) {
  const Bytes sent = bytes_from(4, 200);
  Bytes got(200);
  send(sent, 256);
  network->run();
  receive(got);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(charged(1), 100 + 200);
}

TEST_F(DirectCosts, OfALongMessageWithoutAHandshake) {
  const Bytes sent = bytes_from(5, 5000);
  Bytes got(5000);
  receive(got);
  send(sent, 5000);
  network->run();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(charged(0), 1 + 10'000);
  EXPECT_EQ(charged(1), 100);
}

TEST_F(DirectCosts, OfARendezvousWhoseBufferIsPublished) {
  const Bytes sent = bytes_from(6, 1000);
  Bytes got(1000);
  receive(got);
  send(sent, 256);
  network->run();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(charged(1), 1'000'100 + 1'000'001 + 10'000);
}

TEST_F(Costs, OfARendezvous) {
  ToyNetwork network(2, digits());
  exchange(network, 1000);
  // Announces; takes the answer; posts the put; takes its completion.
  EXPECT_EQ(network[0].transport.charged.ps(), 1'000'001 + 1'000'100 + 1 + 10'000);
  // Takes the announcement, publishes its buffer and answers; takes the put.
  EXPECT_EQ(network[1].transport.charged.ps(), 101'000'100 + 1'000'001 + 10'000);
}

TEST(Engine, CreditIsGivenForWhatHasBeenTakenFromTheRings) {
  message::CardLimits card;
  card.needs_credit = 1;
  card.max_message_bytes = 400;
  ToyNetwork network(2, ToyNetwork::small_eager_limit(), card);
  const Bytes sent(1000);
  Bytes got(1000);
  for (const std::size_t length : {100U, 1000U}) {
    SendCall send;
    send.buffer = message::one_piece(message::address_of(sent.data()), length);
    send.target = 1;
    std::ignore = network[0].engine.send(network[0].inbox, send);
  }
  network.run();
  EXPECT_EQ(network.credit_bytes, 0);
  network[1].engine.give_rings_back();
  EXPECT_EQ(network.credit_bytes, (24 + 100) + (24 + 16)) << "an eager message, an announcement";
  network.credit_bytes = 0;
  ReceiveCall receive;
  receive.buffer = buffer_of(got);
  for (int i = 0; i < 2; ++i) network[1].engine.receive(network[1].inbox, receive);
  EXPECT_EQ(network.credit_bytes, 1000) << "for the puts of the rendezvous";
}

}  // namespace
}  // namespace apenet::test
