// FI_HMEM: how the provider knows a GPU's memory, and what it refuses.
#include "api/gpu/apenet_gpu.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <rdma/fi_atomic.h>

#include <array>
#include <cstring>

#include "api/libfabric/guard.hpp"
#include "api/peer.hpp"

namespace apenet::test {
namespace {

alignas(4096) std::array<std::uint8_t, 1 << 20> device_memory;
std::size_t used_device_memory = 4096;  // used by the simulated GPU; the tests use the rest themselves

}  // namespace
}  // namespace apenet::test

// In the place of the shim's. (The parentheses keep the header's macro from expanding.)
extern "C" int(ape_gpu_is_device)(const void* address) {
  const auto& device = apenet::test::device_memory;
  return address >= device.data() && address < device.data() + device.size() ? 1 : 0;
}

extern "C" void*(ape_gpu_malloc)(std::size_t bytes) {
  void* memory = apenet::test::device_memory.data() + apenet::test::used_device_memory;
  apenet::test::used_device_memory += (bytes + 4095) / 4096 * 4096;
  return apenet::test::used_device_memory <= apenet::test::device_memory.size() ? memory : nullptr;
}

extern "C" int(ape_gpu_free)(void* /*memory*/) {
  return 0;
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
                      int device = 0, std::size_t bytes = 64) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): iovec
    const iovec piece{const_cast<void*>(start), bytes};
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

TEST_F(GpuMemory, IsNotThatOfTheHost) {
  Peer peer(network, 0);
  const std::array<std::uint8_t, 64> elsewhere{};
  setenv("FI_LOG_LEVEL", "info", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, elsewhere.data(), FI_SEND), -FI_EINVAL);
  unsetenv("FI_LOG_LEVEL");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("FI_HMEM_CUDA: expected memory of ape_gpu_malloc()"),
            std::string::npos);
}

TEST_F(GpuMemory, IsNotOpenToRemoteAccess) {
  Peer peer(network, 0);
  for (const std::uint64_t access : {FI_REMOTE_READ, FI_REMOTE_WRITE})
    EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, device_memory.data(), access), -FI_EOPNOTSUPP);
}

// The driver of conformance/gpu/libcuda.c.
class RealGpuMemory : public GpuMemory {
 protected:
  RealGpuMemory() {
    void* library = dlopen(FAKE_CUDA, RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
    find(library, "cuInit", init_);
    find(library, "cuCtxCreate_v2", create_);
    find(library, "cuCtxPopCurrent_v2", pop_);
    find(library, "cuMemAlloc_v2", allocate_);
    find(library, "cuMemFree_v2", release_);
    find(library, "cuMemcpyHtoD_v2", copy_to_);
    find(library, "cuMemcpyDtoH_v2", copy_from_);
    EXPECT_EQ(init_(0), 0);
    EXPECT_EQ(create_(&context_, 0, 0), 0);
  }
  ~RealGpuMemory() override { EXPECT_EQ(pop_(&context_), 0); }

  std::uint8_t* allocate(const std::vector<std::uint8_t>& contents) {
    unsigned long long address = 0;
    EXPECT_EQ(allocate_(&address, contents.size()), 0);
    EXPECT_EQ(copy_to_(address, contents.data(), contents.size()), 0);
    return reinterpret_cast<std::uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  void release(const std::uint8_t* memory) {
    EXPECT_EQ(release_(reinterpret_cast<unsigned long long>(memory)), 0);
  }
  std::vector<std::uint8_t> contents(const std::uint8_t* memory, std::size_t bytes) {
    std::vector<std::uint8_t> copied(bytes);
    EXPECT_EQ(copy_from_(copied.data(), reinterpret_cast<unsigned long long>(memory), bytes), 0);
    return copied;
  }
  // What `call` prints for the person at the terminal.
  template <typename Call>
  std::string warning_of(Call call, ssize_t expected) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(call(), expected);
    return testing::internal::GetCapturedStderr();
  }
  static void pass_events(Peer& one, Peer& other) {
    for (int i = 0; i < 4; ++i) {
      one.drain();
      other.drain();
    }
  }

 private:
  template <typename Function>
  static void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    EXPECT_NE(function, nullptr) << name;
  }
  int (*init_)(unsigned) = nullptr;
  int (*create_)(void**, unsigned, int) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*allocate_)(unsigned long long*, std::size_t) = nullptr;
  int (*release_)(unsigned long long) = nullptr;
  int (*copy_to_)(unsigned long long, const void*, std::size_t) = nullptr;
  int (*copy_from_)(void*, unsigned long long, std::size_t) = nullptr;
  void* context_ = nullptr;
};

