// The processes of a rank act in one order: at objects in memory that they share, at files, and at the locks
// of those that end.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/fork_with_test.hpp"
#include "runtime/ipc/thread_order.hpp"
#include "runtime/threads/naive_order.hpp"

namespace apenet::ipc {
namespace {

using apenet::testing::action_count;
using apenet::testing::Do;
using apenet::testing::Happened;
using apenet::testing::NaiveOrder;
using apenet::testing::ThreadProgram;

// What the processes share. Written within actions only.
struct Shared {
  OrderTable table;
  int owner = -1;
  int written = 0;
  std::uint32_t happened_count = 0;
  std::array<Happened, 256> happened;
};

const void* shared_name(std::uint64_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<const void*>(OrderObject::shared_mark | number);
}
const void* const lock_name = shared_name(1);
const void* const condition_name = shared_name(2);

// Runs each of the functions in a process of its own, all from the same time on, and waits for their ends.
class Processes {
 public:
  using Work = std::function<void(ThreadOrder&, Shared&, OrderedThread&)>;

  Processes()
      : shared_(static_cast<Shared*>(
            mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    std::construct_at(shared_);
  }
  ~Processes() { munmap(shared_, sizeof(Shared)); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  Shared& run(const std::vector<Work>& works) {
    const auto large = std::make_unique<ThreadOrder>();
    ThreadOrder& order = *large;
    order.share(shared_->table);
    OrderedThread& own = *order.adopt(0);
    order.start(0);
    order.enter(own);
    for (const Work& work : works) {
      OrderedThread& entry = *order.create_process(own);
      const pid_t child = test::fork_with_test();
      if (child == 0) {
        order.reset();
        order.become(shared_->table, entry);
        work(order, *shared_, entry);
        syscall(SYS_exit_group, 0);  // the sanitizer sleeps in _exit()
      }
      order.note_process(entry, static_cast<std::uint32_t>(child));
    }
    for (std::size_t ended = 0; ended < works.size();) {
      OrderedThread* first = order.find_ended(0);
      if (first == nullptr) {
        if (order.await_end(own, 0, OrderedThread::no_deadline_ps) != Woken::no) continue;
        siginfo_t info{};  // it will come in the host
        waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
        first = order.find_process(static_cast<std::uint32_t>(info.si_pid));
      }
      const auto process = static_cast<pid_t>(first->process);
      order.forget_process(*first);
      waitpid(process, nullptr, 0);
      ++ended;
    }
    order.leave(own, own.key.clock_ps);
    return *shared_;
  }

 private:
  Shared* shared_;
};

// Some sleep in the host for longer than the order takes to find a process blocked.
void delay(std::uint32_t yields) {
  for (std::uint32_t i = 0; i < yields; ++i) std::this_thread::yield();
  if (yields % 8 == 7) std::this_thread::sleep_for(std::chrono::milliseconds(6));
}

void lock(ThreadOrder& order, Shared& shared, OrderedThread& own, int number) {
  while (shared.owner >= 0)
    order.block(own, lock_name, OrderedThread::no_deadline_ps, nullptr, WaitEnds::by_thread);
  shared.owner = number;
}

void unlock(ThreadOrder& order, Shared& shared, const OrderedThread& own) {
  shared.owner = -1;
  order.wake(lock_name, 1, &own);
}

// Returns the clock at the end of the action, which has begun.
std::int64_t act(ThreadOrder& order, Shared& shared, OrderedThread& own, int number, Do what) {
  const bool holds = shared.owner == number;
  switch (what) {
    case Do::charge:
      return own.key.clock_ps + 10;
    case Do::lock:
      if (!holds) lock(order, shared, own, number);
      break;
    case Do::unlock:
      if (holds) unlock(order, shared, own);
      break;
    case Do::wait:
    case Do::wait_long:
      if (!holds) break;
      unlock(order, shared, own);
      order.block(own, condition_name,
                  what == Do::wait ? OrderedThread::no_deadline_ps : own.key.clock_ps + 40, nullptr,
                  WaitEnds::by_thread);
      lock(order, shared, own, number);
      break;
    case Do::signal:
      order.wake(condition_name, 1, &own);
      break;
    case Do::broadcast:
      order.wake(condition_name, 1000, &own);
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

Processes::Work work_of(const ThreadProgram& program, int number, std::uint32_t seed) {
  return [=](ThreadOrder& order, Shared& shared, OrderedThread& own) {
    std::minstd_rand random(seed + static_cast<std::uint32_t>(number));
    for (std::size_t at = 0; at < program.size(); ++at) {
      delay(random() % 16);
      if (program[at] == Do::pass) {
        if (random() % 2 == 0) continue;
        order.enter(own);
        order.leave_no_trace(own);
        continue;
      }
      if (program[at] == Do::sleep) {
        order.enter_at(own, own.key.clock_ps + 25, WaitEnds::by_thread);
      } else {
        order.enter(own);
      }
      const std::int64_t clock = act(order, shared, own, number, program[at]);
      shared.happened[shared.happened_count++] = {static_cast<std::size_t>(number), at,
                                                  std::max(clock, own.key.clock_ps)};
      order.leave(own, clock);
    }
  };
}

TEST(OrderProcesses, DrawnProgramsMeetAtSharedObjectsAsThreadsDo) {
  int compared = 0;
  for (std::uint32_t seed = 1; compared < 60; ++seed) {
    std::minstd_rand random(seed);
    std::vector<ThreadProgram> programs(2 + random() % 3);
    for (ThreadProgram& program : programs) {
      program.resize(1 + random() % 8);
      for (Do& what : program) what = static_cast<Do>(random() % action_count);
    }
    const auto expected = NaiveOrder(programs).run();
    if (!expected) continue;  // some would wait for ever
    ++compared;
    std::vector<Processes::Work> works;
    for (std::size_t i = 0; i < programs.size(); ++i)
      works.push_back(work_of(programs[i], static_cast<int>(i), seed));
    Processes processes;
    const Shared& shared = processes.run(works);
    ASSERT_EQ(shared.happened_count, expected->size()) << "seed " << seed;
    for (std::size_t i = 0; i < expected->size(); ++i)
      ASSERT_TRUE(shared.happened[i] == (*expected)[i]) << "seed " << seed << ", event " << i;
  }
}

// Three processes write to a file after 10, 20 and 30; one reads what there is each time.
TEST(OrderProcesses, AReaderGetsTheTimesOfTheWriters) {
  std::vector<Processes::Work> works;
  works.emplace_back([](ThreadOrder& order, Shared& shared, OrderedThread& own) {
    for (int taken = 0; taken < 3; ++taken) {
      order.enter(own);
      while (shared.written == taken)
        order.block(own, order.files(), OrderedThread::no_deadline_ps, nullptr, WaitEnds::by_thread);
      shared.happened[shared.happened_count++] = {0, 0, own.key.clock_ps};
      order.leave(own, own.key.clock_ps);
    }
  });
  for (const int number : {3, 1, 2}) {
    works.emplace_back([number](ThreadOrder& order, Shared& shared, OrderedThread& own) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 * (4 - number)));  // the latest comes first
      order.enter_at(own, 10 * number, WaitEnds::by_thread);
      order.begin_file_change(own);
      ++shared.written;
      order.wake(order.files(), UINT32_MAX, &own);
      order.leave(own, own.key.clock_ps);
    });
  }
  Processes processes;
  const Shared& shared = processes.run(works);
  ASSERT_EQ(shared.happened_count, 3U);
  for (const std::size_t i : {0U, 1U, 2U})
    EXPECT_EQ(shared.happened[i].clock, 10 * (static_cast<std::int64_t>(i) + 1));
}

// Who waits for the lock of a process learns of its end when that happens, and not of an entry that has
// ended.
TEST(OrderProcesses, TheEndOfAnOwnerWakesThoseThatWaitForItsLock) {
  std::vector<Processes::Work> works;
  works.emplace_back([](ThreadOrder& order, Shared& shared, OrderedThread& own) {
    order.enter(own);
    shared.owner = static_cast<int>(own.id.load());
    order.leave(own, own.key.clock_ps);
    order.enter_at(own, 25, WaitEnds::by_thread);
    order.leave(own, own.key.clock_ps);
  });
  works.emplace_back([](ThreadOrder& order, Shared& shared, OrderedThread& own) {
    order.enter_at(own, 5, WaitEnds::by_thread);
    OrderedThread* const owner = order.find_by_id(shared.owner);
    const bool was_known = owner != nullptr;
    order.block(own, lock_name, OrderedThread::no_deadline_ps, owner, WaitEnds::by_thread);
    const bool is_known = order.find_by_id(shared.owner) != nullptr;
    shared.happened[shared.happened_count++] = {was_known ? 1U : 0U, is_known ? 1U : 0U, own.key.clock_ps};
    order.leave(own, own.key.clock_ps);
  });
  Processes processes;
  const Shared& shared = processes.run(works);
  ASSERT_EQ(shared.happened_count, 1U);
  EXPECT_TRUE((shared.happened[0] == Happened{1, 0, 25}));
}

}  // namespace
}  // namespace apenet::ipc
