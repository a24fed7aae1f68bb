// Messages between two peers of the provider: eager, rendezvous, order, and the options of receives and their
// completions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

void* context(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr)
}

class Messages : public ::testing::TestWithParam<std::size_t> {
 protected:
  FakeNetwork network{3};
  Peer sender{network, 0};
  Peer receiver{network, 1};
};

TEST_P(Messages, ArriveComplete) {
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  ASSERT_EQ(fi_trecv(receiver.ep, received.data(), received.size(), nullptr, 0, 42, 0, context(1)), 0);
  ASSERT_EQ(fi_tsenddata(sender.ep, sent.data(), sent.size(), nullptr, 9, 1, 42, context(2)), 0);
  receiver.drain();
  sender.drain();
  const auto done = sender.next(sender.transmit_cq);
  EXPECT_EQ(done.op_context, context(2));
  EXPECT_EQ(done.flags, FI_TAGGED | FI_SEND);
  const auto entry = receiver.next(receiver.receive_cq);
  EXPECT_EQ(entry.op_context, context(1));
  EXPECT_EQ(entry.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.len, sent.size());
  EXPECT_EQ(entry.data, 9U);
  EXPECT_EQ(entry.tag, 42U);
  EXPECT_EQ(receiver.source, 0U);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(network.slots_out(0), 0);
}

// Credit covers all that came through the card: into the rings, and into the buffer of a rendezvous.
TEST_P(Messages, GetCreditIfTheCardNeedsIt) {
  network.header().rails[0].mpi.card.needs_credit = 1;
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  ASSERT_EQ(fi_trecv(receiver.ep, received.data(), received.size(), nullptr, 0, 42, 0, context(1)), 0);
  ASSERT_EQ(fi_tsend(sender.ep, sent.data(), sent.size(), nullptr, 1, 42, context(2)), 0);
  receiver.drain();
  sender.drain();
  receiver.drain();
  std::int64_t to_receiver_bytes = 0;
  std::int64_t credit_bytes = 0;
  for (const ipc::Request& request : network.posted()) {
    if (request.verb == ipc::RequestVerb::credit && request.target == 0) {
      EXPECT_LE(request.bytes, network.header().rails[0].mpi.card.max_message_bytes);
      credit_bytes += request.bytes;
    } else if (request.verb != ipc::RequestVerb::credit && request.target == 1) {
      to_receiver_bytes += request.bytes;
    }
  }
  EXPECT_GT(credit_bytes, 0);
  EXPECT_EQ(credit_bytes, to_receiver_bytes);
}

TEST_P(Messages, ThatArriveEarlyAreKept) {
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  ASSERT_EQ(fi_tsend(sender.ep, sent.data(), sent.size(), nullptr, 1, 42, context(2)), 0);
  receiver.drain();
  ASSERT_EQ(
      fi_trecv(receiver.ep, received.data(), received.size(), nullptr, FI_ADDR_UNSPEC, 0, ~0ULL, nullptr), 0);
  sender.drain();
  EXPECT_EQ(receiver.next(receiver.receive_cq).tag, 42U);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(network.slots_out(0), 0);
}

TEST_P(Messages, UseScatteredMemoryOnBothSides) {
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  const auto cut = [](std::uint8_t* start, std::size_t size, std::array<std::size_t, 3> parts) {
    std::array<iovec, 4> pieces{};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t part = i < 3 ? size * parts[i] / 100 : size - at;
      pieces[i] = {start + at, part};
      at += part;
    }
    return pieces;
  };
  auto copy = sent;
  const auto from = cut(copy.data(), copy.size(), {10, 0, 33});
  const auto to = cut(received.data(), received.size(), {50, 20, 1});
  ASSERT_EQ(fi_trecvv(receiver.ep, to.data(), nullptr, 4, 0, 1, 0, nullptr), 0);
  ASSERT_EQ(fi_tsendv(sender.ep, from.data(), nullptr, 4, 1, 1, nullptr), 0);
  receiver.drain();
  sender.drain();
  EXPECT_EQ(receiver.next(receiver.receive_cq).len, sent.size());
  EXPECT_EQ(received, sent);
}

