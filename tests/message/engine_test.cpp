// The contract of the message engine with its transport, over ranks in one address space.
#include "message/engine.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>
#include <utility>

#include "message/toy_transport.hpp"

namespace apenet::test {
namespace {

using message::Buffer;
using message::Receive;
using message::ReceiveCall;
using message::SendCall;
using message::Wanted;
using What = Report::What;

class EngineTest : public testing::Test {
 protected:
  ToyNetwork network{3};
  Contexts contexts{};

  bool send(std::uint32_t from, std::uint32_t to, std::uint64_t tag, const Bytes& bytes,
            void* context = nullptr) {
    SendCall call;
    call.buffer = buffer_of(bytes);
    call.target = to;
    call.tagged = true;
    call.tag = tag;
    call.owner.context = context;
    return network[from].engine.send(network[from].inbox, call);
  }
  [[nodiscard]] static ReceiveCall receive_of(Bytes& bytes, const Wanted& wanted, void* context = nullptr) {
    ReceiveCall call;
    call.buffer = buffer_of(bytes);
    call.wanted = wanted;
    call.tagged = true;
    call.owner.context = context;
    return call;
  }
  void receive(std::uint32_t rank, Bytes& bytes, const Wanted& wanted, void* context = nullptr) {
    network[rank].engine.receive(network[rank].inbox, receive_of(bytes, wanted, context));
  }
  std::vector<Report>& reported(std::uint32_t rank) { return network[rank].transport.reported; }
};

TEST_F(EngineTest, AnEagerSendFreesItsBufferAtOnce) {
  for (const std::size_t length : {100U, 256U}) {  // in the event; in a slot
    const Bytes sent = bytes_from(1, length);
    Bytes overwritten = sent;
    Bytes got(length);
    receive(1, got, {.source = 0, .tag = 7}, &contexts[0]);
    EXPECT_TRUE(send(0, 1, 7, overwritten));
    std::fill(overwritten.begin(), overwritten.end(), std::byte{0});
    EXPECT_EQ(network[1].engine.waiting(), 1U);
    network.run();
    EXPECT_EQ(got, sent);
    ASSERT_EQ(reported(1).size(), 1U);
    EXPECT_EQ(reported(1)[0].context, &contexts[0]);
    EXPECT_EQ(reported(1)[0].source, 0U);
    EXPECT_EQ(reported(1)[0].tag, 7U);
    EXPECT_EQ(reported(1)[0].length, length);
    EXPECT_EQ(network[0].transport.slots_in_use, 0U);
    EXPECT_EQ(network[1].engine.waiting(), 0U);
    reported(1).clear();
  }
}

// The library learns of each copied message that it has left, and of no other by this cost.
TEST(Engine, TheCompletionOfACopiedMessageIsTakenAndBelongsToNoOperation) {
  message::SoftwareCosts costs = ToyNetwork::small_eager_limit();
  costs.send = Time::from_ns(1000);
  costs.completion = Time::from_ns(100);
  for (const std::int64_t eager_completion_ns : {0, 7}) {
    costs.eager_completion = Time::from_ns(eager_completion_ns);
    ToyNetwork network(2, costs);
    const auto charged = [&network] { return std::exchange(network[0].transport.charged, Time::zero()); };
    for (const std::size_t length : {50U, 200U}) {
      const Bytes sent = bytes_from(1, length);
      SendCall call;
      call.buffer = buffer_of(sent);
      call.target = 1;
      EXPECT_TRUE(network[0].engine.send(network[0].inbox, call));
      network.run();
      EXPECT_EQ(charged(), costs.send + costs.eager_completion);
    }
    EXPECT_TRUE(network[0].transport.reported.empty());
    EXPECT_EQ(network[0].engine.unfinished(), 0U);
    // A rendezvous: its request to send and its put are posted, and one completion is taken.
    const Bytes sent = bytes_from(1, 300);
    Bytes got(300);
    ReceiveCall receive;
    receive.buffer = buffer_of(got);
    for (int taken = 0; taken < 3; ++taken) network[1].engine.receive(network[1].inbox, receive);
    SendCall call;
    call.buffer = buffer_of(sent);
    call.target = 1;
    EXPECT_FALSE(network[0].engine.send(network[0].inbox, call));
    network.run();
    EXPECT_EQ(charged(), costs.send * 2 + costs.completion);
    EXPECT_EQ(got, sent);
  }
}

TEST(Engine, ADoorbellCostsTimeUnlessTheProcessorWritesTheMessageToTheCard) {
  message::SoftwareCosts costs = ToyNetwork::small_eager_limit();
  costs.send = Time::from_ns(1000);
  costs.doorbell = Time::from_ns(30);
  message::CardLimits card;
  card.max_pio_bytes = 74;  // a header and 50 bytes
  ToyNetwork network(2, costs, card);
  const auto charged = [&network] { return std::exchange(network[0].transport.charged, Time::zero()); };
  SendCall call;
  call.target = 1;
  for (const std::size_t length : {50U, 51U}) {
    const Bytes sent = bytes_from(1, length);
    call.buffer = buffer_of(sent);
    EXPECT_TRUE(network[0].engine.send(network[0].inbox, call));
    EXPECT_EQ(charged(), length == 50 ? costs.send : costs.send + costs.doorbell);
  }
  // The card reads the payload of a put, but not the short request of a rendezvous.
  const Bytes sent = bytes_from(1, 300);
  Bytes got(300);
  ReceiveCall receive;
  receive.buffer = buffer_of(got);
  receive.wanted = {.source = 0};
  call.buffer = buffer_of(sent);
  network.run();
  EXPECT_FALSE(network[0].engine.send(network[0].inbox, call));
  EXPECT_EQ(charged(), costs.send);
  for (int taken = 0; taken < 3; ++taken) network[1].engine.receive(network[1].inbox, receive);
  network.run();
  EXPECT_EQ(charged(), costs.send + costs.doorbell);
}

TEST_F(EngineTest, AMessageWithoutAReceiveIsKept) {
  const Bytes in_event = bytes_from(1, 50);
  const Bytes in_slot = bytes_from(2, 200);
  EXPECT_TRUE(send(0, 1, 1, in_event));
  EXPECT_TRUE(send(0, 1, 2, in_slot));
  network.run();
  EXPECT_EQ(reported(1).size(), 0U);
  Bytes got(200);
  receive(1, got, {.tag = 2});
  EXPECT_EQ(got, in_slot);
  got.resize(50);
  receive(1, got, {.tag = 1});
  EXPECT_EQ(got, in_event);
  EXPECT_EQ(network[0].transport.slots_in_use, 0U);
}

TEST_F(EngineTest, ARendezvousEndsAtBothSidesOnceTheReceiverHasMatched) {
  const Bytes sent = bytes_from(3, 10'000);
  EXPECT_FALSE(send(0, 1, 7, sent, &contexts[0]));
  network.run();
  EXPECT_EQ(network[0].engine.unfinished(), 1U);
  EXPECT_EQ(network[0].engine.oldest_transfer()->owner.context, &contexts[0]);
  Bytes got(10'000);
  receive(1, got, {.source = 0, .tag = 7}, &contexts[1]);
  EXPECT_EQ(reported(1).size(), 0U) << "the payload is still to come";
  network.run();
  EXPECT_EQ(got, sent);
  ASSERT_EQ(reported(0).size(), 1U);
  EXPECT_EQ(reported(0)[0].what, What::ended);
  EXPECT_EQ(reported(0)[0].context, &contexts[0]);
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].context, &contexts[1]);
  EXPECT_EQ(reported(1)[0].length, 10'000U);
  EXPECT_EQ(network[0].engine.unfinished(), 0U);
  EXPECT_EQ(network[0].stores.transfers.used(), 0U);
  EXPECT_EQ(network[1].stores.receives.used(), 0U);
  EXPECT_EQ(network[1].stores.stored.used(), 0U);
}

// The card's largest message is 300 bytes, and memory is scattered on both sides.
TEST(Engine, ARendezvousIsCutIntoWhatTheCardCanCarry) {
  message::CardLimits card;
  card.max_message_bytes = 300;
  ToyNetwork network(2, ToyNetwork::small_eager_limit(), card);
  const Bytes sent = bytes_from(0, 1000);
  Bytes got(1000);
  const auto scattered = [](const Bytes& bytes, std::initializer_list<std::uint64_t> lengths) {
    Buffer buffer;
    std::uint64_t offset = 0;
    for (const std::uint64_t length : lengths) {
      buffer.pieces[buffer.count++] = {message::address_of(bytes.data()) + offset, length};
      offset += length;
    }
    buffer.length = offset;
    return buffer;
  };
  SendCall send;
  send.buffer = scattered(sent, {10, 0, 590, 400});
  send.target = 1;
  std::ignore = network[0].engine.send(network[0].inbox, send);
  ReceiveCall receive;
  receive.buffer = scattered(got, {333, 333, 334});
  network[1].engine.receive(network[1].inbox, receive);
  network.run();
  EXPECT_EQ(got, sent);
  EXPECT_EQ(network[0].transport.reported.size(), 1U);
  EXPECT_EQ(network[1].transport.reported.size(), 1U);
}

TEST_F(EngineTest, ALongerMessageIsTruncatedAndSaysItsLength) {
  for (const std::size_t length : {100U, 200U, 1000U}) {  // in the event, in a slot, by rendezvous
    const Bytes sent = bytes_from(5, length);
    Bytes got(64, std::byte{0xee});
    std::ignore = send(0, 1, 1, sent);
    ReceiveCall call = receive_of(got, {.tag = 1});
    call.buffer = message::one_piece(message::address_of(got.data()), 40);
    network[1].engine.receive(network[1].inbox, call);
    network.run();
    ASSERT_EQ(reported(1).size(), 1U);
    EXPECT_EQ(reported(1)[0].length, length);
    EXPECT_EQ(reported(1)[0].expected, 40U);
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + 40, sent.begin()));
    EXPECT_EQ(got[40], std::byte{0xee});
    EXPECT_EQ(network[0].engine.unfinished(), 0U);
    reported(1).clear();
  }
}

TEST_F(EngineTest, MessagesAndBuffersMayBeEmpty) {
  Bytes none;
  receive(1, none, {.tag = 1}, &contexts[0]);
  EXPECT_TRUE(send(0, 1, 1, none));
  receive(1, none, {.tag = 2}, &contexts[1]);
  EXPECT_FALSE(send(0, 1, 2, bytes_from(0, 1000)));
  network.run();
  ASSERT_EQ(reported(1).size(), 2U);
  EXPECT_EQ(reported(1)[0].context, &contexts[0]);
  EXPECT_EQ(reported(1)[0].length, 0U);
  EXPECT_EQ(reported(1)[1].context, &contexts[1]);
  EXPECT_EQ(reported(1)[1].length, 1000U);
  EXPECT_EQ(reported(1)[1].expected, 0U);
  EXPECT_EQ(network[0].engine.unfinished(), 0U) << "the sender need not wait";
}

TEST_F(EngineTest, MessagesThatOvertakeAreMatchedInTheOrderOfTheirSends) {
  std::vector<Bytes> got(4, Bytes(256));
  for (std::size_t i = 0; i < got.size(); ++i) receive(1, got[i], {}, &contexts[i]);
  const std::array<std::size_t, 4> lengths = {10, 200, 1000, 20};
  std::deque<Bytes> sent;
  for (const std::size_t length : lengths) std::ignore = send(0, 1, 0, sent.emplace_back(length));
  while (network.under_way() > 0) network.deliver(network.under_way() - 1);
  ASSERT_EQ(reported(1).size(), 4U);
  for (const Report& one : reported(1)) {
    const auto which = static_cast<std::size_t>(static_cast<char*>(one.context) - contexts.data());
    EXPECT_EQ(one.length, lengths[which]);
  }
}

TEST_F(EngineTest, TagsSourcesAndIgnoredBitsSelect) {
  Bytes got(8);
  receive(2, got, {.source = 1, .tag = 5}, &contexts[0]);
  receive(2, got, {.tag = 0x50, .ignore = 0x0f}, &contexts[1]);
  receive(2, got, {.source = 0, .tag = 0, .ignore = ~std::uint64_t{0}}, &contexts[2]);
  const Bytes sent = bytes_from(0, 8);
  std::ignore = send(0, 2, 0x57, sent);  // contexts[1]
  std::ignore = send(1, 2, 0x57, sent);  // none
  std::ignore = send(0, 2, 5, sent);     // contexts[2]
  std::ignore = send(1, 2, 5, sent);     // contexts[0]
  network.run();
  ASSERT_EQ(reported(2).size(), 3U);
  EXPECT_EQ(reported(2)[0].context, &contexts[1]);
  EXPECT_EQ(reported(2)[1].context, &contexts[2]);
  EXPECT_EQ(reported(2)[2].context, &contexts[0]);
  EXPECT_NE(network[2].engine.find(network[2].inbox, {.source = 1, .tag = 0x57}), nullptr);
}

TEST_F(EngineTest, UntaggedReceivesTakeUntaggedMessagesOnly) {
  Bytes got(8);
  ReceiveCall plain = receive_of(got, {}, &contexts[0]);
  plain.tagged = false;
  network[1].engine.receive(network[1].inbox, plain);
  std::ignore = send(0, 1, 0, bytes_from(0, 8));
  network.run();
  EXPECT_EQ(reported(1).size(), 0U);
  SendCall call;
  call.buffer = buffer_of(got);
  call.target = 1;
  call.has_data = true;
  call.data = 99;
  std::ignore = network[0].engine.send(network[0].inbox, call);
  network.run();
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].data, 99U);
}

