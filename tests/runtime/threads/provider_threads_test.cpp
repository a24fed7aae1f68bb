// FI_THREAD_SAFE: any thread may call the provider at any time, with one endpoint or several.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/libfabric/domain.hpp"
#include "api/libfabric/info.hpp"
#include "runtime/threads/connection.hpp"
#include "runtime/threads/thread_ranks.hpp"
#include "support/machines.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t provider_threads = 3;

// The objects that a rank opens once. Not by fi_fabric(), which would use the process's own rank.
class Opened {
 public:
  explicit Opened(ipc::Client& client)
      : info(libfabric::make_info(FI_VERSION(1, 17), nullptr, client.header())),
        fabric(new libfabric::Fabric(libfabric::Transport::of(client), FI_VERSION(1, 17), nullptr)) {
    EXPECT_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
  }
  ~Opened() {
    EXPECT_EQ(fi_close(&domain->fid), 0);
    EXPECT_EQ(fi_close(&fabric->fid), 0);
    libfabric::free_info(info);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  fi_info* info;
  fid_fabric* fabric;
  fid_domain* domain = nullptr;
};

struct Card {
  const char* name;
  MachineDescription (*machine)();
};
constexpr Card cards[] = {{"Ideal", test::round_ideal},
                          {"Apelink", [] { return test::machine("ape16"); }},
                          {"Extoll", [] { return test::machine("extoll-64"); }},
                          {"Tnw", [] { return test::machine("qpace"); }}};

// Messages of all sizes take the same path as under MPI.
MachineDescription machine_of(const Card& card) {
  MachineDescription machine = card.machine();
  machine.mpi_software = machine.card_software;
  machine.mpi_software.eager_limit_bytes = 4096;
  return machine;
}

class ProviderThreads : public testing::TestWithParam<Card> {};

TEST_P(ProviderThreads, ShareOneEndpoint) {
  const auto plays = [](ThreadRank& rank) {
    const Opened opened(rank.client);
    Connection connection(opened.domain, opened.info);
    const std::uint32_t own = rank.client.rank();
    const fi_addr_t to = connection.insert(1 - own);
    in_threads(provider_threads, [&](std::uint32_t thread) { exchange(connection, own, to, 1000 * thread); });
  };
  const SessionReport report = run_thread_ranks(machine_of(GetParam()), {plays, plays});
  EXPECT_GE(report.messages, 2 * provider_threads * exchanged_messages);
}

TEST_P(ProviderThreads, HaveAnEndpointEach) {
  const auto plays = [](ThreadRank& rank) {
    const Opened opened(rank.client);
    std::vector<std::unique_ptr<Connection>> connections;
    for (std::uint32_t thread = 0; thread < provider_threads; ++thread)
      connections.push_back(std::make_unique<Connection>(opened.domain, opened.info));
    const std::uint32_t own = rank.client.rank();
    in_threads(provider_threads, [&](std::uint32_t thread) {
      exchange(*connections[thread], own, connections[thread]->insert(1 - own), 0);
    });
  };
  const SessionReport report = run_thread_ranks(machine_of(GetParam()), {plays, plays});
  EXPECT_GE(report.messages, 2 * provider_threads * exchanged_messages);
}

// While messages are exchanged, other threads open and close objects, register memory and read counters.
TEST_P(ProviderThreads, OpenAndCloseAndReadCounters) {
  const auto plays = [](ThreadRank& rank) {
    const Opened opened(rank.client);
    Connection connection(opened.domain, opened.info);
    const std::uint32_t own = rank.client.rank();
    const fi_addr_t to = connection.insert(1 - own);
    std::atomic<bool> ended{false};
    std::thread opener([&] {
      for (std::uint64_t key = 0; key < 50 && !ended; ++key) {
        Connection other(opened.domain, opened.info);
        other.insert(0);
        std::uint64_t word = 0;
        fid_mr* region = nullptr;
        EXPECT_EQ(fi_mr_reg(opened.domain, &word, sizeof word, FI_REMOTE_WRITE, 0, key, 0, &region, nullptr),
                  0);
        EXPECT_EQ(fi_close(&region->fid), 0);
      }
    });
    std::thread reader([&] {
      for (std::uint64_t before = 0; !ended;) {
        const std::uint64_t now = fi_cntr_read(connection.counter());
        EXPECT_GE(now, before);
        EXPECT_EQ(fi_cntr_readerr(connection.counter()), 0U);
        before = now;
      }
    });
    in_threads(2, [&](std::uint32_t thread) { exchange(connection, own, to, 1000 * thread); });
    ended = true;
    opener.join();
    reader.join();
    EXPECT_EQ(fi_cntr_read(connection.counter()), 2U * exchanged_messages);
  };
  run_thread_ranks(machine_of(GetParam()), {plays, plays});
}

INSTANTIATE_TEST_SUITE_P(OnEachCard, ProviderThreads, testing::ValuesIn(cards),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace apenet::test
