#include <gtest/gtest.h>
#include <rdma/fi_collective.h>

#include <array>
#include <cstring>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

using libfabric::EndpointName;

TEST(AddressVector, GivesNumbersInOrderAndTellsNamesBack) {
  FakeNetwork network(4);
  Peer peer(network, 0);
  EndpointName name;
  std::size_t length = sizeof(name);
  ASSERT_EQ(fi_av_lookup(peer.av, 3, &name, &length), 0);
  EXPECT_EQ(length, sizeof(name));
  EXPECT_EQ(name.rank, 3U);
  char text[64];
  std::size_t room = sizeof(text);
  EXPECT_STREQ(fi_av_straddr(peer.av, &name, text, &room), "apenet://rank/3/endpoint/0");
  EXPECT_EQ(room, std::strlen(text) + 1);
}

TEST(AddressVector, RefusesWhatIsNoEndpointOfThisSimulation) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  std::array<EndpointName, 3> names{EndpointName{.rank = 1, .endpoint = 1}, EndpointName{.magic = 1},
                                    EndpointName{.rank = 2}};
  std::array<fi_addr_t, 3> addresses{};
  std::array<int, 3> errors{};
  EXPECT_EQ(fi_av_insert(peer.av, names.data(), 3, addresses.data(), FI_SYNC_ERR, errors.data()), 1);
  EXPECT_EQ(addresses[0], 2U);
  EXPECT_EQ(addresses[1], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(addresses[2], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(errors, (std::array<int, 3>{0, FI_EINVAL, FI_EINVAL}));
}

TEST(AddressVector, RemovedAddressesAreNoAddresses) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  fi_addr_t address = 1;
  EXPECT_EQ(fi_av_remove(peer.av, &address, 1, 0), 0);
  EXPECT_EQ(fi_tinject(peer.ep, "x", 1, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(peer.ep, "x", 1, 99, 0), -FI_EINVAL);
}

TEST(Endpoint, NamesItself) {
  FakeNetwork network(2);
  Peer peer(network, 1);
  EXPECT_EQ(peer.client.block().identity.used_provider, 1U);
  std::size_t length = 64;
  EXPECT_EQ(fi_getname(&peer.ep->fid, nullptr, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(EndpointName));
  EndpointName name;
  EXPECT_EQ(fi_getname(&peer.ep->fid, &name, &length), 0);
  EXPECT_EQ(name.rank, 1U);
  EXPECT_EQ(name.endpoint, 0U);
}

TEST(Objects, AreBusyWhileOthersNeedThem) {
  FakeNetwork network(1);
  Peer peer(network, 0);
  EXPECT_EQ(fi_close(&peer.receive_cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.fabric->fid), -FI_EBUSY);
}

TEST(Objects, SayWhatTheyDoNotDo) {
  FakeNetwork network(1);
  Peer peer(network, 0);
  fid_poll* poll_set = nullptr;
  EXPECT_EQ(fi_poll_open(peer.domain, nullptr, &poll_set), -FI_ENOSYS);
  EXPECT_EQ(fi_barrier(peer.ep, 0, nullptr), -FI_ENOSYS);
  fi_cq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(peer.domain, &attributes, &cq, nullptr), -FI_ENOSYS);
  fid_mr* region = nullptr;
  int memory = 0;
  ASSERT_EQ(fi_mr_reg(peer.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 5, 0, &region, nullptr), 0);
  EXPECT_EQ(fi_mr_key(region), 5U);
  fid_mr* second = nullptr;
  EXPECT_EQ(fi_mr_reg(peer.domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 5, 0, &second, nullptr),
            -FI_ENOKEY);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

}  // namespace
}  // namespace apenet::test
