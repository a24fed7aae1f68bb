#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

constexpr std::size_t rendezvous_bytes = 9000;

// An endpoint at the peer's domain that shares both contexts, with a receive queue of its own.
class Sharing {
 public:
  Sharing(Peer& peer, fid_stx* transmit, fid_ep* receive) {
    fi_info info = *peer.info;
    fi_ep_attr attributes = *peer.info->ep_attr;
    attributes.tx_ctx_cnt = attributes.rx_ctx_cnt = FI_SHARED_CONTEXT;
    info.ep_attr = &attributes;
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    EXPECT_EQ(fi_cq_open(peer.domain, &cq_attributes, &cq, nullptr), 0);
    EXPECT_EQ(fi_endpoint(peer.domain, &info, &ep, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &peer.av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &peer.transmit_cq->fid, FI_TRANSMIT), 0);
    EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_RECV), 0);
    if (transmit != nullptr) {
      EXPECT_EQ(fi_ep_bind(ep, &transmit->fid, 0), 0);
    }
    if (receive != nullptr) {
      EXPECT_EQ(fi_ep_bind(ep, &receive->fid, 0), 0);
    }
  }
  ~Sharing() {
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(fi_close(&cq->fid), 0);
  }
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
};

class SharedContexts : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(fi_stx_context(receiver.domain, nullptr, &transmit, nullptr), 0);
    ASSERT_EQ(fi_srx_context(receiver.domain, nullptr, &shared, nullptr), 0);
    for (auto& sharing : endpoints) {
      sharing.emplace(receiver, transmit, shared);
      ASSERT_EQ(fi_enable(sharing->ep), 0);
    }
    for (std::uint32_t number : {1, 2}) {
      const libfabric::EndpointName name{.rank = 1, .endpoint = number};
      ASSERT_EQ(fi_av_insert(sender.av, &name, 1, &addresses[number - 1], 0, nullptr), 1);
    }
  }
  void TearDown() override {
    for (auto& sharing : endpoints) sharing.reset();
    EXPECT_EQ(fi_close(&shared->fid), 0);
    EXPECT_EQ(fi_close(&transmit->fid), 0);
  }
  void send(std::size_t to, const std::vector<std::uint8_t>& bytes) {
    ASSERT_EQ(fi_send(sender.ep, bytes.data(), bytes.size(), nullptr, addresses[to], nullptr), 0);
  }
  void post(std::vector<std::uint8_t>& buffer) {
    ASSERT_EQ(fi_recv(shared, buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &buffer), 0);
  }
  // The next completion of endpoint `at` is of this buffer, which now begins with these bytes.
  void expect(std::size_t at, std::vector<std::uint8_t>& buffer, const std::vector<std::uint8_t>& bytes) {
    const auto entry = receiver.next(endpoints[at]->cq);
    EXPECT_EQ(entry.op_context, &buffer);
    ASSERT_EQ(entry.len, bytes.size());
    EXPECT_EQ(std::memcmp(buffer.data(), bytes.data(), bytes.size()), 0);
  }

  FakeNetwork network{2};
  Peer sender{network, 0};
  Peer receiver{network, 1};
  fid_stx* transmit = nullptr;
  fid_ep* shared = nullptr;
  std::array<std::optional<Sharing>, 2> endpoints;
  std::array<fi_addr_t, 2> addresses{};
  std::vector<std::uint8_t> first = std::vector<std::uint8_t>(rendezvous_bytes);
  std::vector<std::uint8_t> second = std::vector<std::uint8_t>(rendezvous_bytes);
};

TEST_F(SharedContexts, GiveTheirReceivesToTheEndpointsMessagesInTurn) {
  post(first);
  post(second);
  send(1, pattern(100, 1));
  send(0, pattern(100, 2));
  receiver.drain();
  expect(1, first, pattern(100, 1));
  expect(0, second, pattern(100, 2));
  for (const auto& sharing : endpoints) EXPECT_TRUE(receiver.reads_nothing(sharing->cq));
  EXPECT_TRUE(receiver.reads_nothing(receiver.receive_cq));
}

