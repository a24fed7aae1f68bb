// Locks and conditions of threads: their operations happen in the order of the threads
// (docs/internals/threads.md). Semaphores, barriers and joins: thread_meetings.cpp.
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "runtime/shim/memory_watchers.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/ordered_waits.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_objects.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::ThreadOrder;
using ipc::WaitEnds;
using ipc::Woken;

// Older conditions of the same names have another layout.
constexpr const char* condition_version = "GLIBC_2.3.2";

constinit RealFunction<int (*)(pthread_mutex_t*)> real_lock("pthread_mutex_lock");
constinit RealFunction<int (*)(pthread_mutex_t*)> real_try_lock("pthread_mutex_trylock");
constinit RealFunction<int (*)(pthread_mutex_t*)> real_unlock("pthread_mutex_unlock");
constinit RealFunction<int (*)(pthread_cond_t*, pthread_mutex_t*)> real_wait("pthread_cond_wait",
                                                                             condition_version);
constinit RealFunction<int (*)(pthread_cond_t*)> real_signal("pthread_cond_signal", condition_version);
constinit RealFunction<int (*)(pthread_cond_t*)> real_broadcast("pthread_cond_broadcast", condition_version);
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_read_lock("pthread_rwlock_rdlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_write_lock("pthread_rwlock_wrlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_try_read_lock("pthread_rwlock_tryrdlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_try_write_lock("pthread_rwlock_trywrlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_rw_unlock("pthread_rwlock_unlock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_spin_lock("pthread_spin_lock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_try_spin_lock("pthread_spin_trylock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_spin_unlock("pthread_spin_unlock");

// Threads that wait at a condition in the host.
constinit std::atomic<int> host_condition_waits{0};

std::int32_t owner_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__owner;
}

// A process that the order did not know may come to use the lock.
class MutexReadiness final : public ipc::HostReadiness {
 public:
  explicit MutexReadiness(const pthread_mutex_t* mutex) : mutex_(mutex) {}
  [[nodiscard]] bool is_there() override { return owner_of(mutex_) == 0; }
  [[nodiscard]] ipc::HostReadiness* get() {
    return is_shared(mutex_) && others_may_come(mutex_) ? this : nullptr;
  }

 private:
  const pthread_mutex_t* mutex_;
};

// The thread waits for one that has no order.
int lock_outside(OrderedThread& own, pthread_mutex_t* mutex) {
  const OutsideAction outside(own);
  return real_lock(mutex);
}

template <typename Signal>
int tell_condition(pthread_cond_t* condition, std::uint32_t most, Signal signal) {
  ThreadOrder& order = thread_order();
  OrderedThread* const own = ordered_thread();
  const ObjectUse use(own, condition);
  if (!order.in_use() || use.name() == nullptr) return signal(condition);
  const std::uint32_t woken = order.wake(use.name(), most, own);
  // Nobody here knows of other processes' waits in the host.
  return woken == 0 || host_condition_waits > 0 || is_shared(condition) ? signal(condition) : 0;
}

// The C library refuses to wait for it, and the attempts that do not wait do not tell.
bool has_written(const OrderedThread& own, const pthread_rwlock_t* lock) {
  return lock->__data.__cur_writer == own.id;
}

// Writers wait at the next byte, so that readers find whether one waits.
const void* writers_of(const pthread_rwlock_t* lock) {
  const auto* const next = reinterpret_cast<const char*>(lock) + 1;
  return is_shared(lock) ? name_of_shared(next) : next;
}

// Such a lock lets no reader in while a writer waits, even one that reads already.
bool prefers_waiting_writer(const pthread_rwlock_t* lock) {
  if (lock->__data.__flags != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) return false;
  ThreadOrder& order = thread_order();
  const void* const writers = writers_of(lock);
  if (writers == nullptr) return false;
  return order.count_blocked(writers) != 0 || order.first_to_take(writers) != nullptr;
}

int try_to_read(pthread_rwlock_t* lock) {
  return prefers_waiting_writer(lock) ? EBUSY : real_try_read_lock(lock);
}

// Takes the lock by try_it() once those before it have left it, and by wait() in the host if one of them has
// ended or has no order.
template <typename Try, typename Wait>
int take_read_write(OrderedThread& own, pthread_rwlock_t* lock, const void* waits_at,
                    std::int64_t deadline_ps, Try try_it, Wait wait) {
  if (has_written(own, lock)) return EDEADLK;
  for (;;) {
    const int error = try_it(lock);
    if (error != EBUSY) return error;
    const std::int32_t writer_id = lock->__data.__cur_writer;
    OrderedThread* const writer = writer_id == 0 ? nullptr : thread_order().find_by_id(writer_id);
    const bool is_kept = writer_id != 0 && writer == nullptr && deadline_ps == without_limit;
    if (waits_at == nullptr || is_kept) {
      const OutsideAction outside(own);
      return wait(lock);
    }
    if (block(own, waits_at, deadline_ps, writer, WaitEnds::by_thread) == Woken::timed_out) return ETIMEDOUT;
  }
}

int take_spin_ordered(OrderedThread& own, pthread_spinlock_t* lock, std::int64_t deadline_ps) {
  return take_ordered(own, name_in_order(lock), deadline_ps, [lock] { return real_try_spin_lock(lock); });
}

}  // namespace

int take_read_ordered(OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps) {
  return take_read_write(own, lock, name_in_order(lock), deadline_ps, try_to_read,
                         [](pthread_rwlock_t* kept) { return real_read_lock(kept); });
}

int take_write_ordered(OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps) {
  const int error = take_read_write(
      own, lock, writers_of(lock), deadline_ps,
      [](pthread_rwlock_t* free) { return real_try_write_lock(free); },
      [](pthread_rwlock_t* kept) { return real_write_lock(kept); });
  const void* const readers = name_in_order(lock);  // they may have waited for this one
  if (error == ETIMEDOUT && readers != nullptr) wake(readers, every_thread, &own);
  return error;
}

bool is_shared(const pthread_mutex_t* mutex) {
  constexpr int shared_bit = 128;
  return (mutex->__data.__kind & shared_bit) != 0;
}

bool is_shared(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 1U) != 0;
}

bool is_shared(const pthread_rwlock_t* lock) {
  return lock->__data.__shared != 0;
}

// It does not tell.
bool is_shared(const volatile pthread_spinlock_t* /*lock*/) {
  return thread_order().has_processes();
}

HostConditionWait::HostConditionWait(const pthread_cond_t* /*condition*/, const pthread_mutex_t* mutex)
    : own_(is_shared(mutex) ? nullptr : ordered_thread()) {
  ++host_condition_waits;
  if (own_ == nullptr) return;
  const OrderedAction action(*own_);
  own_->host_gives = mutex;
  wake(mutex, every_thread, own_);
}

HostConditionWait::~HostConditionWait() {
  if (own_ != nullptr) own_->host_gives = nullptr;
  --host_condition_waits;
}

int lock_ordered(OrderedThread& own, pthread_mutex_t* mutex, std::int64_t deadline_ps) {
  constexpr int kind_bits = 3;
  ThreadOrder& order = thread_order();
  const void* const object = name_in_order(mutex);
  MutexReadiness readiness(mutex);
  for (;;) {
    OrderedThread* const first = owner_of(mutex) == 0 ? order.first_to_take(object) : nullptr;
    if (first != nullptr) {
      const Woken woken = block(own, object, deadline_ps, first, WaitEnds::by_thread, readiness.get());
      if (woken == Woken::timed_out) return ETIMEDOUT;
      continue;
    }
    const int error = real_try_lock(mutex);
    if (error == 0 || error == EOWNERDEAD) {
      order.note_owner(object, own);
      ThreadOrder::note_lock(own, true);
    }
    if (error != EBUSY) return error;
    const std::int32_t owner_id = owner_of(mutex);
    const bool checks = (mutex->__data.__kind & kind_bits) == PTHREAD_MUTEX_ERRORCHECK_NP;
    if (owner_id == own.id && checks) return EDEADLK;
    OrderedThread* const owner = order.find_by_id(owner_id);
    const bool is_given_in_host = owner == nullptr || owner->host_gives == mutex;
    if (object == nullptr || (is_given_in_host && deadline_ps == without_limit))
      return lock_outside(own, mutex);
    const Woken woken = block(own, object, deadline_ps, owner, WaitEnds::by_thread, readiness.get());
    if (woken == Woken::timed_out) return ETIMEDOUT;
    if (woken == Woken::no) return lock_outside(own, mutex);
  }
}

int wait_ordered(OrderedThread& own, pthread_cond_t* condition, pthread_mutex_t* mutex,
                 std::int64_t deadline_ps) {
  pthread_testcancel();
  ThreadOrder& order = thread_order();
  const void* const object = name_in_order(condition);
  int error = real_unlock(mutex);
  if (error != 0) return error;
  ThreadOrder::note_lock(own, false);
  order.wake(name_in_order(mutex), 1, &own);
  const Woken woken = block(own, object, deadline_ps, nullptr, WaitEnds::by_cancel);
  error = lock_ordered(own, mutex, without_limit);
  if (woken == Woken::interrupted) pthread_testcancel();
  return error != 0 ? error : woken == Woken::timed_out ? ETIMEDOUT : 0;
}

namespace {

// A lock in no order. If it is not free, the process's timers run in the host meanwhile: another process may
// give it free, or, if the process has one thread, a handler. Not inlined: in a larger frame of its caller,
// reports of deadlocks would find addresses of earlier calls.
template <typename Lock, typename Try, typename Take>
[[gnu::noinline]] int take_in_host(Lock* lock, Try& try_it, Take& take) {
  ipc::Client* const client = is_shared(lock) || ipc::is_single_threaded() ? pacing_client() : nullptr;
  if (client == nullptr) return take(lock);
  const int error = try_it(lock);
  if (error != EBUSY) return error;
  const HostPace pace(client);
  return take(lock);
}

}  // namespace

APENET_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, mutex);
  if (!use.is_of_order()) return take_in_host(mutex, real_try_lock, real_lock);
  return lock_ordered(*own, mutex, without_limit);
}

