// Several cards in a node: a domain for each.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "api/libfabric/info.hpp"
#include "api/peer.hpp"

namespace apenet::test {
namespace {

using Info = std::unique_ptr<fi_info, decltype(&libfabric::free_info)>;

void add_rail(FakeNetwork& network, const char* name) {
  ipc::Header& header = network.header();
  std::strncpy(header.rails[header.rail_count].name, name, sizeof(header.rails[0].name) - 1);
  ++header.rail_count;
}

Info ask(FakeNetwork& network, const fi_info* hints) {
  return {libfabric::make_info(FI_VERSION(1, 17), hints, network.header()), libfabric::free_info};
}

TEST(RailInfo, OneRailHasOneEntryWithoutACard) {
  FakeNetwork network{2};
  const Info info = ask(network, nullptr);
  EXPECT_EQ(info->next, nullptr);
  EXPECT_EQ(info->nic, nullptr);
}

TEST(RailInfo, EachRailHasADomainAndACard) {
  FakeNetwork network{2};
  add_rail(network, "ib");
  const Info info = ask(network, nullptr);
  ASSERT_NE(info->next, nullptr);
  EXPECT_EQ(info->next->next, nullptr);
  EXPECT_STREQ(info->domain_attr->name, "apenet");
  EXPECT_STREQ(info->next->domain_attr->name, "apenet-ib");
  EXPECT_STREQ(info->next->fabric_attr->name, "apenet-ib");
  ASSERT_NE(info->nic, nullptr);
  ASSERT_NE(info->next->nic, nullptr);
  EXPECT_EQ(info->nic->bus_attr->bus_type, FI_BUS_PCI);
  EXPECT_NE(
      std::memcmp(&info->nic->bus_attr->attr.pci, &info->next->nic->bus_attr->attr.pci, sizeof(fi_pci_attr)),
      0)
      << "programs take cards at one place for one card";
  fid_nic* copy = nullptr;
  ASSERT_EQ(fi_control(&info->next->nic->fid, FI_DUP, &copy), 0);
  EXPECT_STREQ(copy->device_attr->name, "apenet-ib");
  EXPECT_NE(copy->device_attr, info->next->nic->device_attr);
  EXPECT_EQ(fi_close(&copy->fid), 0);
}

TEST(RailInfo, ADomainIsChosenByItsName) {
  FakeNetwork network{2};
  add_rail(network, "ib");
  char name[] = "apenet-ib";
  fi_domain_attr domain{};
  domain.name = name;
  domain.mr_mode = FI_MR_VIRT_ADDR;
  fi_info hints{};
  hints.domain_attr = &domain;
  const Info info = ask(network, &hints);
  EXPECT_STREQ(info->domain_attr->name, name);
  EXPECT_EQ(info->next, nullptr);
  name[7] = 'x';
  EXPECT_THROW(ask(network, &hints), libfabric::FabricError);
}

TEST(RailInfo, ARailThatCannotIsLeftOut) {
  FakeNetwork network{2};
  add_rail(network, "ib");
  network.header().rails[0].get_supported = 0;
  fi_info hints{};
  hints.caps = FI_RMA | FI_READ;
  const Info info = ask(network, &hints);
  EXPECT_STREQ(info->domain_attr->name, "apenet-ib");
  EXPECT_EQ(info->next, nullptr);
}

// Peers whose first domain is that of a rail.
class PeersOfRails : public ::testing::Test {
 protected:
  PeersOfRails() { add_rail(network, "ib"); }
  FakeNetwork network{3};
};

TEST_F(PeersOfRails, RequestsSayWhichCardCarriesThem) {
  Peer first{network, 0};
  Peer second{network, 1, {.rail = 1}};
  Peer third{network, 2, {.rail = 1}};
  int word = 7;
  int received = 0;
  ASSERT_EQ(fi_recv(third.ep, &received, sizeof(received), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(second.ep, &word, sizeof(word), nullptr, 2, nullptr), 0);
  third.drain();
  EXPECT_EQ(third.next(third.receive_cq).len, sizeof(word));
  EXPECT_EQ(received, 7);
  ASSERT_EQ(network.posted().size(), 1U);
  EXPECT_EQ(network.posted()[0].rail, 1);
}

TEST_F(PeersOfRails, ARegistrationCostsWhatItsCardDemands) {
  network.header().rails[0].mpi.software.publish = Time::from_ps(1000);
  network.header().rails[1].mpi.software.publish = Time::from_ps(20);
  Peer peer{network, 0, {.rail = 1}};
  const std::int64_t before_ps = peer.client.block().clock.now_ps();
  int memory = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(peer.domain, &memory, sizeof(memory), FI_SEND, 0, 5, 0, &region, nullptr), 0);
  EXPECT_EQ(peer.client.block().clock.now_ps() - before_ps, 20);
  EXPECT_EQ(fi_close(&region->fid), 0);
}

TEST_F(PeersOfRails, NoLinkLeadsToAnotherNetwork) {
  Peer first{network, 0};
  Peer second{network, 1, {.rail = 1}};
  libfabric::EndpointName name;
  std::size_t length = sizeof(name);
  network.become(1);
  ASSERT_EQ(fi_getname(&second.ep->fid, &name, &length), 0);
  network.become(0);
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(first.av, &name, 1, &address, 0, nullptr), 1);
  int word = 7;
  EXPECT_EQ(fi_send(first.ep, &word, sizeof(word), nullptr, address, nullptr), -FI_EHOSTUNREACH);
  EXPECT_TRUE(network.posted().empty());
}

// As MPI libraries do: in one round they poll the queues of all cards, then look at what these brought.
TEST_F(PeersOfRails, APollDoesNotWaitBeforeTheProgramHasSeenWhatAnotherCardBrought) {
  Peer first{network, 0};
  Peer second{network, 0, {.rail = 1}};
  Peer near{network, 1};
  Peer far{network, 2, {.rail = 1}};
  const libfabric::EndpointName name{.rank = 0, .endpoint = 1, .rail = 1};
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  ASSERT_EQ(fi_av_insert(far.av, &name, 1, &address, 0, nullptr), 1);
  int words[2] = {};
  ASSERT_EQ(fi_recv(first.ep, &words[0], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_recv(second.ep, &words[1], sizeof(int), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  const int word = 7;
  ASSERT_EQ(fi_send(near.ep, &word, sizeof(word), nullptr, 0, nullptr), 0);
  far.client.charge(10'000'000);
  ASSERT_EQ(fi_send(far.ep, &word, sizeof(word), nullptr, address, nullptr), 0);

  first.client.progress().begin_wait();
  fi_cq_tagged_entry entry{};
  ASSERT_EQ(fi_cq_read(first.receive_cq, &entry, 1), 1);
  const std::int64_t visible_ps = first.client.block().clock.now_ps();
  EXPECT_EQ(fi_cq_read(second.receive_cq, &entry, 1), -FI_EAGAIN);
  EXPECT_EQ(first.client.block().clock.now_ps(), visible_ps) << "the program has not asked for more";
  EXPECT_EQ(fi_cq_read(first.receive_cq, &entry, 1), -FI_EAGAIN) << "empties the queue";
  EXPECT_EQ(first.client.block().clock.now_ps(), visible_ps) << "the program may have what it waits for";
  EXPECT_EQ(fi_cq_read(first.receive_cq, &entry, 1), -FI_EAGAIN) << "waits: for the other card's message";
  EXPECT_GT(first.client.block().clock.now_ps(), visible_ps);
  EXPECT_EQ(fi_cq_read(second.receive_cq, &entry, 1), 1);
  first.client.progress().end_wait();
  EXPECT_EQ(words[0], 7);
  EXPECT_EQ(words[1], 7);
}

}  // namespace
}  // namespace apenet::test
