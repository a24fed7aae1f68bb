#include <gtest/gtest.h>

#include <array>

#include "api/peer.hpp"

namespace apenet::test {
namespace {

class RemoteAccess : public ::testing::TestWithParam<std::size_t> {
 protected:
  FakeNetwork network{2};
  Peer origin{network, 0, {.counters = true}};
  Peer target{network, 1};
  OpenMemory all{target, nullptr, SIZE_MAX, FI_REMOTE_READ | FI_REMOTE_WRITE, 0};
};

TEST_P(RemoteAccess, WritesAndReads) {
  auto here = pattern(GetParam());
  std::vector<std::uint8_t> there(GetParam());
  std::vector<std::uint8_t> back(GetParam());
  ASSERT_EQ(fi_write(origin.ep, here.data(), here.size(), nullptr, 1, address_of(there.data()), 0, &here), 0);
  const auto written = origin.next(origin.transmit_cq);
  EXPECT_EQ(written.op_context, &here);
  EXPECT_EQ(written.flags, FI_RMA | FI_WRITE);
  EXPECT_EQ(there, here);
  ASSERT_EQ(fi_read(origin.ep, back.data(), back.size(), nullptr, 1, address_of(there.data()), 0, &back), 0);
  EXPECT_EQ(origin.next(origin.transmit_cq).flags, FI_RMA | FI_READ);
  EXPECT_EQ(back, here);
  EXPECT_EQ(fi_cntr_read(origin.counter), 2U);
  EXPECT_TRUE(target.reads_nothing(target.receive_cq));
}

TEST_P(RemoteAccess, CarriesDataAfterItsLastByte) {
  auto here = pattern(GetParam());
  std::vector<std::uint8_t> there(GetParam());
  ASSERT_EQ(fi_writedata(origin.ep, here.data(), here.size(), nullptr, 0x89abcdef, 1,
                         address_of(there.data()), 0, nullptr),
            0);
  origin.next(origin.transmit_cq);
  const auto entry = target.next(target.receive_cq);
  EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.data, 0x89abcdefU);
  EXPECT_EQ(there, here);
}

TEST_P(RemoteAccess, InjectsWithoutACompletion) {
  auto here = pattern(GetParam());
  const auto expected = here;
  std::vector<std::uint8_t> there(GetParam());
  ASSERT_EQ(fi_inject_write(origin.ep, here.data(), here.size(), 1, address_of(there.data()), 0), 0);
  EXPECT_EQ(fi_cntr_wait(origin.counter, 1, -1), 0);
  EXPECT_EQ(there, expected);
  EXPECT_TRUE(origin.reads_nothing(origin.transmit_cq));
}

// Empty, small, one put, several puts.
INSTANTIATE_TEST_SUITE_P(Sizes, RemoteAccess, ::testing::Values(0, 8, 5000, 250'000));

TEST_F(RemoteAccess, WorksOnScatteredMemory) {
  auto here = pattern(1000);
  std::vector<std::uint8_t> there(1000);
  std::array<iovec, 2> local{iovec{here.data(), 300}, iovec{here.data() + 300, 700}};
  std::array<fi_rma_iov, 2> remote{fi_rma_iov{address_of(there.data()), 900, 0},
                                   fi_rma_iov{address_of(there.data() + 900), 100, 0}};
  fi_msg_rma call{local.data(), nullptr, 2, 1, remote.data(), 2, &here, 0};
  ASSERT_EQ(fi_writemsg(origin.ep, &call, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(origin.next(origin.transmit_cq).op_context, &here);
  EXPECT_EQ(there, here);
  EXPECT_EQ(network.posted().size(), 3U);
  remote[1].len = 99;
  EXPECT_EQ(fi_writemsg(origin.ep, &call, 0), -FI_EINVAL);
}

TEST_F(RemoteAccess, ReportsUnmappedMemory) {
  std::uint64_t word = 1;
  ASSERT_EQ(fi_write(origin.ep, &word, sizeof(word), nullptr, 1, 0, 0, &word), 0);
  const auto error = origin.next_error(origin.transmit_cq);
  EXPECT_EQ(error.err, FI_EFAULT);
  EXPECT_EQ(error.op_context, &word);
  EXPECT_EQ(fi_cntr_readerr(origin.counter), 1U);
  EXPECT_EQ(fi_cntr_wait(origin.counter, 1, 1), -FI_ETIMEDOUT);
}

TEST_F(RemoteAccess, RefusesToReadIfTheCardCannot) {
  network.header().rails[0].get_supported = 0;
  std::uint64_t word = 1;
  EXPECT_EQ(fi_read(origin.ep, &word, sizeof(word), nullptr, 1, address_of(&word), 0, nullptr),
            -FI_EOPNOTSUPP);
}

TEST_F(RemoteAccess, CompletesOnDeliveryUnlessLessIsRequested) {
  std::uint64_t word = 1;
  std::uint64_t there = 0;
  iovec piece{&word, sizeof(word)};
  fi_rma_iov remote{address_of(&there), sizeof(there), 0};
  const fi_msg_rma call{&piece, nullptr, 1, 1, &remote, 1, nullptr, 0};
  const auto flags_of = [&](std::uint64_t flags) {
    EXPECT_EQ(fi_writemsg(origin.ep, &call, flags), 0);
    return network.posted().back().flags;
  };
  EXPECT_EQ(flags_of(0), ipc::want_remote | ipc::by_key);
  EXPECT_EQ(flags_of(FI_DELIVERY_COMPLETE), ipc::want_remote | ipc::by_key);
  EXPECT_EQ(flags_of(FI_TRANSMIT_COMPLETE), ipc::want_remote | ipc::by_key);
  EXPECT_EQ(flags_of(FI_INJECT_COMPLETE), ipc::want_local | ipc::by_key);
}

}  // namespace
}  // namespace apenet::test
