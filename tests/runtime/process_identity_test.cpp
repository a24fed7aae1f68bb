// What a rank, or a program in its name, says about the ids of processes: the simulator reads, writes, moves
// and signals no process but those of its run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "kernel/random.hpp"
#include "ranks.hpp"
#include "runtime/fork_with_test.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "support/cases.hpp"

namespace apenet::test {
namespace {

// A child of this process that sleeps until the object is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& first = [] {}) : id_(test::fork_with_test()) {
    if (id_ != 0) return;
    first();
    pause();
    _exit(0);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void end() {
    if (id_ == 0) return;
    kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = 0;
  }
  [[nodiscard]] int id() const { return id_; }

 private:
  pid_t id_;
};

// A shell that becomes the rank's program.
TEST(ProcessIdentity, AProcessThatHasJustExecutedAProgramIsAwaited) {
  SharedMemory shared(1);
  auto* const base = reinterpret_cast<std::byte*>(&shared.header());
  const std::size_t bytes = ipc::Layout{1}.total_bytes();
  const auto file = static_cast<int>(shared.header().parts_fd);
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const Child child([&] {
    munmap(base, bytes);
    const char has_left = 1;
    [[maybe_unused]] const ssize_t written = write(pipe_ends[1], &has_left, 1);
    usleep(50'000);
    mmap(base, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
  });
  char has_left = 0;
  ASSERT_EQ(read(pipe_ends[0], &has_left, 1), 1);
  ProcessIds ids(shared);
  ids.set_tree(ProcessTree(getpid(), {child.id()}));
  shared.block(0).identity.process_id = static_cast<std::uint32_t>(child.id());
  EXPECT_EQ(ids.of(0), static_cast<std::uint32_t>(child.id()));
  for (const int end : pipe_ends) close(end);
}

// Each of them has the mapping: this process has made it.
TEST(ProcessIdentity, NoOtherProcessThatHasTheMappingRepresentsARank) {
  SharedMemory shared(5);
  std::atomic<int> thread_id{0};
  std::atomic<bool> ends{false};
  std::thread thread([&] {
    thread_id = static_cast<int>(syscall(SYS_gettid));
    while (!ends) usleep(1000);
  });
  while (thread_id == 0) usleep(1000);
  Child leader;
  Child other_leader;
  Child kept;
  ProcessIds ids(shared);
  ids.set_tree(ProcessTree(getpid(), {leader.id(), other_leader.id(), 0, 0, 0}));
  const auto claim = [&](std::uint32_t rank, int id) {
    shared.block(rank).identity.process_id = static_cast<std::uint32_t>(id);
  };
  claim(0, other_leader.id());
  claim(1, thread_id);
  claim(2, kept.id());
  claim(3, getpid());
  claim(4, getppid());
  for (const std::uint32_t rank : {0U, 1U, 3U, 4U}) EXPECT_THROW(ids.of(rank), RankError) << rank;
  EXPECT_EQ(ids.of(2), static_cast<std::uint32_t>(kept.id()));
  ends = true;
  thread.join();
}

TEST(ProcessIdentity, TheIdOfAProcessThatHasEndedNamesNobody) {
  SharedMemory shared(1);
  auto* const word =
      static_cast<int*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  Child kept;
  shared.block(0).identity.process_id = static_cast<std::uint32_t>(kept.id());
  ProcessIds ids(shared);
  ProcessMemory memory(shared, ids);
  const auto address = reinterpret_cast<std::uint64_t>(word);
  const int seven = 7;
  int read = 1;
  EXPECT_TRUE(memory.write(0, address, std::as_bytes(std::span(&seven, 1))));
  EXPECT_TRUE(memory.read(0, address, std::as_writable_bytes(std::span(&read, 1))));
  EXPECT_EQ(read, 7);
  const auto named = ids.of(0);
  kept.end();
  EXPECT_EQ(ids.of(0), named);
  EXPECT_EQ(ids.running(0), 0U);
  EXPECT_EQ(ids.all_running(), std::vector<int>{0});
  EXPECT_FALSE(memory.write(0, address, std::as_bytes(std::span(&seven, 1))));
  EXPECT_FALSE(memory.read(0, address, std::as_writable_bytes(std::span(&read, 1))));
  munmap(word, 4096);
}

// The ids of the processes that a leader has started. Each tells its own when it is ready.
struct ReportedIds {
  std::atomic<int> child;
  std::atomic<int> without_mapping;
  std::atomic<int> thread;
};
struct AllReportedIds {
  std::array<ReportedIds, 2> of_leaders;
  std::atomic<int> kept;
  std::atomic<int> stranger;
};

// Two ranks' leaders with their processes, and processes of nobody. Each process knows its own id at the same
// address.
class Cast {
 public:
  Cast() {
    const auto leads = [this](ReportedIds& reported) {
      return [this, &reported] {
        name_itself();
        start([&] {
          name_itself();
          reported.child = getpid();
        });
        start([&] {
          drop_inherited_mappings();
          reported.without_mapping = getpid();
        });
        std::thread([&reported] {
          reported.thread = static_cast<int>(syscall(SYS_gettid));
          pause();
        }).detach();
      };
    };
    for (std::size_t rank = 0; rank < leaders_.size(); ++rank)
      leaders_[rank] = std::make_unique<Child>(leads(reported_->of_leaders[rank]));
    kept_ = std::make_unique<Child>([this] {
      name_itself();
      reported_->kept = getpid();
    });
    // The process is another user's, if the test may start one, and its parent has ended.
    Child parent([this] {
      start([this] {
        constexpr uid_t nobody = 65534;
        if (setuid(nobody) != 0) errno = 0;
        prctl(PR_SET_PDEATHSIG, 0);
        reported_->stranger = getpid();
      });
    });
    for (const ReportedIds& reported : reported_->of_leaders) {
      await(reported.child);
      await(reported.without_mapping);
      await(reported.thread);
    }
    await(reported_->kept);
    await(reported_->stranger);
    parent.end();
    zombie_ = test::fork_with_test();
    if (zombie_ == 0) _exit(0);
    Child gone;
    gone_ = gone.id();
  }
  ~Cast() {
    kill(reported_->stranger, SIGKILL);
    waitpid(zombie_, nullptr, 0);
  }
  Cast(const Cast&) = delete;
  Cast& operator=(const Cast&) = delete;

  struct Claim {
    std::uint32_t id;
    std::array<bool, 2> is_believed;  // one for each rank
  };
  [[nodiscard]] std::vector<Claim> claims() const {
    std::vector<Claim> claims;
    const auto add = [&claims](int id, std::array<bool, 2> is_believed) {
      claims.push_back({static_cast<std::uint32_t>(id), is_believed});
    };
    for (std::size_t rank = 0; rank < leaders_.size(); ++rank) {
      const ReportedIds& reported = reported_->of_leaders[rank];
      for (const int id : {leaders_[rank]->id(), reported.child.load()}) add(id, {rank == 0, rank == 1});
      for (const int id : {reported.without_mapping.load(), reported.thread.load()}) add(id, {false, false});
    }
    add(kept_->id(), {true, true});
    for (const int id :
         {reported_->stranger.load(), zombie_, gone_, getpid(), getppid(), 0, 1, -1, 1 << 22, (1 << 22) + 1})
      add(id, {false, false});
    return claims;
  }
  [[nodiscard]] ProcessTree tree() const { return {getpid(), {leaders_[0]->id(), leaders_[1]->id()}}; }
  [[nodiscard]] std::uint64_t word() const { return reinterpret_cast<std::uint64_t>(own_id_); }

 private:
  template <typename T>
  static T* new_page(int sharing) {
    void* page = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? nullptr : static_cast<T*>(page);
  }
  void name_itself() const { *own_id_ = static_cast<std::uint32_t>(getpid()); }
  // Starts a process that ends with the one that starts it.
  template <typename First>
  static void start(First first) {
    if (test::fork_with_test() != 0) return;
    first();
    pause();
    _exit(0);
  }
  static void await(const std::atomic<int>& reported) {
    while (reported == 0) usleep(1000);
  }

  // Before the leaders, which use them.
  AllReportedIds* reported_ = new_page<AllReportedIds>(MAP_SHARED);
  std::uint32_t* own_id_ = new_page<std::uint32_t>(MAP_PRIVATE);
  std::array<std::unique_ptr<Child>, 2> leaders_;
  std::unique_ptr<Child> kept_;
  pid_t zombie_ = 0;
  int gone_ = 0;
};

// Whatever a rank claims, and claims afterwards, the simulator touches the memory of a process of that rank,
// and always of the same one, or of none.
TEST(ProcessIdentity, AnySeriesOfClaimsLeadsToAProcessOfTheRankOrToNone) {
  SharedMemory shared(2);
  const Cast cast;
  std::vector<Cast::Claim> claims = cast.claims();
  RandomStream random(1, 1);
  std::size_t believed = 0;
  const std::uint64_t series = drawn_cases(300);
  for (std::uint64_t number = 0; number < series; ++number) {
    ProcessIds ids(shared);
    ids.set_tree(cast.tree());
    ProcessMemory memory(shared, ids);
    const auto rank = static_cast<std::uint32_t>(random.below(2));
    std::atomic<std::uint32_t>& claimed = shared.block(rank).identity.process_id;
    std::uint32_t known = 0;
    bool is_refused = false;
    for (int step = 0; step < 4; ++step) {
      const Cast::Claim claim = claims[random.below(claims.size())];
      claimed = claim.id;
      if (known == 0 && !is_refused && claim.is_believed[rank]) known = claim.id;
      std::uint32_t found = 0;
      try {
        found = ids.of(rank);
      } catch (const RankError&) {
        is_refused = true;
      }
      EXPECT_EQ(found, known) << "rank " << rank << " claims " << claim.id;
      std::uint32_t word = 0;
      const bool is_read = memory.read(rank, cast.word(), std::as_writable_bytes(std::span(&word, 1)));
      EXPECT_EQ(is_read, known != 0);
      EXPECT_EQ(word, known);
      EXPECT_EQ(memory.write(rank, cast.word(), std::as_bytes(std::span(&known, 1))), known != 0);
    }
    if (known != 0) ++believed;
  }
  EXPECT_GT(believed, series / 10);
}

}  // namespace
}  // namespace apenet::test
