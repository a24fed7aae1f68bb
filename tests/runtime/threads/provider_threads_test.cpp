// FI_THREAD_SAFE: any thread may call the provider at any time, for one endpoint and for several.
#include <gtest/gtest.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/info.hpp"
#include "api/libfabric/wire.hpp"
#include "runtime/threads/thread_ranks.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t threads = 3;

// What a rank opens once.
class Opened {
 public:
  explicit Opened(ipc::Client& client) {
    info = libfabric::make_info(FI_VERSION(1, 17), nullptr, client.header());
    // Not by fi_fabric: that is the one of the process's own rank.
    fabric = new libfabric::Fabric(libfabric::Port::of(client), FI_VERSION(1, 17), nullptr);
    EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
  }
  ~Opened() {
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    libfabric::free_info(info);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
};

// An operation, which whoever reads its completion marks as done.
struct Operation {
  fi_context2 context{};  // first: its address is the operation's
  std::atomic<bool> done{false};
};

// An endpoint with one queue and a counter, for the messages of threads that wait for their own operations.
class Connection {
 public:
  explicit Connection(Opened& opened) {
    fi_av_attr av_attributes{};
    EXPECT_EQ(fi_av_open(opened.domain, &av_attributes, &av_, nullptr), 0);
    fi_cq_attr cq_attributes{};
    cq_attributes.format = FI_CQ_FORMAT_TAGGED;
    EXPECT_EQ(fi_cq_open(opened.domain, &cq_attributes, &cq_, nullptr), 0);
    EXPECT_EQ(fi_cntr_open(opened.domain, nullptr, &counter_, nullptr), 0);
    EXPECT_EQ(fi_endpoint(opened.domain, opened.info, &ep_, nullptr), 0);
    EXPECT_EQ(fi_ep_bind(ep_, &av_->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep_, &cq_->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_ep_bind(ep_, &counter_->fid, FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep_), 0);
  }
  ~Connection() {
    EXPECT_EQ(fi_close(&ep_->fid), 0);
    EXPECT_EQ(fi_close(&cq_->fid), 0);
    EXPECT_EQ(fi_close(&counter_->fid), 0);
    EXPECT_EQ(fi_close(&av_->fid), 0);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // A peer's endpoint of this number.
  fi_addr_t insert(std::uint32_t rank, std::uint16_t endpoint) {
    const libfabric::EndpointName name{.rank = rank, .endpoint = endpoint};
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av_, &name, 1, &address, 0, nullptr), 1);
    return address;
  }
  std::uint16_t number() {
    libfabric::EndpointName name;
    std::size_t length = sizeof name;
    EXPECT_EQ(fi_getname(&ep_->fid, &name, &length), 0);
    return name.endpoint;
  }
  void send(const std::vector<std::uint8_t>& bytes, fi_addr_t to, std::uint64_t tag, Operation& operation) {
    EXPECT_EQ(fi_tsend(ep_, bytes.data(), bytes.size(), nullptr, to, tag, &operation), 0);
  }
  void receive(std::vector<std::uint8_t>& bytes, std::uint64_t tag, Operation& operation) {
    EXPECT_EQ(fi_trecv(ep_, bytes.data(), bytes.size(), nullptr, FI_ADDR_UNSPEC, tag, 0, &operation), 0);
  }
  void wait(Operation& operation) {
    while (!operation.done) {
      fi_cq_tagged_entry entry{};
      const ssize_t count = fi_cq_read(cq_, &entry, 1);
      if (count == 1) static_cast<Operation*>(entry.op_context)->done = true;
      EXPECT_TRUE(count == 1 || count == -FI_EAGAIN) << count;
    }
  }
  fid_cntr* counter() { return counter_; }

 private:
  fid_av* av_ = nullptr;
  fid_cq* cq_ = nullptr;
  fid_cntr* counter_ = nullptr;
  fid_ep* ep_ = nullptr;
};

std::vector<std::uint8_t> content(std::size_t size, std::uint32_t rank, std::uint32_t tag) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + rank * 31 + tag);
  return bytes;
}

