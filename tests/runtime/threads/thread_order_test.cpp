// Threads act in the order of their keys, whatever the host does.
#include "runtime/ipc/thread_order.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/threads/naive_order.hpp"

namespace apenet::ipc {
namespace {

using apenet::testing::action_count;
using apenet::testing::Do;
using apenet::testing::Happened;
using apenet::testing::NaiveOrder;
using apenet::testing::ThreadProgram;

// Executes a program in threads that come to their actions late, at random. They compute meanwhile, because
// the order passes a thread that sleeps in the host.
class Execution {
 public:
  // run_alone: one thread at a time, which must not change the order.
  Execution(const std::vector<ThreadProgram>& programs, std::uint32_t seed, bool run_alone)
      : programs_(programs), order_(std::make_unique<ThreadOrder>()), seed_(seed), run_alone_(run_alone) {
    if (run_alone_) order_->run_alone();
  }

  std::vector<Happened> run() {
    std::vector<OrderedThread*> entries;
    for (std::size_t i = 0; i < programs_.size(); ++i) entries.push_back(order_->create(nullptr));
    order_->start(0);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < programs_.size(); ++i)
      threads.emplace_back([this, i, own = entries[i]] { execute(i, *own); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(ran_together_ && run_alone_);
    return happened_;
  }

 private:
  void execute(std::size_t number, OrderedThread& own) {
    std::minstd_rand random(seed_ + static_cast<std::uint32_t>(number));
    order_->begin(own);
    for (std::size_t at = 0; at < programs_[number].size(); ++at) {
      delay(random);
      if (programs_[number][at] == Do::pass) {
        if (random() % 2 == 0) continue;
        order_->enter(own);
        order_->leave_no_trace(own);
        continue;
      }
      const std::int64_t clock = execute_one(number, programs_[number][at], own);
      happened_.push_back({number, at, std::max(clock, own.key.clock_ps)});  // serialised by the order
      order_->leave(own, clock);
    }
    order_->enter(own);
    order_->end(own);
  }
  void delay(std::minstd_rand& random) {
    if (running_.fetch_add(1) != 0) ran_together_ = true;
    pause(random);
    running_.fetch_sub(1);
  }
  static void pause(std::minstd_rand& random) {
    switch (random() % 8) {
      case 0:
        std::this_thread::yield();
        break;
      case 1: {
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 50);
        while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
        break;
      }
      default:
        break;
    }
  }
  // Returns the thread's clock at the end of the action.
  std::int64_t execute_one(std::size_t number, Do what, OrderedThread& own) {
    if (what == Do::sleep) {
      order_->enter_at(own, own.key.clock_ps + 25, WaitEnds::by_thread);
      return own.key.clock_ps;
    }
    order_->enter(own);
    const bool holds = owner_ == static_cast<int>(number);
    switch (what) {
      case Do::charge:
        return own.key.clock_ps + 10;
      case Do::lock:
        if (!holds) lock(number, own);
        break;
      case Do::unlock:
        if (holds) unlock(own);
        break;
      case Do::wait:
      case Do::wait_long:
        if (!holds) break;
        unlock(own);
        order_->block(own, &condition_,
                      what == Do::wait ? OrderedThread::no_deadline_ps : own.key.clock_ps + 40, nullptr,
                      WaitEnds::by_thread);
        lock(number, own);
        break;
      case Do::signal:
        order_->wake(&condition_, 1, &own);
        break;
      case Do::broadcast:
        order_->wake(&condition_, 1000, &own);
        break;
      case Do::yield:
        ThreadOrder::yield(own);
        break;
      case Do::act:
      case Do::sleep:
      case Do::pass:
        break;
    }
    return own.key.clock_ps;
  }
  void lock(std::size_t number, OrderedThread& own) {
    while (owner_ >= 0)
      order_->block(own, &owner_, OrderedThread::no_deadline_ps, nullptr, WaitEnds::by_thread);
    owner_ = static_cast<int>(number);
  }
  void unlock(const OrderedThread& own) {
    owner_ = -1;
    order_->wake(&owner_, 1, &own);
  }

