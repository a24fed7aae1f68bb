#include <gtest/gtest.h>
#include <rdma/fi_collective.h>

#include <array>
#include <cstring>

#include "api/libfabric/guard.hpp"
#include "api/libfabric/names.hpp"
#include "api/peer.hpp"

namespace apenet::test {
namespace {

using libfabric::EndpointName;

TEST(AddressVector, NumbersAddressesInOrderAndReturnsTheirNames) {
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

TEST(AddressVector, RefusesNamesThatAreNoEndpointsOfThisSimulation) {
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

TEST(AddressVector, RemovedAddressesAreInvalid) {
  FakeNetwork network(2);
  Peer peer(network, 0);
  fi_addr_t address = 1;
  EXPECT_EQ(fi_av_remove(peer.av, &address, 1, 0), 0);
  EXPECT_EQ(fi_tinject(peer.ep, "x", 1, 1, 0), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(peer.ep, "x", 1, 99, 0), -FI_EINVAL);
}

TEST(Endpoint, HasItsName) {
  FakeNetwork network(2);
  Peer peer(network, 1);
  EXPECT_EQ(peer.client.block().identity.used_network, 1U);
  std::size_t length = 64;
  EXPECT_EQ(fi_getname(&peer.ep->fid, nullptr, &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, sizeof(EndpointName));
  EndpointName name;
  EXPECT_EQ(fi_getname(&peer.ep->fid, &name, &length), 0);
  EXPECT_EQ(name.rank, 1U);
  EXPECT_EQ(name.endpoint, 0U);
}

TEST(Names, AreNumbersOrDenoteTheFirstRank) {
  const auto name = [](const char* node, const char* service) {
    const EndpointName found = libfabric::endpoint_name(node, service, 4);
    return std::array<std::uint32_t, 2>{found.rank, found.endpoint};
  };
  using Found = std::array<std::uint32_t, 2>;
  EXPECT_EQ(name("3", nullptr), (Found{3, 0}));
  EXPECT_EQ(name("localhost", "9228"), (Found{0, 9228}));
  EXPECT_EQ(name("127.0.0.1", "7"), (Found{0, 7}));
  EXPECT_EQ(name(nullptr, "65535"), (Found{0, 65535}));
  EXPECT_EQ(name("apenet://rank/2/endpoint/5", nullptr), (Found{2, 5}));
  for (const char* wrong :
       {"4", "-1", "host", "", "1x", "apenet://rank/4/endpoint/0", "apenet://rank/1/endpoint/"})
    EXPECT_THROW(name(wrong, nullptr), libfabric::FabricError) << wrong;
  for (const char* wrong : {"65536", "http", ""})
    EXPECT_THROW(name("1", wrong), libfabric::FabricError) << wrong;
}

TEST(Names, OfAnEndpointUseTheRequestedService) {
  FakeNetwork network(2);
  network.become(1);
  fi_info* info = nullptr;
  ASSERT_EQ(libfabric::get_info(FI_VERSION(1, 17), nullptr, "9228", FI_SOURCE, nullptr, &info), 0);
  EXPECT_EQ(info->dest_addr, nullptr);
  Peer peer(network, 1);
  const auto number = [&peer](fi_info* wanted) {
    fid_ep* ep = nullptr;
    EXPECT_EQ(fi_endpoint(peer.domain, wanted, &ep, nullptr), 0);
    EndpointName name;
    std::size_t length = sizeof(name);
    EXPECT_EQ(fi_getname(&ep->fid, &name, &length), 0);
    EXPECT_EQ(fi_close(&ep->fid), 0);
    EXPECT_EQ(name.rank, 1U);
    return name.endpoint;
  };
  EXPECT_EQ(number(info), 9228U);
  EXPECT_EQ(number(info), 9229U);  // a number is not reused
  EXPECT_EQ(number(peer.info), 9230U);
  libfabric::free_info(info);

  ASSERT_EQ(libfabric::get_info(FI_VERSION(1, 17), "localhost", "9228", 0, nullptr, &info), 0);
  ASSERT_EQ(info->dest_addrlen, sizeof(EndpointName));
  EXPECT_EQ(static_cast<EndpointName*>(info->dest_addr)->rank, 0U);
  EXPECT_EQ(static_cast<EndpointName*>(info->dest_addr)->endpoint, 9228U);
  fi_info* again = nullptr;
  ASSERT_EQ(libfabric::get_info(FI_VERSION(1, 17), nullptr, nullptr, 0, info, &again), 0);
  EXPECT_EQ(std::memcmp(again->dest_addr, info->dest_addr, sizeof(EndpointName)), 0);
  libfabric::free_info(again);
  libfabric::free_info(info);
  EXPECT_EQ(libfabric::get_info(FI_VERSION(1, 17), "nowhere", nullptr, 0, nullptr, &info), -FI_ENODATA);
}

TEST(AddressVector, AcceptsNodesAndServices) {
  FakeNetwork network(4);
  Peer peer(network, 0);
  fi_addr_t address = 0;
  EXPECT_EQ(fi_av_insertsvc(peer.av, "2", "7", &address, 0, nullptr), 1);
  EndpointName name;
  std::size_t length = sizeof(name);
  ASSERT_EQ(fi_av_lookup(peer.av, address, &name, &length), 0);
  EXPECT_EQ(name.rank, 2U);
  EXPECT_EQ(name.endpoint, 7U);
  std::array<fi_addr_t, 6> addresses{};
  EXPECT_EQ(fi_av_insertsym(peer.av, "2", 3, "0", 2, addresses.data(), 0, nullptr), 4);
  ASSERT_EQ(fi_av_lookup(peer.av, addresses[3], &name, &length), 0);
  EXPECT_EQ(name.rank, 3U);
  EXPECT_EQ(name.endpoint, 1U);
  EXPECT_EQ(addresses[4], FI_ADDR_NOTAVAIL);  // rank 4 does not exist
}

TEST(Objects, AreBusyWhileOthersUseThem) {
  FakeNetwork network(1);
  Peer peer(network, 0);
  EXPECT_EQ(fi_close(&peer.receive_cq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.av->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.domain->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&peer.fabric->fid), -FI_EBUSY);
}

TEST(Objects, RefuseUnsupportedOperations) {
  FakeNetwork network(1);
  Peer peer(network, 0);
  EXPECT_EQ(fi_barrier(peer.ep, 0, nullptr), -FI_ENOSYS);
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
