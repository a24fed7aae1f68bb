// Semaphores, barriers, joins and pthread_once: their operations happen in the order of the threads
// (docs/internals/threads.md). Locks and conditions: thread_locks.cpp.
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_objects.hpp"
#include "runtime/shim/signal_waits.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::WaitEnds;
using ipc::Woken;

constinit RealFunction<int (*)(sem_t*)> real_sem_wait("sem_wait");
constinit RealFunction<int (*)(sem_t*)> real_sem_try("sem_trywait");
constinit RealFunction<int (*)(sem_t*)> real_sem_post("sem_post");
constinit RealFunction<int (*)(pthread_barrier_t*)> real_barrier_wait("pthread_barrier_wait");
constinit RealFunction<int (*)(pthread_t, void**)> real_join("pthread_join");
constinit RealFunction<int (*)(pthread_t, void**)> real_try_join("pthread_tryjoin_np");
constinit RealFunction<int (*)(pthread_once_t*, void (*)())> real_once("pthread_once");

// The C library's own layout, which it does not declare.
struct BarrierLayout {
  unsigned arrived;
  unsigned round;
  unsigned count;
  int shared;
};
const BarrierLayout& layout_of(const pthread_barrier_t* barrier) {
  return *reinterpret_cast<const BarrierLayout*>(barrier);
}
constexpr int once_is_done = 2;

// A process that the order did not know may come to post it.
class SemaphoreReadiness final : public ipc::HostReadiness {
 public:
  explicit SemaphoreReadiness(sem_t* semaphore) : semaphore_(semaphore) {}
  [[nodiscard]] bool is_there() override {
    int value = 0;
    return sem_getvalue(semaphore_, &value) == 0 && value > 0;
  }
  [[nodiscard]] ipc::HostReadiness* get() {
    return is_shared(semaphore_) && others_may_come(semaphore_) ? this : nullptr;
  }

 private:
  sem_t* semaphore_;
};

bool is_done(const pthread_once_t* once) {
  return __atomic_load_n(once, __ATOMIC_ACQUIRE) == once_is_done;
}

// The call of pthread_once that initialises: other threads are blocked until it has ended, also by an
// exception. A thread that finds it done might have found so before it called, so this is no action.
class Initialisation {
 public:
  Initialisation(OrderedThread& own, const pthread_once_t* once) : own_(own), once_(once) {
    OrderedAction action(own_);
    const auto is_ours = [this](const std::atomic<const pthread_once_t*>& entry) { return entry == once_; };
    while (std::any_of(in_progress.begin(), in_progress.end(), is_ours))
      thread_order().block(own_, once_, without_limit, nullptr, WaitEnds::by_thread);
    initialises_ = !is_done(once_);
    if (!initialises_) {
      action.leave_no_trace();
      return;
    }
    entry_ = std::find(in_progress.begin(), in_progress.end(), nullptr);
    if (entry_ != in_progress.end()) *entry_ = once_;
  }
  ~Initialisation() {
    if (!initialises_) return;
    const OrderedAction action(own_);
    if (entry_ != in_progress.end()) *entry_ = nullptr;
    thread_order().wake(once_, every_thread, &own_);
  }
  Initialisation(const Initialisation&) = delete;
  Initialisation& operator=(const Initialisation&) = delete;

 private:
  // More at a time wait for each other in the host.
  using InProgress = std::array<std::atomic<const pthread_once_t*>, 64>;
  static constinit InProgress in_progress;

  OrderedThread& own_;
  const pthread_once_t* once_;
  bool initialises_ = false;
  InProgress::iterator entry_ = in_progress.end();
};

constinit Initialisation::InProgress Initialisation::in_progress{};

}  // namespace

bool is_shared(const pthread_barrier_t* barrier) {
  return layout_of(barrier).shared != 0;
}

int wait_ordered(OrderedThread& own, sem_t* semaphore, std::int64_t deadline_ps) {
  SemaphoreReadiness readiness(semaphore);
  for (;;) {
    pthread_testcancel();
    if (real_sem_try(semaphore) == 0) return 0;
    const bool restarts = deadline_ps == without_limit;
    switch (await_signal(own, name_in_order(semaphore), deadline_ps, readiness.get(), restarts)) {
      case SignalWait::woken:
      case SignalWait::goes_on:
        continue;
      case SignalWait::timed_out:
        return ETIMEDOUT;
      case SignalWait::interrupted:
        pthread_testcancel();
        return EINTR;
      case SignalWait::of_host:
        const OutsideAction outside(own);
        return real_sem_wait(semaphore) == 0 ? 0 : errno;
    }
  }
}

int join_ordered(OrderedThread& own, pthread_t thread, void** result, std::int64_t deadline_ps) {
  for (;;) {
    pthread_testcancel();
    const OrderedAction action(own);
    OrderedThread* const other = thread_order().find(thread);
    if (other == nullptr || other == &own) break;
    if (block(own, other, deadline_ps, other, WaitEnds::by_cancel) == Woken::timed_out) return ETIMEDOUT;
  }
  return real_join(thread, result);
}

APENET_EXPORT int sem_wait(sem_t* semaphore) {
  auto* const own = ordered_thread();
  begin_wait_beside(own);
  int error = waits_in_host;
  {
    const ObjectUse use(own, semaphore);
    if (use.is_of_order()) error = wait_ordered(*own, semaphore, without_limit);
  }
  if (error != waits_in_host) {
    end_wait_beside();
    if (error == 0) return 0;
    errno = error;
    return -1;
  }
  const HostPace pace(pacing_client(), HostPace::Ender::thread);
  const OutsideOrder outside(own);
  return real_sem_wait(semaphore);
}

APENET_EXPORT int sem_post(sem_t* semaphore) noexcept {
  auto* const own = ordered_thread();
  const ObjectUse use(own, semaphore);
  const int result = real_sem_post(semaphore);
  if (thread_order().in_use() && use.name() != nullptr) wake(use.name(), 1, own);
  return result;
}

APENET_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  auto* const own = ordered_thread();
  const BarrierLayout& layout = layout_of(barrier);
  const ObjectUse use(own, barrier);
  if (!use.is_of_order()) {
    const HostPace pace(pacing_client(), HostPace::Ender::thread);
    return real_barrier_wait(barrier);
  }
  while (thread_order().count_blocked(use.name()) + 1 < layout.count) {
    if (block(*own, use.name(), without_limit, nullptr, WaitEnds::by_thread) != Woken::interrupted) return 0;
  }
  wake(use.name(), every_thread, own);
  return PTHREAD_BARRIER_SERIAL_THREAD;
}

APENET_EXPORT int pthread_join(pthread_t thread, void** result) {
  auto* const own = ordered_thread();
  if (own == nullptr) return real_join(thread, result);
  begin_wait_beside(own);
  const int error = join_ordered(*own, thread, result, without_limit);
  end_wait_beside();
  return error;
}

APENET_EXPORT int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr) return real_try_join(thread, result);
  const OrderedAction action(*own);
  if (thread_order().find(thread) != nullptr) return EBUSY;
  return real_join(thread, result);
}

APENET_EXPORT int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  if (pthread_join(thread, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}

APENET_EXPORT int pthread_once(pthread_once_t* once, void (*initialise)()) {
  auto* const own = ordered_thread();
  if (own == nullptr || is_done(once)) return real_once(once, initialise);
  const Initialisation initialisation(*own, once);
  return real_once(once, initialise);
}

APENET_EXPORT void call_once(once_flag* once, void (*initialise)()) {
  static_cast<void>(pthread_once(reinterpret_cast<pthread_once_t*>(once), initialise));
}

}  // namespace apenet::shim