TEST_F(SharedContexts, TakeEarlyMessages) {
  send(1, pattern(100, 1));
  send(0, pattern(200, 2));
  receiver.drain();
  post(first);
  post(second);
  expect(1, first, pattern(100, 1));
  expect(0, second, pattern(200, 2));
}

TEST_F(SharedContexts, TakeLargeMessages) {
  const auto to_second = pattern(rendezvous_bytes, 1);
  const auto to_first = pattern(rendezvous_bytes, 2);
  post(first);
  send(1, to_second);
  send(0, to_first);
  receiver.drain();
  post(second);
  sender.drain();
  receiver.drain();
  expect(1, first, to_second);
  expect(0, second, to_first);
}

TEST_F(SharedContexts, MatchTags) {
  const auto bytes = pattern(10, 1);
  ASSERT_EQ(fi_trecv(shared, first.data(), 10, nullptr, FI_ADDR_UNSPEC, 7, 0, &first), 0);
  ASSERT_EQ(fi_trecv(shared, second.data(), 10, nullptr, FI_ADDR_UNSPEC, 8, 0, &second), 0);
  ASSERT_EQ(fi_tsend(sender.ep, bytes.data(), 10, nullptr, addresses[0], 8, nullptr), 0);
  ASSERT_EQ(fi_tsend(sender.ep, bytes.data(), 10, nullptr, addresses[0], 7, nullptr), 0);
  receiver.drain();
  expect(0, second, bytes);
  expect(0, first, bytes);
}

TEST_F(SharedContexts, FillMultiReceives) {
  const std::size_t least = 300;
  ASSERT_EQ(fi_setopt(&shared->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)), 0);
  iovec piece{first.data(), 1000};
  const fi_msg call{&piece, nullptr, 1, FI_ADDR_UNSPEC, &first, 0};
  ASSERT_EQ(fi_recvmsg(shared, &call, FI_MULTI_RECV), 0);
  send(0, pattern(400, 1));
  send(1, pattern(400, 2));
  receiver.drain();
  expect(0, first, pattern(400, 1));
  const auto last = receiver.next(endpoints[1]->cq);
  EXPECT_EQ(last.buf, first.data() + 400);
  EXPECT_NE(last.flags & FI_MULTI_RECV, 0U);
}

TEST_F(SharedContexts, LeaveOtherEndpointsAlone) {
  post(first);
  const auto bytes = pattern(50, 3);
  ASSERT_EQ(fi_send(sender.ep, bytes.data(), bytes.size(), nullptr, 1, nullptr), 0);
  receiver.drain();
  EXPECT_EQ(fi_recv(receiver.ep, second.data(), 50, nullptr, FI_ADDR_UNSPEC, &second), 0);
  EXPECT_EQ(receiver.next(receiver.receive_cq).op_context, &second);
  for (const auto& sharing : endpoints) EXPECT_TRUE(receiver.reads_nothing(sharing->cq));
}

