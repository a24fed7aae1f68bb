// Descriptors, poll sets and wait sets, by which a program learns that there is something to read.
#include "api/libfabric/waiting.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

struct Waiting : testing::Test {
  fid_cq* open_cq(const fi_cq_attr& attributes) {
    fi_cq_attr wanted = attributes;
    fid_cq* cq = nullptr;
    EXPECT_EQ(fi_cq_open(other.domain, &wanted, &cq, &cq_context), 0);
    return cq;
  }
  // Opens another endpoint of the second rank, whose receives are reported to this queue.
  fid_ep* open_endpoint(fid_cq* cq) {
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_endpoint(other.domain, other.info, &ep, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep, &other.av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep), 0);
    const libfabric::EndpointName name{.rank = 1, .endpoint = 1};
    EXPECT_EQ(fi_av_insert(one.av, &name, 1, &second, 0, nullptr), 1);
    EXPECT_EQ(fi_trecv(ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
    return ep;
  }

  FakeNetwork network{2};
  Peer one{network, 0};
  Peer other{network, 1};
  fi_addr_t second = 0;
  int cq_context = 0;
  std::uint64_t word = 1;
};

TEST_F(Waiting, ADescriptorBecomesReadableForNews) {
  fi_cq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* cq = open_cq(attributes);
  int descriptor = -1;
  ASSERT_EQ(fi_control(&cq->fid, FI_GETWAIT, &descriptor), 0);
  fid* objects[] = {&cq->fid};
  EXPECT_EQ(fi_trywait(other.fabric, objects, 1), 0);
  pollfd descriptors{.fd = descriptor, .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&descriptors, 1, -1), 1);
  fid_ep* ep = open_endpoint(cq);
  fi_tinject(one.ep, &word, sizeof(word), second, 5);
  other.drain();
  EXPECT_EQ(fi_trywait(other.fabric, objects, 1), -FI_EAGAIN);
  EXPECT_EQ(fi_control(&other.receive_cq->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
}

TEST_F(Waiting, APollSetNamesThoseWithNews) {
  fid_cq* cq = open_cq({});
  fid_ep* ep = open_endpoint(cq);
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(other.domain, nullptr, &set), 0);
  EXPECT_EQ(fi_poll_add(set, &cq->fid, 0), 0);
  EXPECT_EQ(fi_poll_add(set, &other.receive_cq->fid, 0), 0);
  EXPECT_EQ(fi_poll_add(set, &other.av->fid, 0), -FI_EINVAL);
  std::array<void*, 4> contexts{};
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  fi_tinject(one.ep, &word, sizeof(word), second, 5);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 1);
  EXPECT_EQ(contexts[0], &cq_context);
  EXPECT_EQ(fi_poll_del(set, &cq->fid, 0), 0);
  EXPECT_EQ(fi_poll(set, contexts.data(), 4), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
}

TEST_F(Waiting, ACounterHasNewsUntilItIsRead) {
  fid_cntr* counter = nullptr;
  ASSERT_EQ(fi_cntr_open(other.domain, nullptr, &counter, nullptr), 0);
  fid_poll* set = nullptr;
  ASSERT_EQ(fi_poll_open(other.domain, nullptr, &set), 0);
  EXPECT_EQ(fi_poll_add(set, &counter->fid, 0), 0);
  void* context = nullptr;
  EXPECT_EQ(fi_poll(set, &context, 1), 0);
  fi_cntr_add(counter, 3);
  EXPECT_EQ(fi_poll(set, &context, 1), 1);
  EXPECT_EQ(fi_cntr_read(counter), 3U);
  EXPECT_EQ(fi_poll(set, &context, 1), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
  EXPECT_EQ(fi_close(&counter->fid), 0);
}

TEST_F(Waiting, AWaitSetWaitsInVirtualTime) {
  fi_wait_attr wanted{};
  wanted.wait_obj = FI_WAIT_UNSPEC;
  fid_wait* set = nullptr;
  ASSERT_EQ(fi_wait_open(other.fabric, &wanted, &set), 0);
  fi_cq_attr attributes{};
  attributes.wait_obj = FI_WAIT_SET;
  attributes.wait_set = set;
  fid_cq* cq = open_cq(attributes);
  EXPECT_EQ(fi_close(&set->fid), -FI_EBUSY);
  EXPECT_EQ(fi_wait(set, 2), -FI_ETIMEDOUT);
  EXPECT_GE(other.client.clock_ps(), 2'000'000'000);
  fid_ep* ep = open_endpoint(cq);
  fi_tinject(one.ep, &word, sizeof(word), second, 5);
  EXPECT_EQ(fi_wait(set, -1), 0);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&cq->fid), 0);
  EXPECT_EQ(fi_close(&set->fid), 0);
}

TEST_F(Waiting, UnsupportedWaitObjectsAreRefused) {
  fi_cq_attr attributes{};
  fid_cq* cq = nullptr;
  for (const fi_wait_obj wait : {FI_WAIT_MUTEX_COND, FI_WAIT_SET, FI_WAIT_POLLFD}) {
    attributes.wait_obj = wait;
    EXPECT_EQ(fi_cq_open(other.domain, &attributes, &cq, nullptr), -FI_ENOSYS);
  }
}

}  // namespace
}  // namespace apenet::test
