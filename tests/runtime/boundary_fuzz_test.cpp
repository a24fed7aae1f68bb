// Somebody writes into a rank's half of the mapping while the run goes on. Whatever comes of the rank: the
// simulator ends the run with a verdict, and the other ranks see nothing but their own data.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "kernel/random.hpp"
#include "ranks.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t victim = 1;
constexpr std::uint64_t rounds = 300;

// A second view of the mapping, as a process has that ignores its own limits.
class View {
 public:
  explicit View(const Session& session, std::uint32_t ranks) : layout_{ranks} {
    const int fd = open(session.mapping_path().c_str(), O_RDWR | O_CLOEXEC);
    void* base =
        mmap(nullptr, layout_.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (base == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(base);
  }
  ~View() { munmap(base_, layout_.total_bytes()); }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  [[nodiscard]] ipc::Block& block() {
    return *reinterpret_cast<ipc::Block*>(base_ + layout_.block_offset(victim));
  }
  // In the block.
  [[nodiscard]] std::size_t offset(const void* field) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(field) -
                                    reinterpret_cast<const std::byte*>(&block()));
  }
  [[nodiscard]] ipc::Running& running() {
    return *reinterpret_cast<ipc::Running*>(base_ + ipc::Layout::running_offset());
  }

 private:
  ipc::Layout layout_;
  std::byte* base_;
};

std::uint64_t any_value(RandomStream& random) {
  constexpr std::array<std::uint64_t, 12> borders = {
      0, 1, 2, 255, 256, 4096, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~0ULL, 9'000'000'000'000'000'000,
      77};
  const std::uint64_t kind = random.below(3);
  if (kind == 0) return borders[random.below(borders.size())];
  return kind == 1 ? random.below(1000) : random.below(~0ULL);
}

// Most go where something is decided: the fields before the rings, their counts, and the entries.
std::size_t any_offset(View& view, RandomStream& random) {
  const std::size_t entries = view.offset(view.block().rings.requests);
  const std::size_t events = view.offset(view.block().rings.events);
  switch (random.below(5)) {
    case 0:
    case 1:
      return random.below(entries / 4) * 4;
    case 2:
      return entries + random.below((events - entries) / sizeof(ipc::Request)) * sizeof(ipc::Request) +
             random.below(offsetof(ipc::Request, inline_data) / 4) * 4;
    case 3:
      return events + random.below(ipc::event_ring) * sizeof(ipc::Event) +
             random.below(offsetof(ipc::Event, inline_data) / 4) * 4;
    default:
      return random.below(sizeof(ipc::Block) / 4 - 1) * 4;
  }
}

void write_once(View& view, RandomStream& random) {
  std::size_t at = any_offset(view, random);
  // Who spoils the lock between its own threads keeps them out of it for ever: a program that hangs.
  const std::size_t lock = view.offset(&view.block().lock);
  if (at + 8 > lock && at < lock + sizeof(ipc::ThreadLock)) at = 0;
  const std::uint64_t value = any_value(random);
  std::memcpy(reinterpret_cast<std::byte*>(&view.block()) + at, &value, random.below(2) == 0 ? 4 : 8);
}

// Two honest ranks, 0 and 2, count each other's words; what comes from the victim they only give back.
RankProgram honest(std::uint32_t other) {
  return [other](ipc::Client& client) {
    std::uint64_t expected = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      send_word(client, other, round);
      if (round % 2 == 0) send_word(client, victim, round);
      for (bool waits = true; waits;) {
        const ipc::Event event = await(client, ipc::EventKind::arrived);
        if (event.source == victim) {
          if (event.slot != ipc::no_slot) client.return_slot(event.source, event.slot);
          continue;
        }
        std::uint64_t word = 0;
        std::memcpy(&word, event.inline_data, sizeof word);
        if (event.source != other || word != expected++) _exit(9);
        waits = false;
      }
    }
    leave(client);
  };
}