// Inline, in a slot, and by a rendezvous.
constexpr std::array<std::size_t, 3> sizes = {16, 2000, 20'000};
constexpr std::uint32_t messages = 12;

// One thread's share: as many messages to the other rank as it takes from it.
void exchange(Connection& connection, std::uint32_t rank, fi_addr_t to, std::uint64_t tag_base) {
  for (std::uint32_t i = 0; i < messages; ++i) {
    const std::size_t size = sizes[i % sizes.size()];
    const std::uint64_t tag = tag_base + i;
    const auto own = content(size, rank, i);
    std::vector<std::uint8_t> other(size);
    Operation sent;
    Operation received;
    if (i % 2 == 0) connection.receive(other, tag, received);
    connection.send(own, to, tag, sent);
    if (i % 2 == 1) connection.receive(other, tag, received);
    connection.wait(received);
    connection.wait(sent);
    EXPECT_EQ(other, content(size, 1 - rank, i));
  }
}

struct Card {
  const char* name;
  MachineDescription (*machine)();
};
constexpr Card cards[] = {{"Ideal", ideal}, {"Apelink", ape16}, {"Extoll", extoll_64}, {"Tnw", qpace}};

class ProviderThreads : public testing::TestWithParam<Card> {};

TEST_P(ProviderThreads, ShareOneEndpoint) {
  const auto plays = [](ThreadRank& rank) {
    Opened opened(rank.client);
    {
      Connection connection(opened);
      const std::uint32_t own = rank.client.rank();
      const fi_addr_t to = connection.insert(1 - own, connection.number());
      in_threads(threads, [&](std::uint32_t thread) { exchange(connection, own, to, 1000 * thread); });
    }
  };
  const SessionReport report = run_thread_ranks(GetParam().machine(), {plays, plays});
  EXPECT_GE(report.messages, 2 * threads * messages);
}

TEST_P(ProviderThreads, HaveAnEndpointEach) {
  const auto plays = [](ThreadRank& rank) {
    Opened opened(rank.client);
    {
      std::vector<std::unique_ptr<Connection>> connections;
      for (std::uint32_t thread = 0; thread < threads; ++thread)
        connections.push_back(std::make_unique<Connection>(opened));
      const std::uint32_t own = rank.client.rank();
      in_threads(threads, [&](std::uint32_t thread) {
        Connection& connection = *connections[thread];
        exchange(connection, own, connection.insert(1 - own, connection.number()), 0);
      });
    }
  };
  const SessionReport report = run_thread_ranks(GetParam().machine(), {plays, plays});
  EXPECT_GE(report.messages, 2 * threads * messages);
}

// Beside messages: others open and close, ask for addresses, and read what is counted.
TEST_P(ProviderThreads, OpenAndCloseAndReadCounters) {
  const auto plays = [](ThreadRank& rank) {
    Opened opened(rank.client);
    {
      Connection connection(opened);
      const std::uint32_t own = rank.client.rank();
      const fi_addr_t to = connection.insert(1 - own, connection.number());
      std::atomic<bool> ended{false};
      std::thread opener([&] {
        for (int i = 0; i < 50 && !ended; ++i) {
          Connection other(opened);
          other.insert(0, other.number());
          std::uint64_t word = 0;
          fid_mr* region = nullptr;
          EXPECT_EQ(fi_mr_reg(opened.domain, &word, sizeof word, FI_REMOTE_WRITE, 0,
                              1000 + static_cast<std::uint64_t>(i), 0, &region, nullptr),
                    0);
          EXPECT_EQ(fi_close(&region->fid), 0);
        }
      });
      std::thread counter([&] {
        for (std::uint64_t before = 0; !ended;) {
          const std::uint64_t now = connection.counter()->ops->read(connection.counter());
          EXPECT_GE(now, before);
          EXPECT_EQ(fi_cntr_readerr(connection.counter()), 0U);
          before = now;
        }
      });
      in_threads(2, [&](std::uint32_t thread) { exchange(connection, own, to, 1000 * thread); });
      ended = true;
      opener.join();
      counter.join();
      EXPECT_EQ(fi_cntr_read(connection.counter()), 2U * messages);
    }
  };
  run_thread_ranks(GetParam().machine(), {plays, plays});
}

INSTANTIATE_TEST_SUITE_P(OnEachCard, ProviderThreads, testing::ValuesIn(cards),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace apenet::test
