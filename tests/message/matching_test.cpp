#include "message/matching.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <random>

namespace apenet::message {
namespace {

Message message_of(std::uint32_t source, std::uint64_t tag, std::uint16_t endpoint = 0) {
  Message message;
  message.source = message.peer = source;
  message.header.kind = MessageKind::eager_tagged;
  message.header.tag = tag;
  message.header.source_endpoint = endpoint;
  return message;
}

TEST(Matching, TheEarlierOfADirectedAndAnAnySourceReceiveWins) {
  Matcher matcher;
  Receive directed;
  Receive anybody;
  directed.source = directed.peer = 2;
  directed.tag = anybody.tag = 7;
  matcher.post(&anybody);
  matcher.post(&directed);
  EXPECT_EQ(matcher.match(message_of(2, 7)), &anybody);
  matcher.withdraw(&anybody);
  EXPECT_EQ(matcher.match(message_of(2, 7)), &directed);
  matcher.post(&anybody);
  EXPECT_EQ(matcher.match(message_of(2, 7)), &directed);
  EXPECT_EQ(matcher.match(message_of(1, 7)), &anybody);
  EXPECT_EQ(matcher.match(message_of(1, 8)), nullptr);
}

TEST(Matching, IgnoredBitsDoNotCount) {
  Matcher matcher;
  Receive receive;
  receive.tag = 0xff00;
  receive.ignore = 0x00ff;
  matcher.post(&receive);
  EXPECT_EQ(matcher.match(message_of(0, 0xff42)), &receive);
  EXPECT_EQ(matcher.match(message_of(0, 0xfe42)), nullptr);
}

TEST(Matching, DistinguishesEndpointsOfARank) {
  Matcher matcher;
  Receive receive;
  receive.source = 0;
  receive.source_endpoint = 2;
  matcher.post(&receive);
  EXPECT_EQ(matcher.match(message_of(0, 0, 1)), nullptr);
  EXPECT_EQ(matcher.match(message_of(0, 0, 2)), &receive);
}

// The matching rule without queues: the first posted receive that accepts, or the first kept message that
// fits.
class Reference {
 public:
  std::list<Receive*> posted;
  std::list<KeptMessage*> kept;

  Receive* match(const Message& message) const {
    for (Receive* receive : posted) {
      if (Wanted{receive->source, receive->source_endpoint, receive->tag, receive->ignore}.accepts(message)) {
        return receive;
      }
    }
    return nullptr;
  }
  KeptMessage* find(const Wanted& wanted) const {
    for (KeptMessage* message : kept) {
      if (wanted.accepts(message->message)) return message;
    }
    return nullptr;
  }
};

TEST(Matching, AgreesWithOneListOnRandomTraffic) {
  std::mt19937 random(11);
  for (int world = 0; world < 20; ++world) {
    constexpr std::uint32_t ranks = 5;
    Matcher matcher;
    Reference reference;
    std::deque<Receive> receives;
    std::deque<KeptMessage> messages;
    for (int round = 0; round < 500; ++round) {
      if (random() % 2 == 0) {
        const Wanted wanted{random() % 3 == 0 ? any_source : static_cast<std::uint32_t>(random() % ranks),
                            any_endpoint, random() % 4, random() % 5 == 0 ? ~std::uint64_t{0} : random() % 2};
        KeptMessage* kept = matcher.find(wanted, wanted.source);
        ASSERT_EQ(kept, reference.find(wanted));
        if (kept != nullptr) {
          matcher.drop(kept);
          reference.kept.remove(kept);
          continue;
        }
        Receive& receive = receives.emplace_back();
        receive.source = receive.peer = wanted.source;
        receive.tag = wanted.tag;
        receive.ignore = wanted.ignore;
        receive.owner.context = &receive;
        matcher.post(&receive);
        reference.posted.push_back(&receive);
      } else {
        const Message message = message_of(static_cast<std::uint32_t>(random() % ranks), random() % 4);
        Receive* receive = matcher.match(message);
        ASSERT_EQ(receive, reference.match(message));
        if (receive != nullptr) {
          const auto is_it = [receive](const Receive& posted) { return posted.owner.context == receive; };
          ASSERT_EQ(matcher.find_posted(is_it), receive);
          matcher.withdraw(receive);
          reference.posted.remove(receive);
          ASSERT_EQ(matcher.find_posted(is_it), nullptr);
          continue;
        }
        KeptMessage& kept = messages.emplace_back();
        kept.message = message;
        matcher.keep(&kept);
        reference.kept.push_back(&kept);
      }
    }
    ASSERT_EQ(matcher.find_posted([](const Receive&) { return true; }),
              reference.posted.empty() ? nullptr : reference.posted.front());
    ASSERT_EQ(matcher.oldest(), reference.kept.empty() ? nullptr : reference.kept.front());
  }
}

}  // namespace
}  // namespace apenet::message