TEST_P(Messages, TooLongForTheirReceiveFillItAndCauseAnError) {
  if (GetParam() == 0) GTEST_SKIP();
  const auto sent = pattern(GetParam());
  for (const std::size_t room : {std::size_t{0}, GetParam() / 2, GetParam() - 1}) {
    std::vector<std::uint8_t> received(GetParam(), 0xee);
    ASSERT_EQ(fi_trecv(receiver.ep, received.data(), room, nullptr, 0, 1, 0, context(5)), 0);
    ASSERT_EQ(fi_tsend(sender.ep, sent.data(), sent.size(), nullptr, 1, 1, context(6)), 0);
    receiver.drain();
    sender.drain();
    const auto error = receiver.next_error(receiver.receive_cq);
    EXPECT_EQ(error.err, FI_ETRUNC);
    EXPECT_EQ(error.op_context, context(5));
    EXPECT_EQ(error.len, room);
    EXPECT_EQ(error.olen, sent.size() - room);
    EXPECT_TRUE(std::equal(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(room), received.begin()));
    EXPECT_TRUE(std::all_of(received.begin() + static_cast<std::ptrdiff_t>(room), received.end(),
                            [](std::uint8_t byte) { return byte == 0xee; }));
    EXPECT_EQ(sender.next(sender.transmit_cq).op_context, context(6));
  }
}

TEST_P(Messages, ReleaseTheirBufferWhenTheCallPromisesIt) {
  const auto sent = pattern(GetParam());
  for (const bool exhausted : {false, true}) {
    network.exhaust_slots(exhausted);
    std::vector<std::uint8_t> received(GetParam());
    auto scratch = sent;
    ASSERT_EQ(fi_trecv(receiver.ep, received.data(), received.size(), nullptr, 0, 1, 0, nullptr), 0);
    ASSERT_EQ(fi_tinject(sender.ep, scratch.data(), scratch.size(), 1, 1), 0);
    std::fill(scratch.begin(), scratch.end(), std::uint8_t{0});
    receiver.drain();
    sender.drain();
    receiver.next(receiver.receive_cq);
    EXPECT_EQ(received, sent);
    EXPECT_TRUE(sender.reads_nothing(sender.transmit_cq));
  }
}

TEST_P(Messages, ToOneselfWorkLikeOthers) {
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  ASSERT_EQ(fi_send(sender.ep, sent.data(), sent.size(), nullptr, 0, nullptr), 0);
  ASSERT_EQ(fi_recv(sender.ep, received.data(), received.size(), nullptr, 0, nullptr), 0);
  EXPECT_EQ(sender.next(sender.receive_cq).flags, FI_MSG | FI_RECV);
  EXPECT_EQ(received, sent);
}

TEST_P(Messages, CanBePeekedClaimedAndDiscarded) {
  const auto sent = pattern(GetParam());
  std::vector<std::uint8_t> received(GetParam());
  iovec piece{received.data(), received.size()};
  fi_msg_tagged call{&piece, nullptr, 1, FI_ADDR_UNSPEC, 7, 0, context(3), 0};
  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, FI_PEEK), 0);
  EXPECT_EQ(receiver.next_error(receiver.receive_cq).err, FI_ENOMSG);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(fi_tsend(sender.ep, sent.data(), sent.size(), nullptr, 1, 7, context(4)), 0);

  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, FI_PEEK), 0);
  EXPECT_EQ(receiver.next(receiver.receive_cq).len, sent.size());
  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, FI_PEEK | FI_CLAIM), 0);
  EXPECT_EQ(receiver.next(receiver.receive_cq).op_context, context(3));
  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, FI_PEEK | FI_DISCARD), 0);
  EXPECT_EQ(receiver.next(receiver.receive_cq).len, sent.size());
  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, FI_CLAIM), 0);
  ASSERT_EQ(fi_trecvmsg(receiver.ep, &call, 0), 0);
  receiver.drain();
  sender.drain();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(receiver.next(receiver.receive_cq).len, sent.size());
    EXPECT_EQ(received, sent);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sender.next(sender.transmit_cq).op_context, context(4));
  EXPECT_EQ(fi_trecvmsg(receiver.ep, &call, FI_CLAIM), -FI_ENOMSG);
  EXPECT_EQ(network.slots_out(0), 0);
}