TEST_F(EngineTest, ACancelledReceiveTakesNothing) {
  Bytes got(8);
  receive(1, got, {.tag = 1}, &contexts[0]);
  receive(1, got, {.tag = 1}, &contexts[1]);
  ToyNetwork::Rank& rank = network[1];
  EXPECT_EQ(rank.engine.cancel(rank.inbox, true, &contexts[2]), nullptr);
  EXPECT_EQ(rank.engine.cancel(rank.inbox, false, &contexts[0]), nullptr);
  Receive* cancelled = rank.engine.cancel(rank.inbox, true, &contexts[0]);
  ASSERT_NE(cancelled, nullptr);
  rank.engine.forget_receive(*cancelled);
  EXPECT_EQ(rank.engine.oldest_receive()->owner.context, &contexts[1]);
  std::ignore = send(0, 1, 1, bytes_from(0, 8));
  network.run();
  ASSERT_EQ(reported(1).size(), 1U);
  EXPECT_EQ(reported(1)[0].context, &contexts[1]);
  EXPECT_EQ(rank.engine.cancel(rank.inbox, true, &contexts[1]), nullptr) << "it has ended";
  EXPECT_EQ(rank.stores.receives.used(), 0U);
}

TEST_F(EngineTest, APeekedMessageMayBeClaimedReceivedOrDiscarded) {
  ToyNetwork::Rank& rank = network[1];
  const Bytes large = bytes_from(9, 1000);
  std::ignore = send(0, 1, 1, bytes_from(1, 8));
  std::ignore = send(0, 1, 2, large, &contexts[0]);
  std::ignore = send(0, 1, 2, large, &contexts[1]);
  network.run();
  EXPECT_EQ(rank.engine.find(rank.inbox, {.tag = 3}), nullptr);
  ToyEngine::Stored* small = rank.engine.find(rank.inbox, {.tag = 1});
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(small->message.length(), 8U);
  rank.engine.discard_kept(*small);
  EXPECT_EQ(rank.engine.find(rank.inbox, {.tag = 1}), nullptr);

  for (void* claim : {&contexts[2], &contexts[3]}) {
    ToyEngine::Stored* found = rank.engine.find(rank.inbox, {.source = 0, .tag = 2});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->message.length(), 1000U);
    rank.engine.claim(*found, claim);
  }
  EXPECT_EQ(rank.engine.find(rank.inbox, {.tag = 2}), nullptr) << "claimed: no other receive finds it";
  Bytes got(1000);
  rank.engine.receive_claimed(rank.inbox, receive_of(got, {}),
                              *rank.engine.claimed(rank.inbox, &contexts[3]));
  rank.engine.discard_claimed(*rank.engine.claimed(rank.inbox, &contexts[2]));
  EXPECT_EQ(rank.engine.claimed(rank.inbox, &contexts[2]), nullptr);
  network.run();
  EXPECT_EQ(got, large);
  EXPECT_EQ(reported(0).size(), 2U) << "a discarded message ends at its sender, too";
  EXPECT_EQ(rank.stores.stored.used(), 0U);
}

