// FI_HMEM: how the provider knows a GPU's memory, and what it refuses.
#include "api/gpu/apenet_gpu.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "api/libfabric/guard.hpp"
#include "api/peer.hpp"

namespace apenet::test {
namespace {

std::array<std::uint8_t, 4096> device_memory;

}  // namespace
}  // namespace apenet::test

// In the place of the shim's. (The parentheses keep the header's macro from expanding.)
extern "C" int(ape_gpu_is_device)(const void* address) {
  const auto& device = apenet::test::device_memory;
  return address >= device.data() && address < device.data() + device.size() ? 1 : 0;
}

namespace apenet::test {
namespace {

class GpuMemory : public testing::Test {
 protected:
  GpuMemory() {
    network.header().rails[0].mpi.card.reaches_gpus = 1;
    network.header().rails[0].mpi.software.gpu_copy_bytes_per_second = 1'000'000'000;
    network.header().rails[0].mpi.software.eager_limit_bytes = 1024;
  }
  [[nodiscard]] std::vector<int> memories_of_puts() const {
    std::vector<int> memories;
    for (const ipc::Request& request : network.posted()) {
      if (request.verb != ipc::RequestVerb::send)
        memories.push_back(request.flags & (ipc::local_gpu | ipc::remote_gpu));
    }
    return memories;
  }
  int register_memory(Peer& peer, fi_hmem_iface iface, const void* start, std::uint64_t access,
                      int device = 0) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec
    const iovec piece{const_cast<void*>(start), 64};
    fi_mr_attr attributes{};
    attributes.mr_iov = &piece;
    attributes.iov_count = 1;
    attributes.access = access;
    attributes.requested_key = 9;
    attributes.iface = iface;
    attributes.device.cuda = device;
    fid_mr* region = nullptr;
    const int error = fi_mr_regattr(peer.domain, &attributes, 0, &region);
    if (error != 0) return error;
    EXPECT_NE(fi_mr_desc(region), nullptr);
    return fi_close(&region->fid);
  }

  FakeNetwork network{2};
};

TEST_F(GpuMemory, IsKnownByItsAddressWithoutADescriptor) {
  Peer sender(network, 0);
  Peer receiver(network, 1);
  receiver.client.block().place.node = 1;  // another node than the sender's
  const std::vector<std::uint8_t> sent = pattern(100);
  std::memcpy(device_memory.data(), sent.data(), sent.size());
  std::uint8_t* const to = device_memory.data() + 2048;
  ASSERT_EQ(fi_trecv(receiver.ep, to, 100, nullptr, 0, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(sender.ep, device_memory.data(), 100, nullptr, 1, 7, nullptr), 0);
  for (int i = 0; i < 3; ++i) {
    sender.drain();
    receiver.drain();
  }
  EXPECT_EQ(memories_of_puts(), std::vector<int>{ipc::local_gpu | ipc::remote_gpu});
  EXPECT_EQ(std::memcmp(to, sent.data(), 100), 0);
}

TEST_F(GpuMemory, IsKnownInEveryPieceOfABuffer) {
  Peer sender(network, 0);
  Peer receiver(network, 1);
  receiver.client.block().place.node = 1;  // another node than the sender's
  std::array<std::uint8_t, 200> host{};
  const std::array<iovec, 2> pieces = {iovec{host.data(), 100}, iovec{device_memory.data(), 100}};
  ASSERT_EQ(fi_trecv(receiver.ep, host.data() + 100, 100, nullptr, 0, 7, 0, nullptr), 0);
  ASSERT_EQ(fi_tsendv(sender.ep, pieces.data(), nullptr, 2, 1, 7, nullptr), 0);
  for (int i = 0; i < 3; ++i) {
    sender.drain();
    receiver.drain();
  }
  // The receiver's buffer is full after the first piece.
  EXPECT_EQ(memories_of_puts(), std::vector<int>{0});
  ASSERT_EQ(fi_trecv(receiver.ep, host.data(), 200, nullptr, 0, 8, 0, nullptr), 0);
  ASSERT_EQ(fi_tsendv(sender.ep, pieces.data(), nullptr, 2, 1, 8, nullptr), 0);
  for (int i = 0; i < 3; ++i) {
    sender.drain();
    receiver.drain();
  }
  EXPECT_EQ(memories_of_puts(), (std::vector<int>{0, 0, ipc::local_gpu}));
}

TEST_F(GpuMemory, IsRegisteredAsThatOfCudaOrOfTheSystem) {
  Peer peer(network, 0);
  EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, device_memory.data(), FI_SEND | FI_RECV), 0);
  EXPECT_EQ(register_memory(peer, FI_HMEM_SYSTEM, device_memory.data(), FI_SEND | FI_RECV), 0);
  EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, device_memory.data(), FI_SEND, 1), -FI_EINVAL);
  EXPECT_EQ(register_memory(peer, FI_HMEM_ROCR, device_memory.data(), FI_SEND), -FI_ENOSYS);
}

TEST_F(GpuMemory, OfARealGpuIsRefusedByName) {
  Peer peer(network, 0);
  const std::array<std::uint8_t, 64> elsewhere{};
  setenv("FI_LOG_LEVEL", "info", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, elsewhere.data(), FI_SEND), -FI_EINVAL);
  unsetenv("FI_LOG_LEVEL");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("pointers of a real GPU"), std::string::npos);
}

TEST_F(GpuMemory, IsNotOpenToRemoteAccess) {
  Peer peer(network, 0);
  for (const std::uint64_t access : {FI_REMOTE_READ, FI_REMOTE_WRITE})
    EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, device_memory.data(), access), -FI_EOPNOTSUPP);
}

TEST(GpuInfo, IsOfferedOnRequestWhereThereIsAGpu) {
  ipc::Header machine;
  machine.rails[0].put_supported = 1;
  fi_info hints{};
  hints.caps = FI_TAGGED | FI_HMEM;
  EXPECT_THROW(libfabric::make_info(FI_VERSION(1, 18), &hints, machine), libfabric::FabricError);
  machine.rails[0].mpi.software.gpu_copy_bytes_per_second = 1;
  fi_info* info = libfabric::make_info(FI_VERSION(1, 18), &hints, machine);
  EXPECT_NE(info->caps & FI_HMEM, 0U);
  EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_HMEM, 0) << "an address is enough";
  libfabric::free_info(info);
  info = libfabric::make_info(FI_VERSION(1, 18), nullptr, machine);
  EXPECT_EQ(info->caps & FI_HMEM, 0U);
  libfabric::free_info(info);
}

}  // namespace
}  // namespace apenet::test