// Empty, inline, in a slot, at the eager limit, by rendezvous, and in several puts (100 000 bytes each).
INSTANTIATE_TEST_SUITE_P(Sizes, Messages, ::testing::Values(0, 1, 100, 169, 4096, 4097, 70'000, 350'001));

TEST(MessageOrder, IsThatOfTheSenderForAnyNetworkOrder) {
  std::mt19937 random(5);
  for (int world = 0; world < 10; ++world) {
    FakeNetwork network(2);
    Peer sender(network, 0);
    Peer receiver(network, 1);
    constexpr std::uint32_t count = 200;
    std::vector<std::vector<std::uint8_t>> sent;
    std::vector<std::vector<std::uint8_t>> received(count);
    const bool posts_first = world % 2 == 0;
    const auto post = [&](std::uint32_t i) {
      received[i].resize(10'000);
      ASSERT_EQ(fi_trecv(receiver.ep, received[i].data(), received[i].size(), nullptr, 0, 3, 0, context(i)),
                0);
    };
    if (posts_first) {
      for (std::uint32_t i = 0; i < count; ++i) post(i);
    }
    network.hold(true);
    for (std::uint32_t i = 0; i < count; ++i) {
      sent.push_back(pattern(random() % 6000, i));
      ASSERT_EQ(fi_tsend(sender.ep, sent[i].data(), sent[i].size(), nullptr, 1, 3, nullptr), 0);
    }
    while (network.waiting() > 0) {
      network.release(random() % network.waiting());
      receiver.drain();
    }
    network.hold(false);
    if (!posts_first) {
      for (std::uint32_t i = 0; i < count; ++i) post(i);
    }
    // The clear-to-send messages of the rendezvous were posted while the network was held.
    sender.drain();
    std::vector<bool> seen(count);
    receiver.drain();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto entry = receiver.next(receiver.receive_cq);
      const auto which = reinterpret_cast<std::uintptr_t>(entry.op_context);
      ASSERT_LT(which, count);
      ASSERT_FALSE(seen[which]);
      seen[which] = true;
      ASSERT_EQ(entry.len, sent[which].size());
      received[which].resize(entry.len);
      ASSERT_EQ(received[which], sent[which]);
    }
    EXPECT_EQ(network.slots_out(0), 0);
  }
}

TEST(Receives, AcceptOnlyTheSourceTheyName) {
  FakeNetwork network(3);
  Peer first(network, 0);
  Peer second(network, 1);
  Peer receiver(network, 2);
  char from_second = 0;
  ASSERT_EQ(fi_trecv(receiver.ep, &from_second, 1, nullptr, 1, 0, 0, nullptr), 0);
  ASSERT_EQ(fi_tinject(first.ep, "a", 1, 2, 0), 0);
  receiver.drain();
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq));
  ASSERT_EQ(fi_tinject(second.ep, "b", 1, 2, 0), 0);
  receiver.next(receiver.receive_cq);
  EXPECT_EQ(from_second, 'b');
  EXPECT_EQ(receiver.source, 1U);
}