TEST_F(EngineTest, AMultiReceiveGivesItsBufferAwayPieceByPiece) {
  Bytes got(700);
  ToyNetwork::Rank& rank = network[1];
  rank.inbox.set_min_multi_receive(100);
  ReceiveCall call = receive_of(got, {}, &contexts[0]);
  call.tagged = false;
  call.multi = true;
  const auto send_plain = [&](const Bytes& bytes) {
    SendCall plain;
    plain.buffer = buffer_of(bytes);
    plain.target = 1;
    std::ignore = network[0].engine.send(network[0].inbox, plain);
  };
  send_plain(bytes_from(1, 50));  // kept until the receive comes
  network.run();
  rank.engine.receive(rank.inbox, call);
  const Bytes large = bytes_from(2, 500);  // by rendezvous
  send_plain(large);
  send_plain(bytes_from(3, 120));  // 30 bytes are left: less than the minimum
  send_plain(bytes_from(4, 10));   // nobody takes it
  network.run();
  ASSERT_EQ(reported(1).size(), 3U);
  EXPECT_EQ(reported(1)[0].length, 50U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(reported(1)[i].ends_multi, i == 2);
  EXPECT_TRUE(std::equal(large.begin(), large.end(), got.begin() + 50));
  EXPECT_EQ(got[550], std::byte{3});
  EXPECT_EQ(rank.stores.receives.used(), 0U);
  EXPECT_EQ(rank.stores.stored.used(), 1U);
}

TEST_F(EngineTest, WithoutASlotAnEagerMessageBecomesARendezvous) {
  network[0].transport.slot_limit = 1;
  const Bytes sent = bytes_from(1, 200);
  EXPECT_TRUE(send(0, 1, 1, sent));
  EXPECT_FALSE(send(0, 1, 1, sent));
  std::vector<Bytes> got(2, Bytes(200));
  for (Bytes& one : got) receive(1, one, {.tag = 1});
  network.run();
  EXPECT_EQ(got[0], sent);
  EXPECT_EQ(got[1], sent);
}

TEST_F(EngineTest, AnInjectedRendezvousCopiesItsBuffer) {
  const Bytes sent = bytes_from(1, 1000);
  Bytes overwritten = sent;
  SendCall call;
  call.buffer = buffer_of(overwritten);
  call.target = 1;
  call.tagged = true;
  call.inject = true;
  EXPECT_FALSE(network[0].engine.send(network[0].inbox, call));
  std::fill(overwritten.begin(), overwritten.end(), std::byte{0});
  Bytes got(1000);
  receive(1, got, {});
  network.run();
  EXPECT_EQ(got, sent);
}

TEST_F(EngineTest, AMessageToNobodyEndsAtItsSender) {
  SendCall call;
  const Bytes sent = bytes_from(0, 1000);
  call.buffer = buffer_of(sent);
  call.target = 1;
  call.target_endpoint = 3;
  EXPECT_FALSE(network[0].engine.send(network[0].inbox, call));
  network.run();
  EXPECT_EQ(reported(0).size(), 1U);
  EXPECT_EQ(network[0].engine.unfinished(), 0U);
}

TEST_F(EngineTest, AForgottenInboxIsToldOfNothing) {
  Bytes got(1000);
  receive(1, got, {.tag = 1});
  receive(1, got, {.tag = 2});
  const Bytes sent(1000);
  std::ignore = send(0, 1, 1, sent, &contexts[0]);  // matched, under way
  std::ignore = send(0, 1, 3, sent, &contexts[1]);  // kept
  std::ignore = send(1, 0, 1, sent);                // a message of the inbox to itself
  network.deliver();
  network.deliver();
  network[1].engine.forget(network[1].inbox);
  EXPECT_EQ(network[1].engine.waiting(), 0U);
  receive(0, got, {.tag = 1});
  network.run();
  EXPECT_EQ(reported(1).size(), 0U);
  EXPECT_EQ(network[0].engine.unfinished(), 0U) << "its peers do not wait for it";
  EXPECT_EQ(network[1].stores.receives.used(), 0U);
  EXPECT_EQ(network[1].stores.transfers.used(), 0U);
  EXPECT_EQ(network[1].stores.stored.used(), 0U);
}

TEST_F(EngineTest, ControlMessagesArriveInTheirTurn) {
  message::MessageHeader header;
  header.kind = message::MessageKind::request;
  header.tag = 11;
  const Bytes body = bytes_from(0, 20);
  network[0].engine.post_control(1, header, body);
  header.tag = 12;
  network[0].engine.post_control(1, header, {});
  network.deliver(1);
  EXPECT_EQ(reported(1).size(), 0U);
  EXPECT_EQ(network[1].engine.expected_sequence(0), 0U);
  network.run();
  ASSERT_EQ(reported(1).size(), 2U);
  EXPECT_EQ(reported(1)[0].tag, 11U);
  EXPECT_EQ(reported(1)[0].length, 20U);
  EXPECT_EQ(reported(1)[1].tag, 12U);
  EXPECT_EQ(network[1].engine.expected_sequence(0), 2U);
}

TEST_F(EngineTest, WhatNoEngineSendsIsRefused) {
  const auto refusal = [this](const message::Event& event) -> std::string {
    try {
      network[1].engine.take(event);
    } catch (const message::MalformedMessage& error) {
      return error.what();
    }
    return "";
  };
  message::Event event;
  event.kind = message::EventKind::arrived;
  event.source = 9;
  EXPECT_EQ(refusal(event), "a message from a rank that does not exist");
  event.source = 0;
  event.inline_length = message::inline_bytes + 1;
  EXPECT_EQ(refusal(event), "a message longer than its event");
  event.inline_length = 3;
  EXPECT_EQ(refusal(event), "a message shorter than its header");
  event.kind = message::EventKind::sent;
  EXPECT_EQ(refusal(event), "a completion of nothing that was posted");
  event.kind = message::EventKind::put_arrived;
  event.immediate = message::PutNotice{message::PutNoticeKind::rendezvous, 0, 42}.encode();
  EXPECT_EQ(refusal(event), "a put for no receive that was announced");

  message::MessageHeader header;
  header.kind = message::MessageKind::request;
  event = {};
  event.kind = message::EventKind::arrived;
  event.inline_length = sizeof(header);
  std::memcpy(event.inline_data, &header, sizeof(header));
  EXPECT_EQ(refusal(event), "");
  EXPECT_EQ(refusal(event), "a message that has come before");
}

}  // namespace
}  // namespace apenet::test
