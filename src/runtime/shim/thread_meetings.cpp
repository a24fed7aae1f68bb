// Semaphores, barriers, joins and pthread_once: their operations happen in the order of the threads
// (docs/internals/threads.md). Locks and conditions: thread_locks.cpp.
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <unistd.h>

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
constexpr int once_is_begun = 1, once_is_done = 2;

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
// A thread initialises, of this process or, before a fork, of its parent.
bool is_begun(const pthread_once_t* once) {
  return (__atomic_load_n(once, __ATOMIC_ACQUIRE) & once_is_begun) != 0;
}

// The initialisations by pthread_once that threads of the order have begun, also a thread that was the only
// one of the process then: the thread that it starts may wait for it. Those of others are unknown, and so are
// more at a time than fit: waits for them are in the host.
class OncesInProgress {
 public:
  struct Entry {
    std::atomic<const pthread_once_t*> once{nullptr};
    std::atomic<pid_t> process{0};  // a child of fork() begins anew what a thread of its parent had begun
  };

  [[nodiscard]] Entry* find(const pthread_once_t* once) {
    const pid_t process = getpid();
    const auto* const end = entries_.end();
    auto* const found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.once == once && entry.process == process;
    });
    return found == end ? nullptr : found;
  }
  // nullptr if there is no space.
  [[nodiscard]] Entry* add(const pthread_once_t* once) {
    for (Entry& entry : entries_) {
      const pthread_once_t* none = nullptr;
      if (!entry.once.compare_exchange_strong(none, once)) continue;
      entry.process = getpid();
      return &entry;
    }
    return nullptr;
  }

  static constinit OncesInProgress in_progress;

 private:
  std::array<Entry, 64> entries_{};
};

constinit OncesInProgress OncesInProgress::in_progress;

// The call of pthread_once that initialises: other threads are blocked until it has ended, also by an
// exception. A thread that finds it done might have found so before it called, so this is no action.
class Initialisation {
 public:
  Initialisation(OrderedThread* own, const pthread_once_t* once) : once_(once) {
    if (own == nullptr) {
      entry_ = OncesInProgress::in_progress.add(once_);
      return;
    }
    OrderedAction action(*own);
    await_others(*own);
    if (is_done(once_))
      action.leave_no_trace();
    else if (!is_begun(once_))
      entry_ = OncesInProgress::in_progress.add(once_);
  }
  ~Initialisation() {
    if (entry_ == nullptr) return;
    OrderedThread* const own = ordered_thread();  // it may have started another thread
    if (own == nullptr) {
      entry_->once = nullptr;
      return;
    }
    const OrderedAction action(*own);
    entry_->once = nullptr;
    wake(once_, every_thread, own);
  }
  Initialisation(const Initialisation&) = delete;
  Initialisation& operator=(const Initialisation&) = delete;

  // Whether the calling thread initialises, or finds it done: it does not wait in the host for a thread of
  // which the order knows nothing.
  [[nodiscard]] bool is_known() const { return entry_ != nullptr || !is_begun(once_); }

 private:
  // Not inlined: in a larger frame of its caller, reports of deadlocks would find addresses of earlier calls.
  [[gnu::noinline]] void await_others(OrderedThread& own) const {
    while (OncesInProgress::in_progress.find(once_) != nullptr)
      block(own, once_, without_limit, nullptr, WaitEnds::by_thread);
  }

  const pthread_once_t* once_;
  OncesInProgress::Entry* entry_ = nullptr;
};

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
  if (is_done(once)) return real_once(once, initialise);
  auto* const own = ordered_thread();
  if (own == nullptr && (is_unordered || thread_order().in_use())) return real_once(once, initialise);
  if (own == nullptr && OncesInProgress::in_progress.find(once) != nullptr) {
    // For itself: only the process's timers go on.
    const HostPace pace(pacing_client(), HostPace::Ender::thread);
    return real_once(once, initialise);
  }
  const Initialisation initialisation(own, once);
  const OutsideOrder outside(initialisation.is_known() ? nullptr : own);
  return real_once(once, initialise);
}

APENET_EXPORT void call_once(once_flag* once, void (*initialise)()) {
  static_cast<void>(pthread_once(reinterpret_cast<pthread_once_t*>(once), initialise));
}

}  // namespace apenet::shim
