// Tests when IdleWatch calls a standstill a deadlock: with processes that sleep in the host, and with a
// simulator that polls late.
#include "runtime/launch/idle_watch.hpp"
#include "runtime/fork_with_test.hpp"

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
#include <limits>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/host_waits.hpp"

namespace apenet::test {
namespace {

using namespace std::chrono_literals;

using Word = std::atomic<std::uint32_t>;

void sleep_at(const Word& word) {
  syscall(SYS_futex, &word, FUTEX_WAIT, word.load(), nullptr, nullptr, 0);
}

// A process each of whose threads sleeps at a word shared with the test, and goes back to sleep when woken.
// While the test runs on, all of them sleep, however busy the host is.
class Sleeper {
 public:
  static constexpr std::size_t most_threads = 4;

  explicit Sleeper(std::size_t threads) {
    void* shared = mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    words_ = new (shared) Words{};
    process_id_ = test::fork_with_test();
    if (process_id_ != 0) {
      for (std::size_t i = 0; i < threads; ++i) await_sleep(i);
      return;
    }
    for (std::size_t i = 1; i < threads; ++i) std::thread([this, i] { live(i); }).detach();
    live(0);
  }
  ~Sleeper() {
    kill(process_id_, SIGKILL);
    waitpid(process_id_, nullptr, 0);
    munmap(words_, sizeof(Words));
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] int process_id() const { return process_id_; }
  // Returns when the thread has woken and sleeps again.
  void wake(std::size_t thread) {
    const std::uint32_t before = words_->turns.load();
    ++words_->at[thread];
    while (words_->turns.load() == before) {
      syscall(SYS_futex, &words_->at[thread], FUTEX_WAKE, 1, nullptr, nullptr, 0);
      std::this_thread::sleep_for(100us);
    }
    await_sleep(thread);
  }

 private:
  struct Words {
    std::array<Word, most_threads> at;
    std::array<Word, most_threads> thread_ids;  // 0: the thread has not begun
    Word turns;
  };
  [[noreturn]] void live(std::size_t thread) {
    words_->thread_ids[thread] = static_cast<std::uint32_t>(gettid());
    for (;;) {
      sleep_at(words_->at[thread]);
      ++words_->turns;
    }
  }
  // The thread waits for nothing but its word.
  void await_sleep(std::size_t thread) const {
    for (;; std::this_thread::sleep_for(100us)) {
      const auto id = static_cast<int>(words_->thread_ids[thread].load());
      const auto state = id == 0 ? std::nullopt : thread_state(process_id_, id);
      if (state && state->state == 'S' && system_call(process_id_, id).number == SYS_futex) return;
    }
  }

