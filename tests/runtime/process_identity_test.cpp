// What a rank, or a program in its name, says about the ids of processes: the simulator reads, writes, moves
// and signals no process but those of its run.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_error.hpp"

namespace apenet::test {
namespace {

// A child of this process that sleeps until the object is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& first = [] {}) : id_(fork()) {
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

}  // namespace
}  // namespace apenet::test
