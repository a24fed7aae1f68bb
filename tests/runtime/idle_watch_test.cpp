// When is a run that stands still a deadlock? Processes that sleep in the host, and a simulator that is late.
#include "runtime/launch/idle_watch.hpp"

#include <gtest/gtest.h>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <new>
#include <thread>

namespace apenet::test {
namespace {

using namespace std::chrono_literals;

using Word = std::atomic<std::uint32_t>;

void sleep_at(const Word& word) {
  syscall(SYS_futex, &word, FUTEX_WAIT, word.load(), nullptr, nullptr, 0);
}

// A process whose threads each sleep at a word that it shares with the test, and go back to sleep when woken.
class Sleeper {
 public:
  static constexpr std::size_t most_threads = 4;

  explicit Sleeper(std::size_t threads) {
    void* shared = mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    words_ = new (shared) Words{};
    process_id_ = fork();
    if (process_id_ != 0) return;
    for (std::size_t i = 1; i < threads; ++i) std::thread([this, i] { live(words_->at[i]); }).detach();
    live(words_->at[0]);
  }
  ~Sleeper() {
    kill(process_id_, SIGKILL);
    waitpid(process_id_, nullptr, 0);
    munmap(words_, sizeof(Words));
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] int process_id() const { return process_id_; }
  // Returns when the thread has woken and is about to sleep again.
  void wake(std::size_t thread) {
    const std::uint32_t before = words_->turns.load();
    ++words_->at[thread];
    while (words_->turns.load() == before) {
      syscall(SYS_futex, &words_->at[thread], FUTEX_WAKE, 1, nullptr, nullptr, 0);
      std::this_thread::sleep_for(100us);
    }
  }

 private:
  struct Words {
    std::array<Word, most_threads> at;
    Word turns;
  };
  [[noreturn]] void live(const Word& word) {
    for (;;) {
      sleep_at(word);
      ++words_->turns;
    }
  }

  Words* words_ = nullptr;
  int process_id_ = 0;
};

SessionOptions patience(std::chrono::milliseconds wait) {
  SessionOptions options;
  options.deadlock_wait_ms = static_cast<int>(wait.count());
  options.stall_timeout_ms = static_cast<int>(wait.count());
  return options;
}

void pause(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// Looks until the watch calls it a deadlock, at most so often; before each look but the first, `between` is
// done.
int looks_until_stuck(IdleWatch& watch, int process_id, int most, const std::function<void()>& between) {
  watch.note(0);
  pause(110);  // it is too early to look
  for (int look = 1; look <= most; ++look) {
    if (watch.is_stuck(true, {process_id}, pause)) return look;
    between();
  }
  return 0;
}

TEST(IdleWatch, CallsItADeadlockWhenAllSleep) {
  const Sleeper sleeper(3);
  IdleWatch watch(patience(100ms));
  EXPECT_NE(looks_until_stuck(watch, sleeper.process_id(), 200, [] { pause(5); }), 0);
}

// The host has given it no processor: time has passed in which it has seen nothing.
TEST(IdleWatch, ConcludesNothingFromTimeInWhichItDidNotLook) {
  const Sleeper sleeper(1);
  IdleWatch watch(patience(100ms));
  EXPECT_GT(looks_until_stuck(watch, sleeper.process_id(), 20, [] { pause(150); }), 5);
}

// As one behind a lock that another thread lets go of when it is released, and takes again.
TEST(IdleWatch, WaitsForAThreadThatTriesToGetALock) {
  Sleeper sleeper(2);
  IdleWatch watch(patience(100ms));
  EXPECT_EQ(looks_until_stuck(watch, sleeper.process_id(), 20, [&] { sleeper.wake(1); }), 0);
  EXPECT_NE(looks_until_stuck(watch, sleeper.process_id(), 200, [] {}), 0) << "it has given up";
}

// Nobody ever lets go of it for long enough.
TEST(IdleWatch, DoesNotWaitForEver) {
  Sleeper sleeper(2);
  IdleWatch watch(patience(300ms));
  const int looks = looks_until_stuck(watch, sleeper.process_id(), 200, [&] { sleeper.wake(1); });
  EXPECT_GT(looks, 40);
}

// The only thread of a rank, which all say waits in the simulation, is released between two looks.
TEST(IdleWatch, TakesTheOnlyThreadForOneThatHasCome) {
  Sleeper sleeper(1);
  IdleWatch watch(patience(100ms));
  const int looks = looks_until_stuck(watch, sleeper.process_id(), 200, [&] { sleeper.wake(0); });
  EXPECT_NE(looks, 0);
  EXPECT_LT(looks, 30);
}

}  // namespace
}  // namespace apenet::test