APENET_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, mutex);
  if (!use.is_of_order()) return real_try_lock(mutex);
  const int error = real_try_lock(mutex);
  if (error == 0 || error == EOWNERDEAD) {
    thread_order().note_owner(use.name(), *own);
    ThreadOrder::note_lock(*own, true);
  }
  return error;
}

APENET_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, mutex);  // it may be gone once it is unlocked
  if (!use.is_of_order()) {
    const bool tells = thread_order().in_use() && use.name() != nullptr;
    const int error = real_unlock(mutex);
    if (tells) wake(use.name(), 1, nullptr);
    return error;
  }
  const int error = real_unlock(mutex);
  const bool is_free = owner_of(mutex) != own->id;  // unlike a recursive one
  if (error == 0) ThreadOrder::note_lock(*own, false);
  if (error == 0 && is_free) wake(use.name(), 1, own);
  return error;
}

APENET_EXPORT int mtx_lock(mtx_t* mutex) {
  return as_thread_result(pthread_mutex_lock(reinterpret_cast<pthread_mutex_t*>(mutex)));
}

APENET_EXPORT int mtx_trylock(mtx_t* mutex) {
  return as_thread_result(pthread_mutex_trylock(reinterpret_cast<pthread_mutex_t*>(mutex)));
}

APENET_EXPORT int mtx_unlock(mtx_t* mutex) {
  return as_thread_result(pthread_mutex_unlock(reinterpret_cast<pthread_mutex_t*>(mutex)));
}