TEST(Receives, AcceptAnySourceWithoutDirectedReceive) {
  FakeNetwork network(2);
  Peer sender(network, 0);
  Peer receiver(network, 1, {.caps = FI_TAGGED | FI_SEND | FI_RECV});
  char byte = 0;
  ASSERT_EQ(fi_trecv(receiver.ep, &byte, 1, nullptr, 1, 0, 0, nullptr), 0);
  ASSERT_EQ(fi_tinject(sender.ep, "a", 1, 1, 0), 0);
  receiver.next(receiver.receive_cq);
  EXPECT_EQ(byte, 'a');
}

TEST(Receives, AreCancelledOnce) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  char byte = 0;
  ASSERT_EQ(fi_trecv(peer.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, 0, 0, context(1)), 0);
  ASSERT_EQ(fi_recv(peer.ep, &byte, 1, nullptr, 1, context(2)), 0);
  for (const std::uintptr_t which : {2U, 1U}) {
    EXPECT_EQ(fi_cancel(&peer.ep->fid, context(which)), 0);
    const auto error = peer.next_error(peer.receive_cq);
    EXPECT_EQ(error.err, FI_ECANCELED);
    EXPECT_EQ(error.op_context, context(which));
    EXPECT_STREQ(fi_cq_strerror(peer.receive_cq, error.prov_errno, nullptr, nullptr, 0),
                 "the receive was cancelled");
    EXPECT_EQ(fi_cancel(&peer.ep->fid, context(which)), -FI_ENOENT);
  }
}

TEST(Completions, FollowTheBindingsFlags) {
  FakeNetwork network(2);
  Peer sender(network, 0, {.transmit_bind = FI_TRANSMIT | FI_SELECTIVE_COMPLETION});
  char byte = 'x';
  iovec piece{&byte, 1};
  const fi_msg_tagged call{&piece, nullptr, 1, 1, 0, 0, context(1), 0};
  ASSERT_EQ(fi_tsend(sender.ep, &byte, 1, nullptr, 1, 0, context(2)), 0);
  ASSERT_EQ(fi_tsendmsg(sender.ep, &call, 0), 0);
  EXPECT_TRUE(sender.reads_nothing(sender.transmit_cq));
  ASSERT_EQ(fi_tsendmsg(sender.ep, &call, FI_COMPLETION), 0);
  EXPECT_EQ(sender.next(sender.transmit_cq).op_context, context(1));
  EXPECT_TRUE(sender.reads_nothing(sender.transmit_cq));
}

// Open MPI 4.1 reads a queue until it is empty, and only then looks whether its wait has ended.
TEST(Completions, AreReadUntilThereAreNoneInAWait) {
  FakeNetwork network{2};
  Peer sender{network, 0};
  Peer receiver{network, 1};
  const auto sent = pattern(8);
  std::vector<std::uint8_t> received(16);
  for (std::uintptr_t i = 1; i <= 2; ++i) {
    ASSERT_EQ(fi_trecv(receiver.ep, received.data(), 8, nullptr, 0, 1, 0, context(i)), 0);
    ASSERT_EQ(fi_tsend(sender.ep, sent.data(), sent.size(), nullptr, 1, 1, nullptr), 0);
  }
  const ipc::Waiting waiting(receiver.client.progress());
  EXPECT_EQ(receiver.next(receiver.receive_cq).op_context, context(1));
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq)) << "took an event after the one waited for";
  EXPECT_EQ(receiver.next(receiver.receive_cq).op_context, context(2));
}

TEST(Completions, TimeOutInVirtualTime) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  fi_cq_tagged_entry entry;
  const std::int64_t before_ps = peer.client.block().clock.now_ps();
  EXPECT_EQ(fi_cq_sread(peer.receive_cq, &entry, 1, nullptr, 3), -FI_EAGAIN);
  EXPECT_EQ(peer.client.block().clock.now_ps() - before_ps, 3'000'000'000);
}

