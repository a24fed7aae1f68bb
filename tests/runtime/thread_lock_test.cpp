// A process that dies with the lock of its rank's block.
#include "runtime/ipc/thread_lock.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace apenet::ipc {
namespace {

struct Shared {
  ThreadLock lock;
  std::atomic<bool> is_inside{false};  // the other process has the lock
};

class SharedLock : public testing::Test {
 protected:
  SharedLock() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared = new (memory) Shared;
    lock = &shared->lock;
    EXPECT_EQ(pipe(ends), 0);
  }
  ~SharedLock() override {
    munmap(shared, sizeof(Shared));
    close(ends[0]);
    close(ends[1]);
  }

  static std::uint32_t own() { return static_cast<std::uint32_t>(getpid()); }
  template <typename Act>
  static pid_t start(Act act) {
    const pid_t child = fork();
    if (child != 0) return child;
    act();
    _exit(0);
  }
  static void await_end(pid_t child) {
    siginfo_t ended{};
    waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);  // nobody has waited for it yet
  }

  // In the child, and in its parent.
  void acquire_and_tell() {
    static_cast<void>(lock->acquire_among(own()));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
  }
  void await_word() {
    char word = 0;
    EXPECT_EQ(read(ends[0], &word, 1), 1);
  }

  Shared* shared = nullptr;
  ThreadLock* lock = nullptr;
  int ends[2] = {-1, -1};
};

TEST_F(SharedLock, AHolderThatHasEndedIsPassedOver) {
  const pid_t child = start([this] { static_cast<void>(lock->acquire_among(own())); });
  await_end(child);
  EXPECT_TRUE(lock->acquire_among(own()));
  lock->unlock();
  EXPECT_TRUE(lock->is_free());
  EXPECT_FALSE(lock->acquire_among(own()));
  lock->unlock();
  waitpid(child, nullptr, 0);
}

TEST_F(SharedLock, AHolderThatLivesIsWaitedFor) {
  const pid_t child = start([this] {
    acquire_and_tell();
    usleep(300'000);
    lock->unlock();
  });
  await_word();
  EXPECT_FALSE(lock->acquire_among(own()));
  lock->unlock();
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock->is_free());
}

// It has acquired the lock alone, so that the record of the dead one says nothing of it.
TEST_F(SharedLock, WhoeverComesBehindAHolderThatHasEndedIsWaitedFor) {
  const pid_t child = start([this] { static_cast<void>(lock->acquire_among(own())); });
  await_end(child);
  const pid_t next = start([this] {
    lock->acquire();
    shared->is_inside = true;
    usleep(400'000);
    shared->is_inside = false;
    lock->unlock();
  });
  usleep(50'000);  // it waits now, most probably
  EXPECT_TRUE(lock->acquire_among(own()));
  EXPECT_FALSE(shared->is_inside);
  lock->unlock();
  waitpid(next, nullptr, 0);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock->is_free());
}

}  // namespace
}  // namespace apenet::ipc