APENET_EXPORT int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  auto* const own = ordered_thread();
  begin_wait_beside(own);
  int error = waits_in_host;
  {
    const ObjectUse use(own, condition);
    if (use.is_of_order() && name_in_order(mutex) != nullptr)
      error = wait_ordered(*own, condition, mutex, without_limit);
  }
  if (error != waits_in_host) {
    end_wait_beside();
    return error;
  }
  const HostConditionWait wait(condition, mutex);
  const HostPace pace(pacing_client(), HostPace::Ender::thread);
  const OutsideOrder outside(own);
  return real_wait(condition, mutex);
}

APENET_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  return tell_condition(condition, 1, [](pthread_cond_t* c) { return real_signal(c); });
}

APENET_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  return tell_condition(condition, every_thread, [](pthread_cond_t* c) { return real_broadcast(c); });
}

APENET_EXPORT int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return as_thread_result(pthread_cond_wait(reinterpret_cast<pthread_cond_t*>(condition),
                                            reinterpret_cast<pthread_mutex_t*>(mutex)));
}

APENET_EXPORT int cnd_signal(cnd_t* condition) {
  return as_thread_result(pthread_cond_signal(reinterpret_cast<pthread_cond_t*>(condition)));
}

APENET_EXPORT int cnd_broadcast(cnd_t* condition) {
  return as_thread_result(pthread_cond_broadcast(reinterpret_cast<pthread_cond_t*>(condition)));
}

#define APENET_TAKE(function, type, real_try, real, take)              \
  APENET_EXPORT int function(std::add_pointer_t<type> lock) noexcept { \
    auto* const own = ordered_caller(__builtin_return_address(0));     \
    const ObjectUse use(own, lock);                                    \
    if (!use.is_of_order()) return take_in_host(lock, real_try, real); \
    return take(*own, lock, without_limit);                            \
  }
#define APENET_TRY(function, type, real_try)                           \
  APENET_EXPORT int function(std::add_pointer_t<type> lock) noexcept { \
    auto* const own = ordered_caller(__builtin_return_address(0));     \
    const ObjectUse use(own, lock);                                    \
    return real_try(lock);                                             \
  }

APENET_TAKE(pthread_rwlock_rdlock, pthread_rwlock_t, real_try_read_lock, real_read_lock, take_read_ordered)
APENET_TAKE(pthread_rwlock_wrlock, pthread_rwlock_t, real_try_write_lock, real_write_lock, take_write_ordered)
APENET_TRY(pthread_rwlock_trywrlock, pthread_rwlock_t, real_try_write_lock)
APENET_TAKE(pthread_spin_lock, pthread_spinlock_t, real_try_spin_lock, real_spin_lock, take_spin_ordered)
APENET_TRY(pthread_spin_trylock, pthread_spinlock_t, real_try_spin_lock)

APENET_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, lock);
  return use.is_of_order() ? try_to_read(lock) : real_try_read_lock(lock);
}

APENET_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, lock);
  const bool tells = thread_order().in_use() && use.name() != nullptr;
  const void* const writers = tells ? writers_of(lock) : nullptr;  // it may be gone once it is unlocked
  const int error = real_rw_unlock(lock);
  if (tells) wake(use.name(), every_thread, own);
  if (writers != nullptr) wake(writers, every_thread, own);
  return error;
}

APENET_EXPORT int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  const ObjectUse use(own, lock);
  const int error = real_spin_unlock(lock);
  if (thread_order().in_use() && use.name() != nullptr) wake(use.name(), every_thread, own);
  return error;
}

}  // namespace apenet::shim