  std::vector<ThreadProgram> programs_;
  std::unique_ptr<ThreadOrder> order_;
  std::uint32_t seed_;
  bool run_alone_;
  std::atomic<int> running_{0};
  std::atomic<bool> ran_together_{false};
  int owner_ = -1;
  int condition_ = 0;
  std::vector<Happened> happened_;
};

std::string text_of(const std::vector<ThreadProgram>& programs) {
  static const char* const names[] = {"act",       "charge", "sleep",     "lock",  "unlock", "wait",
                                      "wait_long", "signal", "broadcast", "yield", "pass"};
  std::string text;
  for (const ThreadProgram& program : programs) {
    text += "\n ";
    for (const Do what : program) text += std::string(" ") + names[static_cast<int>(what)];
  }
  return text;
}

void check(const std::vector<ThreadProgram>& programs, std::uint32_t seed) {
  const auto expected = NaiveOrder(programs).run();
  if (!expected) return;  // some thread would wait for ever
  const std::vector<Happened> happened = Execution(programs, seed, seed % 2 == 1).run();
  ASSERT_EQ(happened.size(), expected->size()) << text_of(programs);
  for (std::size_t i = 0; i < happened.size(); ++i) {
    ASSERT_TRUE(happened[i] == (*expected)[i])
        << "seed " << seed << ", event " << i << ": thread " << happened[i].thread << " action "
        << happened[i].action << " at " << happened[i].clock << ", expected thread " << (*expected)[i].thread
        << " action " << (*expected)[i].action << " at " << (*expected)[i].clock << text_of(programs);
  }
}

// By day one program in so many, which shares no divisor with the number of actions: all take minutes under
// the thread sanitizer, which is for the night (APENET_WHOLE_SCHEDULES).
std::uint32_t step_of_programs() {
  return std::getenv("APENET_WHOLE_SCHEDULES") == nullptr ? 13 : 1;
}

TEST(ThreadOrder, AllProgramsOfTwoThreadsWithTwoActions) {
  const auto at = [](std::uint32_t code) {
    return ThreadProgram{static_cast<Do>(code % action_count), static_cast<Do>(code / action_count)};
  };
  constexpr std::uint32_t programs = action_count * action_count;
  for (std::uint32_t number = 0; number < programs * programs; number += step_of_programs()) {
    check({at(number / programs), at(number % programs)}, number);
    if (HasFatalFailure()) return;
  }
}

TEST(ThreadOrder, DrawnProgramsOfUpToFourThreads) {
  for (std::uint32_t seed = 1; seed <= 5000; seed += step_of_programs()) {
    std::minstd_rand random(seed);
    std::vector<ThreadProgram> programs(2 + random() % 3);
    for (ThreadProgram& program : programs) {
      program.resize(1 + random() % 8);
      for (Do& what : program) what = static_cast<Do>(random() % action_count);
    }
    check(programs, seed);
    if (HasFatalFailure()) return;
  }
}

// It changes memory between its actions, which others read in theirs: they act only where it lets them.
TEST(ThreadOrder, NobodyActsBesideAThreadThatLivesInACall) {
  constexpr int rounds = 100;
  const auto order = std::make_unique<ThreadOrder>();
  OrderedThread* const library = order->create(nullptr);
  library->lives_in_call = true;
  OrderedThread* const other = order->create(nullptr);
  order->start(0);
  std::atomic<bool> is_changing{false};
  std::atomic<bool> is_over{false};
  int seen_changing = 0;
  std::thread first([&] {
    order->begin(*library);
    while (!is_over) {
      order->enter(*library);
      order->leave(*library, library->key.clock_ps);
      is_changing = true;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      is_changing = false;
      order->enter(*library);
      ThreadOrder::yield(*library);
      order->leave(*library, library->key.clock_ps);
    }
    order->enter(*library);
    order->end(*library);
  });
  std::thread second([&] {
    order->begin(*other);
    for (int round = 0; round < rounds; ++round) {
      order->enter(*other);
      if (is_changing) ++seen_changing;
      order->leave(*other, other->key.clock_ps);
    }
    is_over = true;
    order->enter(*other);
    order->end(*other);
  });
  first.join();
  second.join();
  EXPECT_EQ(seen_changing, 0);
}

// A library uses a lock while another thread acts once at the same time. Each string names
// an action.
std::vector<std::string> acts_beside(const std::vector<std::string>& of_library) {
  const auto order = std::make_unique<ThreadOrder>();
  OrderedThread* const library = order->create(nullptr);
  library->lives_in_call = true;
  OrderedThread* const other = order->create(nullptr);
  order->start(0);
  std::vector<std::string> acts;  // under the order
  std::thread first([&] {
    order->begin(*library);
    for (const std::string& what : of_library) {
      order->enter(*library);
      acts.push_back(what);
      if (what == "lock") ThreadOrder::note_lock(*library, true);
      if (what == "unlock") ThreadOrder::note_lock(*library, false);
      if (what == "poll") ThreadOrder::yield_without_locks(*library);
      order->leave(*library, library->key.clock_ps);
    }
    order->enter(*library);
    order->end(*library);
  });
  std::thread second([&] {
    order->begin(*other);
    order->enter(*other);
    acts.emplace_back("other");
    order->leave(*other, other->key.clock_ps);
    order->enter(*other);
    order->end(*other);
  });
  first.join();
  second.join();
  return acts;
}

TEST(ThreadOrder, AThreadInACallGivesWayOnceItHasNoLock) {
  using Acts = std::vector<std::string>;
  EXPECT_EQ(acts_beside({"poll", "lock", "unlock"}), (Acts{"poll", "other", "lock", "unlock"}));
  EXPECT_EQ(acts_beside({"lock", "poll", "unlock", "lock"}),
            (Acts{"lock", "poll", "unlock", "other", "lock"}));
  EXPECT_EQ(acts_beside({"lock", "poll", "poll", "unlock"}),
            (Acts{"lock", "poll", "poll", "other", "unlock"}));
}

}  // namespace
}  // namespace apenet::ipc
