// A process that dies with the lock of its rank's block, and one that dies while it waits for it.
#include "runtime/ipc/thread_lock.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

namespace apenet::ipc {
namespace {

class SharedLock : public testing::Test {
 protected:
  SharedLock() {
    void* const memory =
        mmap(nullptr, sizeof(ThreadLock), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    lock = new (memory) ThreadLock;
    EXPECT_EQ(pipe(ends), 0);
  }
  ~SharedLock() override {
    munmap(lock, sizeof(ThreadLock));
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

TEST_F(SharedLock, OneThatEndsWithItsHolderWhileItWaitsIsPassedOverToo) {
  const pid_t child = start([this] {
    acquire_and_tell();
    static_cast<void>(lock->acquire_among(own()));  // as another thread of it
  });
  await_word();
  usleep(100'000);  // it waits now, most probably
  kill(child, SIGKILL);
  await_end(child);
  EXPECT_TRUE(lock->acquire_among(own()));
  lock->unlock();
  EXPECT_TRUE(lock->is_free());
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace apenet::ipc
