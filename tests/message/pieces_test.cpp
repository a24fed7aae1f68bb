// Eager messages that are longer than one request can carry.
#include <gtest/gtest.h>

#include "message/engine.hpp"
#include "message/toy_transport.hpp"

namespace apenet::test {
namespace {

using message::MessageHeader;
using message::MessageKind;
using message::ReceiveCall;
using message::SendCall;

constexpr std::size_t piece_bytes = 256;

message::SoftwareCosts costs() {
  message::SoftwareCosts costs;
  costs.eager_limit_bytes = 4096;
  return costs;
}

message::CardLimits card() {
  message::CardLimits card;
  card.max_send_bytes = sizeof(MessageHeader) + piece_bytes;
  return card;
}

class PiecesTest : public testing::Test {
 protected:
  ToyNetwork network{2, costs(), card()};
  std::size_t sends = 0;
  bool is_rendezvous = false;

  PiecesTest() {
    network.on_send = [this](std::uint32_t source, const message::Request& request) {
      const MessageHeader header = message::decode_header({request.inline_data, request.inline_length});
      if (source == 0) ++sends;
      is_rendezvous = is_rendezvous || message::is_ready(header.kind);
    };
  }
  bool send(const Bytes& bytes, std::uint64_t tag = 0) {
    SendCall call;
    call.buffer = buffer_of(bytes);
    call.target = 1;
    call.tagged = true;
    call.tag = tag;
    return network[0].engine.send(network[0].inbox, call);
  }
  void receive(Bytes& bytes, std::uint64_t tag = 0) {
    ReceiveCall call;
    call.buffer = buffer_of(bytes);
    call.wanted = {.source = 0, .tag = tag};
    call.tagged = true;
    network[1].engine.receive(network[1].inbox, call);
  }
};

TEST_F(PiecesTest, ArriveAsOneMessageWithAndWithoutAReceiveThatWaits) {
  for (const std::size_t length : {256U, 257U, 512U, 1000U, 4096U}) {
    for (const bool is_expected : {true, false}) {
      const Bytes sent = bytes_from(3, length);
      Bytes got(length);
      sends = 0;
      if (is_expected) receive(got);
      EXPECT_TRUE(send(sent));
      network.run();
      if (!is_expected) receive(got);
      EXPECT_EQ(got, sent) << length;
      EXPECT_EQ(sends, (length + piece_bytes - 1) / piece_bytes);
      EXPECT_EQ(network[0].transport.slots_in_use, 0U);
      ASSERT_FALSE(network[1].transport.reported.empty());
      EXPECT_EQ(network[1].transport.reported.back().length, length);
    }
  }
  EXPECT_FALSE(is_rendezvous);
}

TEST_F(PiecesTest, KeepTheirPlaceAmongOtherMessagesWhenTheNetworkReversesThem) {
  const Bytes first = bytes_from(1, 1000);
  const Bytes second = bytes_from(2, 10);
  Bytes got_first(1000);
  Bytes got_second(10);
  receive(got_first);
  receive(got_second);
  EXPECT_TRUE(send(first));
  EXPECT_TRUE(send(second));
  while (network.under_way() > 0) network.deliver(network.under_way() - 1);
  EXPECT_EQ(got_first, first);
  EXPECT_EQ(got_second, second);
}

TEST_F(PiecesTest, ComeFromScatteredMemory) {
  const Bytes one = bytes_from(1, 300);
  const Bytes other = bytes_from(7, 300);
  Bytes got(600);
  receive(got);
  SendCall call;
  call.buffer = buffer_of(one);
  call.buffer.pieces[1] = {message::address_of(other.data()), other.size()};
  call.buffer.count = 2;
  call.buffer.length = 600;
  call.target = 1;
  call.tagged = true;
  EXPECT_TRUE(network[0].engine.send(network[0].inbox, call));
  network.run();
  Bytes both = one;
  both.insert(both.end(), other.begin(), other.end());
  EXPECT_EQ(got, both);
}

TEST_F(PiecesTest, AreARendezvousWhenTooFewSlotsAreFree) {
  network[0].transport.slot_limit = 3;
  const Bytes sent = bytes_from(5, 1000);
  Bytes got(1000);
  receive(got);
  EXPECT_FALSE(send(sent));
  network.run();
  EXPECT_TRUE(is_rendezvous);
  EXPECT_EQ(got, sent);
}

// An event with a piece, in the request itself.
message::Event piece(MessageKind kind, std::uint32_t sequence, std::uint16_t to_come, std::uint32_t bytes) {
  MessageHeader header;
  header.kind = kind;
  header.sequence = sequence;
  header.pieces_to_come = to_come;
  message::Event event;
  event.kind = message::EventKind::arrived;
  event.inline_length = sizeof(header) + bytes;
  event.bytes = event.inline_length;
  std::memcpy(event.inline_data, &header, sizeof(header));
  return event;
}

TEST_F(PiecesTest, ThatDoNotFollowEachOtherAreMalformed) {
  auto& engine = network[1].engine;
  EXPECT_THROW(engine.take(piece(MessageKind::piece, 0, 0, 8)), message::MalformedMessage);
  engine.take(piece(MessageKind::eager_tagged, 1, 3, 8));
  EXPECT_THROW(engine.take(piece(MessageKind::eager_tagged, 2, 3, 8)), message::MalformedMessage);
  EXPECT_THROW(engine.take(piece(MessageKind::piece, 3, 1, 8)), message::MalformedMessage);
  engine.take(piece(MessageKind::piece, 4, 2, 8));
  EXPECT_THROW(engine.take(piece(MessageKind::piece, 5, 1, 100)), message::MalformedMessage);
  EXPECT_THROW(engine.take(piece(MessageKind::piece, 6, 3, 8)), message::MalformedMessage);
}

TEST_F(PiecesTest, ThatWouldBeTooLongAreMalformed) {
  EXPECT_THROW(network[1].engine.take(piece(MessageKind::eager_tagged, 0, 65535, 100)),
               message::MalformedMessage);
}

}  // namespace
}  // namespace apenet::test
