// Keys, bounds and rights of remote accesses, and how their targets are notified.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "api/peer.hpp"
#include "runtime/ipc/regions.hpp"

namespace apenet::test {
namespace {

struct RemoteRights : testing::Test {
  int write_error(std::uint64_t address, std::uint64_t key) {
    EXPECT_EQ(fi_write(origin.ep, &word, sizeof(word), nullptr, 1, address, key, nullptr), 0);
    return result(origin);
  }
  int read_error(std::uint64_t address, std::uint64_t key) {
    EXPECT_EQ(fi_read(origin.ep, &word, sizeof(word), nullptr, 1, address, key, nullptr), 0);
    return result(origin);
  }
  static int result(Peer& peer) {
    fi_cq_tagged_entry entry;
    if (fi_cq_read(peer.transmit_cq, &entry, 1) == 1) return 0;
    fi_cq_err_entry error{};
    EXPECT_EQ(fi_cq_readerr(peer.transmit_cq, &error, 0), 1);
    return error.err;
  }

  FakeNetwork network{2};
  Peer origin{network, 0};
  Peer target{network, 1};
  std::uint64_t word = 7;
  std::array<std::uint64_t, 4> memory{};
};

TEST_F(RemoteRights, AKeyMustBeKnown) {
  const std::uint64_t there = address_of(memory.data());
  EXPECT_EQ(write_error(there, 5), FI_EKEYREJECTED);
  {
    const OpenMemory open(target, memory.data(), sizeof(memory), everything, 5);
    EXPECT_EQ(write_error(there, 5), 0);
    EXPECT_EQ(write_error(there, 6), FI_EKEYREJECTED);
  }
  memory[0] = 0;
  EXPECT_EQ(write_error(there, 5), FI_EKEYREJECTED);
  EXPECT_EQ(memory[0], 0U);
}

TEST_F(RemoteRights, AnAccessLiesWithinItsRegion) {
  const OpenMemory open(target, &memory[1], 2 * sizeof(word), everything, 5);
  EXPECT_EQ(write_error(address_of(&memory[0]), 5), FI_EACCES);
  EXPECT_EQ(write_error(address_of(&memory[1]), 5), 0);
  EXPECT_EQ(write_error(address_of(&memory[2]), 5), 0);
  EXPECT_EQ(read_error(address_of(&memory[2]) + 1, 5), FI_EACCES);
  EXPECT_EQ(read_error(address_of(&memory[3]), 5), FI_EACCES);
  EXPECT_EQ(read_error(~std::uint64_t{0}, 5), FI_EACCES);
  EXPECT_EQ(memory, (std::array<std::uint64_t, 4>{0, 7, 7, 0}));
}

TEST_F(RemoteRights, ARegionRestrictsTheKindOfAccess) {
  const OpenMemory readable(target, &memory[0], sizeof(word), FI_REMOTE_READ, 1);
  const OpenMemory writable(target, &memory[1], sizeof(word), FI_REMOTE_WRITE, 2);
  const OpenMemory local(target, &memory[2], sizeof(word), FI_SEND | FI_RECV, 3);
  EXPECT_EQ(read_error(address_of(&memory[0]), 1), 0);
  EXPECT_EQ(write_error(address_of(&memory[0]), 1), FI_EACCES);
  EXPECT_EQ(write_error(address_of(&memory[1]), 2), 0);
  EXPECT_EQ(read_error(address_of(&memory[1]), 2), FI_EACCES);
  EXPECT_EQ(read_error(address_of(&memory[2]), 3), FI_EKEYREJECTED);
}

TEST_F(RemoteRights, TheErrorNamesTheReason) {
  fi_write(origin.ep, &word, sizeof(word), nullptr, 1, 0, 99, nullptr);
  const fi_cq_err_entry error = origin.next_error(origin.transmit_cq);
  EXPECT_STREQ(fi_cq_strerror(origin.transmit_cq, error.prov_errno, nullptr, nullptr, 0),
               "the target has no memory region with this key");
}

TEST_F(RemoteRights, ARefusedWriteDeliversNoData) {
  fi_writedata(origin.ep, &word, sizeof(word), nullptr, 1, 1, 0, 99, nullptr);
  EXPECT_EQ(result(origin), FI_EKEYREJECTED);
  EXPECT_TRUE(target.reads_nothing(target.receive_cq));
}

TEST_F(RemoteRights, PiecesOfARegionHaveOneKey) {
  const std::array<iovec, 2> pieces{iovec{&memory[0], 8}, iovec{&memory[3], 8}};
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_regv(target.domain, pieces.data(), 2, everything, 0, 5, 0, &region, nullptr), 0);
  EXPECT_EQ(write_error(address_of(&memory[0]), 5), 0);
  EXPECT_EQ(write_error(address_of(&memory[1]), 5), FI_EACCES);
  EXPECT_EQ(write_error(address_of(&memory[3]), 5), 0);
  EXPECT_EQ(fi_close(&region->fid), 0);
  EXPECT_EQ(write_error(address_of(&memory[3]), 5), FI_EKEYREJECTED);
}

TEST(RemoteOffsets, CountFromTheRegionsBegin) {
  FakeNetwork network(2);
  Peer origin(network, 0, {.mr_mode = 0});
  Peer target(network, 1, {.mr_mode = 0});
  std::array<std::uint64_t, 4> memory{};
  const OpenMemory open(target, memory.data(), sizeof(memory), everything, 5);
  const std::uint64_t word = 7;
  ASSERT_EQ(fi_write(origin.ep, &word, sizeof(word), nullptr, 1, 16, 5, nullptr), 0);
  EXPECT_EQ(RemoteRights::result(origin), 0);
  EXPECT_EQ(memory[2], 7U);
  ASSERT_EQ(fi_write(origin.ep, &word, sizeof(word), nullptr, 1, 32, 5, nullptr), 0);
  EXPECT_EQ(RemoteRights::result(origin), FI_EACCES);
}

TEST(RemoteDomains, HaveSeparateKeys) {
  FakeNetwork network(2);
  Peer origin(network, 0);
  Peer target(network, 1);
  Peer second(network, 1);  // endpoint 1 of the same process, in another domain
  std::uint64_t here = 0;
  std::uint64_t there = 0;
  const OpenMemory one(target, &here, sizeof(here), everything, 5);
  const OpenMemory two(second, &there, sizeof(there), everything, 5);
  const libfabric::EndpointName name{.rank = 1, .endpoint = 1};
  fi_addr_t address = 0;
  ASSERT_EQ(fi_av_insert(origin.av, &name, 1, &address, 0, nullptr), 1);
  const std::uint64_t word = 7;
  fi_write(origin.ep, &word, sizeof(word), nullptr, address, address_of(&there), 5, nullptr);
  EXPECT_EQ(RemoteRights::result(origin), 0);
  fi_write(origin.ep, &word, sizeof(word), nullptr, address, address_of(&here), 5, nullptr);
  EXPECT_EQ(RemoteRights::result(origin), FI_EACCES);
  EXPECT_EQ(there, 7U);
  EXPECT_EQ(here, 0U);
}

TEST(RemoteCounters, CountOperationsNotParts) {
  FakeNetwork network(2);
  const std::uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT | FI_ATOMIC;
  Peer origin(network, 0, {.caps = caps});
  Peer target(network, 1, {.caps = caps, .remote_counters = true});
  auto here = pattern(250'000);  // several puts
  std::vector<std::uint8_t> there(here.size());
  auto open = std::make_unique<OpenMemory>(target, there.data(), there.size(), everything, 5);
  fid_cntr* of_region = nullptr;
  ASSERT_EQ(fi_cntr_open(target.domain, nullptr, &of_region, nullptr), 0);
  ASSERT_EQ(fi_mr_bind(open->region, &of_region->fid, FI_REMOTE_WRITE), 0);
  fi_write(origin.ep, here.data(), here.size(), nullptr, 1, address_of(there.data()), 5, nullptr);
  origin.next(origin.transmit_cq);
  target.drain();
  EXPECT_EQ(there, here);
  EXPECT_EQ(fi_cntr_read(target.written), 1U);
  EXPECT_EQ(fi_cntr_read(of_region), 1U);
  fi_writedata(origin.ep, here.data(), 8, nullptr, 77, 1, address_of(there.data()), 5, nullptr);
  origin.next(origin.transmit_cq);
  EXPECT_EQ(target.next(target.receive_cq).data, 77U);
  EXPECT_EQ(fi_cntr_read(target.written), 2U);
  fi_read(origin.ep, here.data(), here.size(), nullptr, 1, address_of(there.data()), 5, nullptr);
  origin.next(origin.transmit_cq);
  target.drain();
  EXPECT_EQ(fi_cntr_read(target.read), 1U);
  fi_write(origin.ep, here.data(), 8, nullptr, 1, 0, 5, nullptr);
  EXPECT_EQ(RemoteRights::result(origin), FI_EACCES);
  target.drain();
  EXPECT_EQ(fi_cntr_read(target.written), 2U);
  EXPECT_EQ(fi_cntr_read(of_region), 2U);
  EXPECT_EQ(fi_close(&of_region->fid), -FI_EBUSY);
  open.reset();
  EXPECT_EQ(fi_close(&of_region->fid), 0);
}

// Compares the table in the mapping with a list.
TEST(RegionTable, FindsExactlyWhatItContains) {
  const auto table = std::make_unique<ipc::RegionTable>();
  std::uint32_t state = 1;
  const auto random = [&state] { return (state = state * 1664525U + 1013904223U) >> 8U; };
  std::array<bool, 512> is_open{};
  const auto region = [](std::uint64_t key) {
    return ipc::Region{key * 0x100000000U, key * 1000, 1000, 0, static_cast<std::uint32_t>(key % 3),
                       ipc::may_read};
  };
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t key = random() % is_open.size();
    if (is_open[key]) {
      table->erase(region(key).domain, region(key).key);
    } else {
      ASSERT_TRUE(table->insert(region(key)));
    }
    is_open[key] = !is_open[key];
    const std::uint64_t other = random() % is_open.size();
    std::uint64_t address = 0;
    const ipc::AccessFault fault =
        table->find(region(other).domain, region(other).key, 10, 20, ipc::may_read, address);
    ASSERT_EQ(fault, is_open[other] ? ipc::AccessFault::none : ipc::AccessFault::unknown_key);
    ASSERT_EQ(address, is_open[other] ? other * 1000 + 10 : 0);
  }
}

TEST(RegionTable, HasItsStatedCapacityAndASearchOfGarbageEnds) {
  const auto table = std::make_unique<ipc::RegionTable>();
  for (std::uint32_t key = 0; key < ipc::most_regions; ++key)
    ASSERT_TRUE(table->insert({key, 0, 1, 0, 0, ipc::may_read}));
  EXPECT_FALSE(table->insert({1, 0, 1, 0, 0, ipc::may_read}));
  std::memset(static_cast<void*>(table.get()), 0xff, sizeof(ipc::RegionTable));
  std::uint64_t address = 0;
  EXPECT_EQ(table->find(0, 1, 0, 1, ipc::may_read, address), ipc::AccessFault::unknown_key);
}

}  // namespace
}  // namespace apenet::test