TEST(Time, IsChargedStepByStep) {
  FakeNetwork network(2);
  ipc::SoftwareCosts& costs = network.header().rails[0].mpi.software;
  costs.send = Time::from_ps(1);
  costs.receive = Time::from_ps(10);
  costs.after_receive = Time::from_ps(100);
  costs.completion = Time::from_ps(1000);
  costs.rendezvous = Time::from_ps(10'000);
  costs.publish = Time::from_ps(100'000);
  Peer sender(network, 0);
  Peer receiver(network, 1);
  std::vector<std::uint8_t> memory(5000);
  const auto clock = [](const Peer& peer) { return peer.client.block().clock.now_ps(); };

  const std::int64_t start_ps = clock(receiver);
  ASSERT_EQ(fi_trecv(receiver.ep, memory.data(), 8, nullptr, 0, 0, 0, nullptr), 0);
  EXPECT_EQ(clock(receiver), start_ps);
  ASSERT_EQ(fi_tinject(sender.ep, memory.data(), 8, 1, 0), 0);
  EXPECT_EQ(clock(sender), 1);
  receiver.next(receiver.receive_cq);
  EXPECT_EQ(clock(receiver), 1 + FakeNetwork::latency_ps + 10);
  // The receive buffer is reposted at the next look of the program, not before the program can answer.
  ASSERT_EQ(fi_tinject(receiver.ep, memory.data(), 8, 0, 0), 0);
  EXPECT_EQ(clock(receiver), 1 + FakeNetwork::latency_ps + 11);
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq));
  EXPECT_EQ(clock(receiver), 1 + FakeNetwork::latency_ps + 111);

  sender.drain();
  const std::int64_t sends_ps = clock(sender);
  ASSERT_EQ(fi_tsend(sender.ep, memory.data(), 5000, nullptr, 1, 1, nullptr), 0);
  EXPECT_EQ(clock(sender) - sends_ps, 10'000 + 1);  // request to send
  receiver.drain();
  const std::int64_t matches_ps = clock(receiver);
  std::vector<std::uint8_t> room(5000);
  ASSERT_EQ(fi_trecv(receiver.ep, room.data(), 5000, nullptr, 0, 1, 0, nullptr), 0);
  // received, published, answered
  EXPECT_EQ(clock(receiver) - matches_ps, 10 + 10'000 + 100'000 + 10'000 + 1);
  const std::int64_t answered_ps = clock(receiver);
  sender.next(sender.transmit_cq);
  // answer taken, put posted, buffer of the answer given back, completion taken
  EXPECT_EQ(clock(sender),
            answered_ps + FakeNetwork::latency_ps + 10 + 10'000 + 1 + FakeNetwork::latency_ps + 1000);
}

TEST(WaitNote, DescribesWhatAProcessWaitsFor) {
  FakeNetwork network(3);
  Peer peer(network, 0);
  std::vector<std::uint8_t> memory(10'000);
  ASSERT_EQ(fi_trecv(peer.ep, memory.data(), 1, nullptr, 2, 55, 0, context(1)), 0);
  ASSERT_EQ(fi_trecv(peer.ep, memory.data(), 1, nullptr, FI_ADDR_UNSPEC, 56, 0, context(2)), 0);
  ASSERT_EQ(fi_tsend(peer.ep, memory.data(), memory.size(), nullptr, 1, 0, nullptr), 0);
  peer.drain();
  const ipc::WaitNote& note = peer.client.block().note;
  EXPECT_EQ(note.receives, 2U);
  EXPECT_EQ(note.receive_source, 2);
  EXPECT_EQ(note.receive_tag, 55U);
  EXPECT_EQ(note.sends, 1U);
  EXPECT_EQ(note.send_target, 1);
  fi_cancel(&peer.ep->fid, context(1));
  peer.drain();
  EXPECT_EQ(note.receives, 1U);
  EXPECT_EQ(note.receive_source, -1);
}

}  // namespace
}  // namespace apenet::test
