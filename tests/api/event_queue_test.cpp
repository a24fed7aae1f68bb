// Event queues and their events: from the program, from address insertions, and from memory registrations.
#include "api/libfabric/eq.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

class EventQueueTest : public testing::Test {
 protected:
  fid_eq* open(std::uint64_t flags, fi_wait_obj wait = FI_WAIT_NONE) {
    fi_eq_attr attributes{};
    attributes.flags = flags;
    attributes.wait_obj = wait;
    fid_eq* eq = nullptr;
    EXPECT_EQ(fi_eq_open(peer.fabric, &attributes, &eq, nullptr), 0);
    return eq;
  }
  // Reads the next event of the queue.
  fi_eq_entry next(fid_eq* eq, std::uint32_t expected, std::uint64_t flags = 0) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), flags), ssize_t{sizeof(entry)});
    EXPECT_EQ(event, expected);
    return entry;
  }
  static bool is_readable(int descriptor) {
    pollfd descriptors{.fd = descriptor, .events = POLLIN, .revents = 0};
    return poll(&descriptors, 1, 0) == 1;
  }

  FakeNetwork network{2};
  Peer peer{network, 0};
};

TEST_F(EventQueueTest, ReturnsTheProgramsEventsInOrder) {
  fid_eq* eq = open(FI_WRITE);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const fi_eq_entry entry{&eq->fid, nullptr, i};
    EXPECT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), ssize_t{sizeof(entry)});
  }
  EXPECT_EQ(next(eq, FI_NOTIFY, FI_PEEK).data, 0U);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(next(eq, FI_NOTIFY).data, i);
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
  fi_eq_err_entry error{};
  EXPECT_EQ(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, RefusesOperationsThatItWasNotOpenedFor) {
  fid_eq* eq = open(0);
  const fi_eq_entry entry{};
  EXPECT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EINVAL);
  int descriptor = 0;
  EXPECT_EQ(fi_control(&eq->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
  EXPECT_EQ(fi_close(&eq->fid), 0);
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_MUTEX_COND;
  EXPECT_EQ(fi_eq_open(peer.fabric, &attributes, &eq, nullptr), -FI_ENOSYS);
}

TEST_F(EventQueueTest, KeepsEventsThatDoNotFitTheBuffer) {
  fid_eq* eq = open(FI_WRITE);
  const fi_eq_entry entry{&eq->fid, nullptr, 7};
  fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  std::uint32_t event = 0;
  char small = 0;
  EXPECT_EQ(fi_eq_read(eq, &event, &small, sizeof(small), 0), -FI_ETOOSMALL);
  EXPECT_EQ(next(eq, FI_NOTIFY).data, 7U);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, DescriptorIsReadableWhileThereAreEvents) {
  fid_eq* eq = open(FI_WRITE, FI_WAIT_FD);
  int descriptor = -1;
  ASSERT_EQ(fi_control(&eq->fid, FI_GETWAIT, &descriptor), 0);
  EXPECT_FALSE(is_readable(descriptor));
  const fi_eq_entry entry{};
  fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0);
  EXPECT_TRUE(is_readable(descriptor));
  next(eq, FI_NOTIFY, FI_PEEK);
  EXPECT_TRUE(is_readable(descriptor));
  next(eq, FI_NOTIFY);
  EXPECT_FALSE(is_readable(descriptor));
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, ReportsInsertionsAndNamesTheOneThatFailed) {
  fid_eq* eq = open(0);
  fi_av_attr attributes{};
  attributes.flags = FI_EVENT;
  fid_av* av = nullptr;
  ASSERT_EQ(fi_av_open(peer.domain, &attributes, &av, nullptr), 0);
  std::array<libfabric::EndpointName, 2> names{};
  names[1].rank = 77;
  std::array<fi_addr_t, 2> addresses{};
  int context = 0;
  EXPECT_EQ(fi_av_insert(av, names.data(), 2, addresses.data(), 0, &context), -FI_ENOEQ);
  ASSERT_EQ(fi_av_bind(av, &eq->fid, 0), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_av_insert(av, names.data(), 2, addresses.data(), 0, &context), 0);

  fi_eq_entry entry{};
  std::uint32_t event = 0;
  EXPECT_EQ(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
  fi_eq_err_entry error{};
  ASSERT_EQ(fi_eq_readerr(eq, &error, 0), ssize_t{sizeof(error)});
  EXPECT_EQ(error.fid, &av->fid);
  EXPECT_EQ(error.context, &context);
  EXPECT_EQ(error.data, 1U);
  EXPECT_EQ(error.err, FI_EINVAL);
  EXPECT_STREQ(fi_eq_strerror(eq, error.prov_errno, nullptr, nullptr, 0),
               "the address is not that of an endpoint of this simulation");
  entry = next(eq, FI_AV_COMPLETE);
  EXPECT_EQ(entry.fid, &av->fid);
  EXPECT_EQ(entry.context, &context);
  EXPECT_EQ(entry.data, 1U);
  EXPECT_NE(addresses[0], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(addresses[1], FI_ADDR_NOTAVAIL);
  EXPECT_EQ(fi_close(&av->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, ReportsRegistrationsIfTheDomainIsBound) {
  fid_eq* eq = open(0);
  fid_domain* domain = nullptr;
  ASSERT_EQ(fi_domain(peer.fabric, peer.info, &domain, nullptr), 0);
  ASSERT_EQ(fi_domain_bind(domain, &eq->fid, FI_REG_MR), 0);
  int memory = 0;
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(domain, &memory, sizeof(memory), FI_REMOTE_WRITE, 0, 1, 0, &region, &memory), 0);
  const fi_eq_entry entry = next(eq, FI_MR_COMPLETE);
  EXPECT_EQ(entry.fid, &region->fid);
  EXPECT_EQ(entry.context, &memory);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), -FI_EBUSY);
  EXPECT_EQ(fi_close(&domain->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, GetsNoEventsFromAnEndpoint) {
  fid_eq* eq = open(0);
  fid_ep* ep = nullptr;
  ASSERT_EQ(fi_endpoint(peer.domain, peer.info, &ep, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), 0, 0), -FI_EAGAIN);
  EXPECT_EQ(fi_close(&ep->fid), 0);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

TEST_F(EventQueueTest, WaitsInVirtualTime) {
  fid_eq* eq = open(0);
  ASSERT_TRUE(peer.client.started());
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  EXPECT_EQ(fi_eq_sread(eq, &event, &entry, sizeof(entry), 3, 0), -FI_EAGAIN);
  EXPECT_GE(peer.client.clock_ps(), 3'000'000'000);
  EXPECT_EQ(fi_close(&eq->fid), 0);
}

}  // namespace
}  // namespace apenet::test