  Words* words_ = nullptr;
  int process_id_ = 0;
};

// Only the wait for threads that all sleep can end: a busy host cannot make a poll so late that another one
// ends.
SessionOptions patience(std::chrono::milliseconds wait) {
  SessionOptions options;
  options.deadlock_wait_ms = static_cast<int>(wait.count());
  options.stall_timeout_ms = std::numeric_limits<int>::max();
  return options;
}

void pause_for(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

const IdleWatch::Questions& questions() {
  static const IdleWatch::Questions unanswered{.only_run_can_act = [] { return false; },
                                               .outside_wait = [] { return std::string{}; },
                                               .suspended = {}};
  return unanswered;
}

// Polls until the watch reports a deadlock, at most `most` times. Calls `between` after each poll that does
// not. Returns the number of polls, or 0 if no deadlock was reported.
int checks_until_stuck(IdleWatch& watch, int process_id, int most, const std::function<void()>& between) {
  watch.note(0);
  pause_for(110);  // the watch does not examine shorter waits
  for (int polls = 1; polls <= most; ++polls) {
    if (watch.is_stuck(true, {process_id}, pause_for, questions())) return polls;
    between();
  }
  return 0;
}

TEST(IdleWatch, ReportsADeadlockWhenAllThreadsSleep) {
  const Sleeper sleeper(3);
  IdleWatch watch(patience(100ms));
  EXPECT_NE(checks_until_stuck(watch, sleeper.process_id(), 200, [] { pause_for(5); }), 0);
}

// As when the host gives the simulator no processor: time passes between the polls.
TEST(IdleWatch, DoesNotCountTimeWithoutChecks) {
  const Sleeper sleeper(1);
  IdleWatch watch(patience(100ms));
  EXPECT_GT(checks_until_stuck(watch, sleeper.process_id(), 20, [] { pause_for(150); }), 5);
}

// As a thread that waits for a lock which another thread releases for a moment and takes again.
TEST(IdleWatch, WaitsForAThreadThatTriesToGetALock) {
  Sleeper sleeper(2);
  IdleWatch watch(patience(1s));
  EXPECT_EQ(checks_until_stuck(watch, sleeper.process_id(), 20, [&] { sleeper.wake(1); }), 0);
  EXPECT_NE(checks_until_stuck(watch, sleeper.process_id(), 200, [] {}), 0) << "it has given up";
}

// As with a lock that is never free for long enough.
TEST(IdleWatch, StopsWaitingForAThreadThatNeverGetsTheLock) {
  Sleeper sleeper(2);
  IdleWatch watch(patience(300ms));
  const int polls = checks_until_stuck(watch, sleeper.process_id(), 200, [&] { sleeper.wake(1); });
  EXPECT_GT(polls, 40);
}

// The only thread of a rank wakes because the simulator releases it between two polls.
TEST(IdleWatch, DoesNotTakeTheOnlyThreadForOneThatTriesToGetALock) {
  Sleeper sleeper(1);
  IdleWatch watch(patience(100ms));
  const int polls = checks_until_stuck(watch, sleeper.process_id(), 200, [&] { sleeper.wake(0); });
  EXPECT_NE(polls, 0);
  EXPECT_LT(polls, 30);
}

extern "C" {
void* apenet_test_helper(void* again);
void* apenet_test_spinning_helper(void* may_wait);
}

void* sleep_in_program(void* again) {
  for (;;) apenet_test_helper(nullptr);
  return again;
}

// A child process with a second thread, which lives in life(argument).
class TwoThreads {
 public:
  TwoThreads(void* (*life)(void*), void* argument) : process_id_(test::fork_with_test()) {
    if (process_id_ != 0) return;
    pthread_t thread{};
    pthread_create(&thread, nullptr, life, argument);
    for (;;) pause();
  }
  ~TwoThreads() {
    kill(process_id_, SIGKILL);
    waitpid(process_id_, nullptr, 0);
  }
  TwoThreads(const TwoThreads&) = delete;
  TwoThreads& operator=(const TwoThreads&) = delete;

  [[nodiscard]] int process_id() const { return process_id_; }
  [[nodiscard]] int second() const {
    for (;; std::this_thread::sleep_for(1ms)) {
      if (const std::vector<int> threads = threads_of(process_id_); threads.size() == 2) return threads[1];
    }
  }
  [[nodiscard]] bool second_is_of_library() const {
    const int thread = second();
    for (;; std::this_thread::sleep_for(1ms)) {
      if (system_call(process_id_, thread).number != SYS_poll) continue;
      // Between the two calls, its poll may have ended.
      if (const auto is_library = is_library_thread(process_id_, thread)) return *is_library;
    }
  }

 private:
  pid_t process_id_;
};

// While it runs, nothing is known of it, and so nothing is remembered.
TEST(IdleWatch, AThreadThatRunsIsExaminedAgain) {
  void* shared = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  {
    const TwoThreads runs(apenet_test_spinning_helper, shared);
    LibraryThreads known;
    for (int check = 0; check < 20; ++check) EXPECT_FALSE(known.contains(runs.process_id(), runs.second()));
    *static_cast<volatile int*>(shared) = 1;
    while (!known.contains(runs.process_id(), runs.second())) std::this_thread::sleep_for(1ms);
  }
  munmap(shared, sizeof(int));
}

// Its timed waits go on as long as the process: they are no sign that something will happen.
TEST(IdleWatch, AThreadOfTheMpiLibraryIsDistinguishedFromOneOfTheProgram) {
  int any = 0;  // with an argument, the helper polls again
  EXPECT_TRUE(TwoThreads(apenet_test_helper, &any).second_is_of_library());
  EXPECT_FALSE(TwoThreads(sleep_in_program, &any).second_is_of_library());
}

}  // namespace
}  // namespace apenet::test