TEST_F(RealGpuMemory, IsSentAndReceivedInPieces) {
  Peer sender(network, 0);
  Peer receiver(network, 1);
  receiver.client.block().place.node = 1;  // another node than the sender's
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{600}, std::size_t{3000}}) {
    const std::vector<std::uint8_t> whole = pattern(3 * bytes);
    const auto part = [&](std::size_t i) {
      return std::vector<std::uint8_t>(whole.begin() + i * bytes, whole.begin() + (i + 1) * bytes);
    };
    std::uint8_t* first = allocate(part(0));
    std::vector<std::uint8_t> second = part(1);
    std::uint8_t* third = allocate(part(2));
    const std::array<iovec, 3> sent = {iovec{first, bytes}, iovec{second.data(), bytes}, iovec{third, bytes}};
    std::uint8_t* to = allocate(std::vector<std::uint8_t>(2 * bytes, 7));
    std::vector<std::uint8_t> host(2 * bytes);
    const std::array<iovec, 2> got = {iovec{host.data(), 2 * bytes}, iovec{to + 5, 2 * bytes - 5}};
    ASSERT_EQ(fi_trecvv(receiver.ep, got.data(), nullptr, 2, 0, 7, 0, nullptr), 0);
    ASSERT_EQ(fi_tsendv(sender.ep, sent.data(), nullptr, 3, 1, 7, nullptr), 0);
    pass_events(sender, receiver);
    EXPECT_EQ(receiver.next(receiver.receive_cq).len, 3 * bytes);
    host.resize(3 * bytes);
    const std::vector<std::uint8_t> all = contents(to, 2 * bytes);
    std::copy_n(all.begin() + 5, bytes, host.begin() + 2 * static_cast<std::ptrdiff_t>(bytes));
    EXPECT_EQ(host, whole);
    EXPECT_EQ(all[4], 7);
    EXPECT_EQ(all[5 + bytes], 7) << "what no message has filled stays";
    for (const std::uint8_t* memory : {first, third, to}) release(memory);
  }
}

TEST_F(RealGpuMemory, TakesSeveralMessagesOfOneReceive) {
  Peer sender(network, 0);
  Peer receiver(network, 1);
  std::uint8_t* to = allocate(std::vector<std::uint8_t>(1000));
  const iovec piece{to, 1000};
  fi_msg receive{};
  receive.msg_iov = &piece;
  receive.iov_count = 1;
  receive.addr = FI_ADDR_UNSPEC;
  ASSERT_EQ(fi_recvmsg(receiver.ep, &receive, FI_MULTI_RECV), 0);
  const std::vector<std::uint8_t> sent = pattern(300);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_send(sender.ep, sent.data(), 300, nullptr, 1, nullptr), 0);
    pass_events(sender, receiver);
    EXPECT_EQ(receiver.next(receiver.receive_cq).buf, to + 300 * i) << "the program's address";
    const std::vector<std::uint8_t> all = contents(to, 600);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), all.begin() + 300 * i));
  }
  release(to);
}

TEST_F(RealGpuMemory, IsTheLocalMemoryOfRemoteAccesses) {
  Peer origin(network, 0);
  Peer target(network, 1);
  std::vector<std::uint8_t> remote(600);
  fid_mr* region = nullptr;
  ASSERT_EQ(fi_mr_reg(target.domain, remote.data(), remote.size(), FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 5, 0,
                      &region, nullptr),
            0);
  const auto address = message::address_of(remote.data());
  std::uint8_t* local = allocate(pattern(600));
  ASSERT_EQ(fi_write(origin.ep, local, 600, nullptr, 1, address, 5, nullptr), 0);
  pass_events(origin, target);
  EXPECT_EQ(remote, pattern(600));
  remote.assign(600, 9);
  ASSERT_EQ(fi_read(origin.ep, local + 100, 500, nullptr, 1, address, 5, nullptr), 0);
  pass_events(origin, target);
  std::vector<std::uint8_t> expected = pattern(600);
  std::fill(expected.begin() + 100, expected.end(), std::uint8_t{9});
  EXPECT_EQ(contents(local, 600), expected);
  // An atomic operation: 9 is added to each of four bytes, and what was there fetched.
  ASSERT_EQ(fi_fetch_atomic(origin.ep, local + 200, 4, nullptr, local, nullptr, 1, address, 5, FI_UINT8,
                            FI_SUM, nullptr),
            0);
  pass_events(origin, target);
  EXPECT_EQ(remote[3], 18);
  EXPECT_EQ(remote[4], 9);
  EXPECT_EQ(contents(local, 4), std::vector<std::uint8_t>(4, 9));
  EXPECT_EQ(fi_close(&region->fid), 0);
  release(local);
}

