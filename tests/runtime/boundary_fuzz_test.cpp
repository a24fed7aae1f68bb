// A thread writes into a rank's part of the mapping during the run. Whatever happens to that rank, the
// simulator ends the run with an outcome, and the other ranks see only their own data.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "kernel/random.hpp"
#include "ranks.hpp"

namespace apenet::test {
namespace {

constexpr std::uint32_t victim = 1;
constexpr std::uint64_t honest_rounds = 300;

// A second, writable view of the mapping, like that of a process that ignores its limits.
class View {
 public:
  explicit View(const Session& session, std::uint32_t ranks) : layout_{ranks} {
    const int header_fd = open(session.mapping_path().c_str(), O_RDONLY | O_CLOEXEC);
    void* const header = mmap(nullptr, ipc::page_bytes, PROT_READ, MAP_SHARED, header_fd, 0);
    close(header_fd);
    if (header == MAP_FAILED) std::abort();
    header_ = static_cast<const ipc::Header*>(header);
    const int fd = open_parts(session.mapping_path(), *header_);
    void* base =
        mmap(nullptr, layout_.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (base == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(base);
  }
  ~View() {
    munmap(base_, layout_.total_bytes());
    munmap(const_cast<ipc::Header*>(header_), ipc::page_bytes);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  [[nodiscard]] ipc::Block& block() {
    return *reinterpret_cast<ipc::Block*>(base_ + layout_.block_offset(victim));
  }
  [[nodiscard]] ipc::RankNotes& notes() {
    return *reinterpret_cast<ipc::RankNotes*>(base_ + layout_.notes_offset(victim));
  }
  [[nodiscard]] bool started() const { return header_->started.load() != 0; }
  // The offset of a field in the block.
  [[nodiscard]] std::size_t offset(const void* field) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(field) -
                                    reinterpret_cast<const std::byte*>(&block()));
  }
  [[nodiscard]] ipc::Running& running() {
    return *reinterpret_cast<ipc::Running*>(base_ + ipc::Layout::running_offset());
  }

 private:
  ipc::Layout layout_;
  const ipc::Header* header_ = nullptr;
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

// A part of the victim's block in which this seed writes.
struct Area {
  std::size_t begin;
  std::size_t end;
};

Area area_of(View& view, const void* first, const void* behind) {
  return {view.offset(first), view.offset(behind)};
}

// By seed: the whole block, or only one kind of field, because otherwise errors in the other fields would end
// most runs first.
Area any_area(View& view, std::uint64_t focus, RandomStream& random) {
  ipc::Block& block = view.block();
  ipc::Rings& rings = block.rings;
  const Area counts = area_of(view, &rings, rings.requests);
  switch (focus) {
    case 0:
      return random.below(2) == 0 ? Area{0, counts.end} : Area{0, sizeof(ipc::Block)};
    case 1:
      return area_of(view, rings.requests, rings.events);
    case 2:
      return area_of(view, rings.events, rings.returned);
    case 3:
      return area_of(view, rings.returned, &rings + 1);
    case 4:
      return counts;
    case 5:
      return area_of(view, &block.clock, &block.lock);
    case 6:
      return area_of(view, &block.grant, &block.clock);
    default:
      return area_of(view, &block.identity, &rings);
  }
}
constexpr std::uint64_t focuses = 8;

void write_once(View& view, std::uint64_t focus, RandomStream& random) {
  const Area area = any_area(view, focus, random);
  std::size_t at = area.begin + random.below((area.end - area.begin) / 4 - 1) * 4;
  // Ring entries are long, and the fields before the payload matter, so choose those more often.
  const std::size_t requests = view.offset(view.block().rings.requests);
  const std::size_t events = view.offset(view.block().rings.events);
  if (focus == 1) at -= (at - requests) % sizeof(ipc::Request) / 2 / 4 * 4;
  if (focus == 2) at -= (at - events) % sizeof(ipc::Event) / 2 / 4 * 4;
  // Skip the lock: a rank that corrupts its own threads' lock hangs, as a program may.
  const std::size_t lock = view.offset(&view.block().lock);
  if (at + 8 > lock && at < lock + sizeof(ipc::ThreadLock)) at = 0;
  const std::uint64_t value = any_value(random);
  std::memcpy(reinterpret_cast<std::byte*>(&view.block()) + at, &value, random.below(2) == 0 ? 4 : 8);
}

// Gives credit for a message taken, as a library does if the card needs credit.
void give_credit(ipc::Client& client, const ipc::Event& event) {
  if (client.header().rails[0].mpi.card.needs_credit == 0) return;
  ipc::Request request;
  request.verb = ipc::RequestVerb::credit;
  request.target = event.source;
  request.bytes = event.bytes;
  client.post(request);
}

// The two honest ranks, 0 and 2, check the order of each other's words; they only return what the victim
// sends.
RankProgram honest(std::uint32_t other) {
  return [other](ipc::Client& client) {
    std::uint64_t expected = 0;
    for (std::uint64_t round = 0; round < honest_rounds; ++round) {
      send_word(client, other, round);
      if (round % 2 == 0) send_word(client, victim, round);
      for (bool waits = true; waits;) {
        const ipc::Event event = await(client, ipc::EventKind::arrived);
        give_credit(client, event);
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
  __libc_single_threaded = 1;  // the writer's thread has stayed in the parent
  std::uint64_t empty_polls = 0;
  for (std::uint64_t got = 0; got < honest_rounds; ++got) {
    constexpr std::int64_t computes_ps = 300'000;
    if (got % 4 == 0) client.overlap_compute(computes_ps);
    if (got % 8 == 0) sched_yield();
    client.attend();
    ipc::Request request;
    request.target = got % 2 == 0 ? 0 : 2;
    request.bytes = 1000;
    request.slot = client.take_slot();
    request.slot_length = request.slot == ipc::no_slot ? 0 : 1000;
    client.post(request);
    const ipc::Event* event = client.poll();
    for (; event == nullptr; event = client.poll()) {
      if (++empty_polls > 100'000) _exit(3);
    }
    const ipc::Event taken = *event;
    client.pop();
    if (taken.kind == ipc::EventKind::arrived) give_credit(client, taken);
  }
  leave(client);
}

// Runs all three ranks while work(view) runs in a thread.
template <typename Work>
SessionReport run_beside(const MachineDescription& machine, Work work,
                         const std::array<RankProgram, 3>& programs = {honest(2), be_victim, honest(0)}) {
  static const int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
  SessionOptions options;
  options.output_fd = options.error_fd = sink;
  options.deadlock_wait_ms = 5;
  options.cores = CoreUse::all;
  options.compute = ipc::ComputeMode::profile;
  Session session(machine, {{{0, 1, 2}, options}});
  View view(session, 3);
  std::vector<RankProcess> ranks;
  for (std::uint32_t rank = 0; rank < programs.size(); ++rank)
    ranks.push_back(fork_rank(session, rank, programs[rank], Begin::at_the_barrier));
  std::atomic<bool> ended{false};
  std::thread writer([&] { work(view, ended); });
  // A run takes milliseconds of a processor, and on a host with many other programs up to a minute. After
  // this time it hangs.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  SessionReport report =
      session.run({{ranks}}, [limit] { return std::chrono::steady_clock::now() > limit; }).front();
  ended = true;
  writer.join();
  return report;
}

struct Card {
  const char* name;
  MachineDescription (*machine)();
};
constexpr Card cards[] = {{"Ideal", test::round_ideal},
                          {"Apelink", [] { return test::machine("ape16"); }},
                          {"Extoll", [] { return test::machine("extoll-64"); }},
                          {"Tnw", [] { return test::machine("qpace"); }}};

class BoundaryFuzz : public testing::TestWithParam<Card> {};

// The seeds to run: as many as reach these numbers, or those of APENET_FUZZ_SEEDS ("FIRST COUNT"). The host
// decides at which instant a write comes, and so whether the simulator detects it: about a third of the runs
// fail.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t count = 1'000;
  std::uint64_t writes = 8'000;
  std::uint64_t detections = 4;
};
Seeds seeds_to_run() {
  Seeds seeds;
  if (const char* text = std::getenv("APENET_FUZZ_SEEDS")) {
    std::istringstream(text) >> seeds.first >> seeds.count;
    seeds.writes = ~0ULL;
    seeds.detections = 0;
  }
  return seeds;
}

TEST_P(BoundaryFuzz, NoWriteOfARankHarmsTheSimulatorOrOtherRanks) {
  const Seeds seeds = seeds_to_run();
  std::uint64_t written = 0;
  std::uint64_t detected = 0;
  const auto are_enough = [&] { return written >= seeds.writes && detected >= seeds.detections; };
  for (std::uint64_t seed = seeds.first; seed - seeds.first < seeds.count && !are_enough(); ++seed) {
    RandomStream random(seed, 1);
    constexpr std::array<std::uint64_t, 4> sizes = {1, 10, 200, 2000};
    const std::uint64_t count = sizes[seed % sizes.size()];
    const std::uint64_t pause = random.below(std::min<std::uint64_t>(20'000, 4'000'000 / count));
    const std::uint64_t focus = random.below(focuses);
    const bool late = random.below(4) != 0;
    const SessionReport report =
        run_beside(GetParam().machine(), [&](View& view, const std::atomic<bool>& ended) {
          while (late && !view.started() && !ended) std::this_thread::yield();
          for (std::uint64_t i = 0; i < count && !ended; ++i) {
            for (std::uint64_t spin = 0; spin < pause && !ended; ++spin)
              std::atomic_signal_fence(std::memory_order_seq_cst);
            write_once(view, focus, random);
            ++written;
          }
        });
    if (report.outcome == SessionReport::Outcome::failed) ++detected;
    EXPECT_NE(report.outcome, SessionReport::Outcome::interrupted) << "seed " << seed << " hangs";
    for (const char* innocent : {"rank 0 ", "rank 2 ", "the simulator "})
      EXPECT_NE(report.message.rfind(innocent, 0), 0U) << "seed " << seed << ": " << report.message;
    if (report.message.find("wrote an invalid") != std::string::npos) {
      EXPECT_EQ(report.message.rfind("rank 1 ", 0), 0U) << "seed " << seed << ": " << report.message;
    }
  }
  EXPECT_GE(detected, seeds.detections);
}

INSTANTIATE_TEST_SUITE_P(OnEachCard, BoundaryFuzz, testing::ValuesIn(cards),
                         [](const auto& test) { return std::string(test.param.name); });

// The notes of a rank and of its provider are read only for the deadlock report.
TEST(BoundaryFuzzOfTheNotes, TheNotesOfARankDoNotChangeTheReportAboutOthers) {
  const auto waits_for = [](std::int32_t source) {
    return [source](ipc::Client& client) {
      client.block().note = {
          .receives = 1, .receive_source = source, .receive_tag = 70'005, .sends = 0, .send_target = -1};
      await(client, ipc::EventKind::arrived);
    };
  };
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    RandomStream random(seed, 2);
    const SessionReport report =
        run_beside(test::round_ideal(),
                   [&](View& view, const std::atomic<bool>& ended) {
                     using Bytes = std::pair<std::byte*, std::size_t>;
                     auto* notes = reinterpret_cast<std::byte*>(&view.notes());
                     while (!ended) {
                       // Small numbers are more likely to be valid, and so are writes to the calls.
                       const std::uint64_t value = random.below(2) == 0 ? random.below(8) : any_value(random);
                       auto* provider = reinterpret_cast<std::byte*>(&view.block().note);
                       const std::array<Bytes, 3> parts = {Bytes{provider, sizeof(ipc::WaitNote)},
                                                           Bytes{notes, offsetof(ipc::RankNotes, locks)},
                                                           Bytes{notes, sizeof(ipc::RankNotes)}};
                       const Bytes part = parts[random.below(parts.size())];
                       std::memcpy(part.first + random.below(part.second / 8) * 8, &value, sizeof value);
                     }
                   },
                   {waits_for(2), waits_for(-1), waits_for(0)});
    EXPECT_EQ(report.outcome, SessionReport::Outcome::deadlock) << "seed " << seed << ": " << report.message;
    for (const char* line : {"  rank 0: waits for a message from rank 2, tag 70005\n",
                             "  rank 2: waits for a message from rank 0, tag 70005\n", "  rank 1: "}) {
      EXPECT_NE(report.message.find(line), std::string::npos) << "seed " << seed << ": " << report.message;
    }
  }
}

// Every process can write the count of running processes.
TEST(BoundaryFuzzOfTheCount, AWrongCountOfRunningProcessesChangesNothing) {
  const SessionReport quiet = run_beside(test::round_ideal(), [](View&, const std::atomic<bool>&) {});
  ASSERT_EQ(quiet.outcome, SessionReport::Outcome::completed) << quiet.message;
  RandomStream random(7, 1);
  const SessionReport disturbed =
      run_beside(test::round_ideal(), [&](View& view, const std::atomic<bool>& ended) {
        for (int i = 0; i < 50 && !ended; ++i) {
          view.running().count = static_cast<std::uint32_t>(any_value(random));
          view.running().awaited = static_cast<std::uint32_t>(any_value(random));
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
  EXPECT_EQ(disturbed.outcome, SessionReport::Outcome::completed) << disturbed.message;
  EXPECT_EQ(disturbed.trace_hash, quiet.trace_hash);
}

}  // namespace
}  // namespace apenet::test