void be_victim(ipc::Client& client) {
  std::uint64_t in_vain = 0;
  for (std::uint64_t got = 0; got < rounds; ++got) {
    ipc::Request request;
    request.target = got % 2 == 0 ? 0 : 2;
    request.bytes = 1000;
    request.slot = client.take_slot();
    request.slot_length = request.slot == ipc::no_slot ? 0 : 1000;
    client.post(request);
    const ipc::Event* event = client.poll();
    for (; event == nullptr; event = client.poll()) {
      if (++in_vain > 100'000) _exit(3);
    }
    client.pop();
  }
  leave(client);
}

// Runs all three while work(view) goes on in a thread.
template <typename Work>
SessionReport run_beside(Work work) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  SessionOptions options;
  options.output_fd = options.error_fd = sink;
  options.deadlock_wait_ms = 5;
  options.pin = false;
  Session session(ideal(), {0, 1, 2}, options);
  View view(session, 3);
  const std::array<RankProgram, 3> programs = {honest(2), be_victim, honest(0)};
  std::vector<RankProcess> ranks;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank)
    ranks.push_back(fork_rank(session, rank, programs[rank], Begin::at_the_barrier));
  std::atomic<bool> ended{false};
  std::thread writer([&] { work(view, ended); });
  // Nothing here takes a second: who is asked so late hangs.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  SessionReport report =
      session.run(ranks, 0, -1, [limit] { return std::chrono::steady_clock::now() > limit; });
  ended = true;
  writer.join();
  return report;
}

TEST(BoundaryFuzz, NothingThatARankWritesHarmsTheSimulatorOrTheOthers) {
  constexpr std::uint64_t total = 100'000;
  std::array<int, 8> outcomes{};
  std::uint64_t written = 0;
  for (std::uint64_t seed = 1; written < total; ++seed) {
    RandomStream random(seed, 1);
    constexpr std::array<std::uint64_t, 4> sizes = {1, 10, 200, 2000};
    const std::uint64_t count = sizes[seed % sizes.size()];
    const std::uint64_t pause = random.below(20'000);
    const SessionReport report = run_beside([&](View& view, const std::atomic<bool>& ended) {
      for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint64_t spin = 0; spin < pause && !ended; ++spin)
          std::atomic_signal_fence(std::memory_order_seq_cst);
        write_once(view, random);
      }
    });
    written += count;
    ++outcomes[static_cast<std::size_t>(report.outcome)];
    ASSERT_NE(report.outcome, SessionReport::Outcome::interrupted) << "seed " << seed << " hangs";
    for (const char* innocent : {"rank 0 ", "rank 2 ", "the simulator "})
      ASSERT_NE(report.message.rfind(innocent, 0), 0U) << "seed " << seed << ": " << report.message;
    if (report.message.find("wrote an invalid") != std::string::npos) {
      ASSERT_EQ(report.message.rfind("rank 1 ", 0), 0U) << "seed " << seed << ": " << report.message;
    }
  }
  // Some were noticed, and not all.
  EXPECT_GT(outcomes[static_cast<std::size_t>(SessionReport::Outcome::failed)], 10);
}

// The count of running processes is everybody's to write.
TEST(BoundaryFuzz, AWrongCountOfRunningProcessesChangesNothing) {
  const SessionReport quiet = run_beside([](View&, const std::atomic<bool>&) {});
  ASSERT_EQ(quiet.outcome, SessionReport::Outcome::completed) << quiet.message;
  RandomStream random(7, 1);
  const SessionReport disturbed = run_beside([&](View& view, const std::atomic<bool>& ended) {
    for (int i = 0; i < 50 && !ended; ++i) {
      view.running() = static_cast<std::uint32_t>(any_value(random));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  EXPECT_EQ(disturbed.outcome, SessionReport::Outcome::completed) << disturbed.message;
  EXPECT_EQ(disturbed.trace_hash, quiet.trace_hash);
}

}  // namespace
}  // namespace apenet::test