TEST_F(RealGpuMemory, IsRegisteredIfTheDriverKnowsAllOfIt) {
  Peer peer(network, 0);
  std::uint8_t* memory = allocate(std::vector<std::uint8_t>(100));
  const auto registering = [&](std::uint64_t access, int device, std::size_t bytes) {
    return [=, this, &peer] { return register_memory(peer, FI_HMEM_CUDA, memory, access, device, bytes); };
  };
  EXPECT_EQ(warning_of(registering(FI_SEND | FI_RECV, 0, 100), 0), "");
  EXPECT_EQ(register_memory(peer, FI_HMEM_SYSTEM, memory, FI_SEND), 0);
  EXPECT_EQ(warning_of(registering(FI_SEND, 1, 100), -FI_EINVAL), "");
  EXPECT_EQ(warning_of(registering(FI_REMOTE_READ, 0, 100), -FI_EOPNOTSUPP), "");
  EXPECT_EQ(register_memory(peer, FI_HMEM_SYSTEM, memory, FI_REMOTE_WRITE), -FI_EOPNOTSUPP);
  EXPECT_NE(
      warning_of(registering(FI_SEND, 0, 101), -FI_EFAULT).find("a buffer of 101 bytes begins 100 bytes"),
      std::string::npos);
  setenv("FAKE_CUDA_FAIL", "cuPointerGetAttributes=719", 1);
  EXPECT_NE(warning_of(registering(FI_SEND, 0, 100), -FI_EFAULT).find("CUDA_ERROR_LAUNCH_FAILED (719)"),
            std::string::npos);
  unsetenv("FAKE_CUDA_FAIL");
  release(memory);
  EXPECT_NE(warning_of(registering(FI_SEND, 0, 100), -FI_EFAULT).find("freed device memory?"),
            std::string::npos);
}

TEST_F(RealGpuMemory, NeedsAMachineWithAGpu) {
  std::uint8_t* memory = allocate(std::vector<std::uint8_t>(100));
  network.header().rails[0].mpi.software.gpu_copy_bytes_per_second = 0;
  Peer peer(network, 0);
  const auto send = [&] { return fi_tsend(peer.ep, memory, 100, nullptr, 1, 7, nullptr); };
  EXPECT_NE(warning_of(send, -FI_EOPNOTSUPP).find("has no GPU"), std::string::npos);
  EXPECT_EQ(register_memory(peer, FI_HMEM_CUDA, memory, FI_SEND), -FI_ENOSYS);
  release(memory);
}

// The message is lost, and the program told so.
TEST_F(RealGpuMemory, ThatIsGoneWhenItsMessageComesFailsTheReceive) {
  Peer sender(network, 0);
  Peer receiver(network, 1);
  std::uint8_t* to = allocate(std::vector<std::uint8_t>(100));
  ASSERT_EQ(fi_trecv(receiver.ep, to, 100, nullptr, 0, 7, 0, nullptr), 0);
  release(to);
  const std::vector<std::uint8_t> sent = pattern(100);
  testing::internal::CaptureStderr();
  ASSERT_EQ(fi_tsend(sender.ep, sent.data(), 100, nullptr, 1, 7, nullptr), 0);
  pass_events(sender, receiver);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cuMemcpyHtoD_v2 failed"), std::string::npos);
  const fi_cq_err_entry error = receiver.next_error(receiver.receive_cq);
  EXPECT_EQ(error.err, FI_EIO);
  EXPECT_STREQ(fi_cq_strerror(receiver.receive_cq, error.prov_errno, nullptr, nullptr, 0),
               "the CUDA driver did not copy the data to its device");
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
