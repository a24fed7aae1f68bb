// A thread waits in the host without a word to the order: it is waited for as long as something may wake it.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ipc/thread_order.hpp"

namespace apenet::ipc {
namespace {

using std::chrono::milliseconds;
using Acts = std::vector<std::string>;

// Far longer than the order takes to find a thread blocked.
constexpr milliseconds holder_delay{80};

// Threads that all begin at one time, the first one with the least key.
class Threads {
 public:
  using Act = std::function<void(const std::string& name)>;
  using Work = std::function<void(const Act& act)>;

  // Returns the names of the actions in their order.
  Acts run(const std::vector<Work>& works) {
    std::vector<OrderedThread*> entries;
    for (std::size_t i = 0; i < works.size(); ++i) entries.push_back(order_->create(nullptr));
    order_->start(0);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < works.size(); ++i)
      threads.emplace_back([this, &work = works[i], own = entries[i]] { execute(work, *own); });
    for (std::thread& thread : threads) thread.join();
    return acts_;
  }
  [[nodiscard]] bool has_overtaken() const { return order_->has_overtaken(); }

 private:
  void execute(const Work& work, OrderedThread& own) {
    order_->begin(own);
    work([this, &own](const std::string& name) {
      order_->enter(own);
      acts_.push_back(name);  // serialised by the order
      order_->leave(own, own.key.clock_ps);
    });
    order_->enter(own);
    order_->end(own);
  }

  std::unique_ptr<ThreadOrder> order_ = std::make_unique<ThreadOrder>();
  Acts acts_;
};

void wait_for(const std::atomic<bool>& is_set) {
  while (!is_set) std::this_thread::yield();
}

// Uses a processor, as a thread does for which the host has none.
void run_for(milliseconds time) {
  const auto ends = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < ends) {
  }
}

// The first thread waits for a lock of the C library, say; the last one has it, while hold() goes on.
void expect_wait_for_holder(const std::function<void()>& hold) {
  std::mutex inner;
  std::atomic<bool> is_held{false};
  Threads threads;
  const auto first = [&](const Threads::Act& act) {
    wait_for(is_held);
    inner.lock();
    inner.unlock();
    act("first");
  };
  const auto other = [](const Threads::Act& act) { act("other"); };
  const auto holder = [&](const Threads::Act& act) {
    inner.lock();
    is_held = true;
    hold();
    inner.unlock();
    act("holder");
  };
  EXPECT_EQ(threads.run({first, other, holder}), (Acts{"first", "other", "holder"}));
  EXPECT_FALSE(threads.has_overtaken());
}

TEST(HiddenWaits, TheHolderOfALockOfTheHostRuns) {
  expect_wait_for_holder([] { run_for(holder_delay); });
}

TEST(HiddenWaits, TheHolderOfALockOfTheHostSleeps) {
  expect_wait_for_holder([] { std::this_thread::sleep_for(holder_delay); });
}

TEST(HiddenWaits, AThreadSleepsInTheHost) {
  Threads threads;
  const auto first = [](const Threads::Act& act) {
    std::this_thread::sleep_for(holder_delay);
    act("first");
  };
  const auto other = [](const Threads::Act& act) { act("other"); };
  EXPECT_EQ(threads.run({first, other}), (Acts{"first", "other"}));
  EXPECT_FALSE(threads.has_overtaken());
}

// What the first thread waits for comes only if the other one acts before it: the run says that the host may
// have chosen the order.
void expect_other_first(const std::function<void()>& wait, const std::function<void()>& wake) {
  Threads threads;
  const auto first = [&](const Threads::Act& act) {
    wait();
    act("first");
  };
  const auto other = [&](const Threads::Act& act) {
    act("other");
    wake();
  };
  EXPECT_EQ(threads.run({first, other}), (Acts{"other", "first"}));
  EXPECT_TRUE(threads.has_overtaken());
}

TEST(HiddenWaits, TheHolderOfALockOfTheHostWaitsToAct) {
  std::mutex inner;
  std::atomic<bool> is_held{false};
  Threads threads;
  const auto first = [&](const Threads::Act& act) {
    wait_for(is_held);
    inner.lock();
    inner.unlock();
    act("first");
  };
  const auto holder = [&](const Threads::Act& act) {
    inner.lock();
    is_held = true;
    act("holder");
    inner.unlock();
  };
  EXPECT_EQ(threads.run({first, holder}), (Acts{"holder", "first"}));
  EXPECT_TRUE(threads.has_overtaken());
}

TEST(HiddenWaits, APipeThatTheOtherThreadWrites) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  char byte = 0;
  expect_other_first([&] { EXPECT_EQ(read(ends[0], &byte, 1), 1); },
                     [&] { EXPECT_EQ(write(ends[1], "x", 1), 1); });
  close(ends[0]);
  close(ends[1]);
}

TEST(HiddenWaits, AVeryLongSleepInTheHost) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  constexpr int most_ms = 3'600'000;
  expect_other_first(
      [&] {
        pollfd end{.fd = ends[0], .events = POLLIN, .revents = 0};
        EXPECT_EQ(poll(&end, 1, most_ms), 1);
      },
      [&] { EXPECT_EQ(write(ends[1], "x", 1), 1); });
  close(ends[0]);
  close(ends[1]);
}

TEST(HiddenWaits, ALoopOfSleepsUntilTheOtherThreadChangesMemory) {
  std::atomic<bool> is_changed{false};
  expect_other_first(
      [&] {
        while (!is_changed) std::this_thread::sleep_for(milliseconds(2));
      },
      [&] { is_changed = true; });
}

}  // namespace
}  // namespace apenet::ipc