TEST_F(SharedContexts, SendThroughEitherEndpoint) {
  std::vector<std::uint8_t> buffer(10);
  const auto bytes = pattern(10, 4);
  ASSERT_EQ(fi_recv(sender.ep, buffer.data(), 10, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(endpoints[1]->ep, bytes.data(), 10, nullptr, 0, nullptr), 0);
  sender.drain();
  EXPECT_EQ(sender.next(sender.receive_cq).len, 10U);
  EXPECT_EQ(buffer, bytes);
}

TEST_F(SharedContexts, DropWhatIsForAClosedEndpointOnly) {
  const auto large = pattern(rendezvous_bytes, 2);
  send(0, pattern(100, 1));
  send(1, large);
  receiver.drain();
  post(first);
  expect(0, first, pattern(100, 1));
  send(0, pattern(100, 3));
  receiver.drain();
  endpoints[1].reset();
  post(second);
  expect(0, second, pattern(100, 3));
  sender.drain();
  EXPECT_EQ(network.slots_out(0), 0);
}

TEST_F(SharedContexts, AreBusyWhileAnEndpointUsesThem) {
  EXPECT_EQ(fi_close(&shared->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&transmit->fid), -FI_EBUSY);
}

TEST_F(SharedContexts, RefuseReceivesAtTheirEndpoints) {
  fid_ep* ep = endpoints[0]->ep;
  EXPECT_EQ(fi_recv(ep, first.data(), 10, nullptr, FI_ADDR_UNSPEC, nullptr), -FI_EOPBADSTATE);
  iovec piece{first.data(), 10};
  const fi_msg_tagged peek{&piece, nullptr, 1, FI_ADDR_UNSPEC, 0, 0, nullptr, 0};
  EXPECT_EQ(fi_trecvmsg(ep, &peek, FI_PEEK), -FI_EOPBADSTATE);
  EXPECT_EQ(fi_trecvmsg(shared, &peek, FI_PEEK), -FI_ENOSYS);
  EXPECT_EQ(fi_send(shared, first.data(), 10, nullptr, 0, nullptr), -FI_ENOSYS);
}

TEST_F(SharedContexts, AreExpectedOfAnEndpointThatShares) {
  const Sharing without_receive(receiver, transmit, nullptr);
  EXPECT_EQ(fi_enable(without_receive.ep), -FI_EOPBADSTATE);
  const Sharing without_transmit(receiver, nullptr, shared);
  EXPECT_EQ(fi_enable(without_transmit.ep), -FI_EOPBADSTATE);
}

TEST_F(SharedContexts, ForReceivesAreRefusedByAnEndpointThatDoesNotShare) {
  EXPECT_EQ(fi_ep_bind(receiver.ep, &shared->fid, 0), -FI_EINVAL);
}

TEST_F(SharedContexts, ForTransmitsAreNotHeldByAnEndpointThatDoesNotShare) {
  fid_stx* other = nullptr;
  ASSERT_EQ(fi_stx_context(receiver.domain, nullptr, &other, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(receiver.ep, &other->fid, 0), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
}

TEST_F(SharedContexts, BelongToOneDomain) {
  fid_domain* other = nullptr;
  ASSERT_EQ(fi_domain(receiver.fabric, receiver.info, &other, nullptr), 0);
  fid_ep* theirs = nullptr;
  fid_stx* their_transmit = nullptr;
  ASSERT_EQ(fi_srx_context(other, nullptr, &theirs, nullptr), 0);
  ASSERT_EQ(fi_stx_context(other, nullptr, &their_transmit, nullptr), 0);
  {
    const Sharing sharing(receiver, nullptr, nullptr);
    EXPECT_EQ(fi_ep_bind(sharing.ep, &theirs->fid, 0), -FI_EINVAL);
    EXPECT_EQ(fi_ep_bind(sharing.ep, &their_transmit->fid, 0), -FI_EINVAL);
  }
  EXPECT_EQ(fi_close(&theirs->fid), 0);
  EXPECT_EQ(fi_close(&their_transmit->fid), 0);
  EXPECT_EQ(fi_close(&other->fid), 0);
}

TEST_F(SharedContexts, TakeWhatCameBeforeTheyWereBound) {
  Sharing late(receiver, transmit, nullptr);
  const libfabric::EndpointName name{.rank = 1, .endpoint = 3};
  ASSERT_EQ(fi_av_insert(sender.av, &name, 1, addresses.data(), 0, nullptr), 1);
  const auto large = pattern(rendezvous_bytes, 1);
  send(0, large);
  send(0, pattern(100, 2));
  receiver.drain();
  post(first);
  ASSERT_EQ(fi_ep_bind(late.ep, &shared->fid, 0), 0);
  post(second);
  EXPECT_EQ(receiver.next(late.cq).op_context, &second);
  sender.drain();
  receiver.drain();
  EXPECT_EQ(receiver.next(late.cq).op_context, &first);
}

TEST(SharedContext, ForDirectedReceivesIsRefused) {
  FakeNetwork network{1};
  Peer peer{network, 0};
  fi_rx_attr attributes{};
  attributes.caps = FI_RECV | FI_DIRECTED_RECV;
  fid_ep* context = nullptr;
  EXPECT_EQ(fi_srx_context(peer.domain, &attributes, &context, nullptr), -FI_ENOSYS);
}

}  // namespace
}  // namespace apenet::test
