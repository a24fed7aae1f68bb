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
#include "runtime/shim/real.hpp"

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

// Calls wait(), in which the thread waits for one that has no order.
template <typename Wait>
int wait_outside(OrderedThread& own, Wait wait) {
  thread_order().leave(own, false);
  thread_order().go_outside(own);
  const int result = wait();
  thread_order().enter(own);
  return result;
}

template <typename Signal>
int tell_condition(pthread_cond_t* condition, std::uint32_t most, Signal signal) {
  ThreadOrder& order = thread_order();
  if (!order.in_use() || is_shared(condition)) return signal(condition);
  OrderedThread* const own = ordered_thread();
  const auto tell = [&] {
    const std::uint32_t woken = order.wake(condition, most, own);
    return woken == 0 || host_condition_waits > 0 ? signal(condition) : 0;
  };
  if (own == nullptr) return tell();
  const OrderedAction action(*own);
  return tell();
}

// The C library refuses to wait for it, and the attempts that do not wait do not tell.
bool has_written(const OrderedThread& own, const pthread_rwlock_t* lock) {
  return lock->__data.__cur_writer == own.id;
}

int take_spin_ordered(OrderedThread& own, pthread_spinlock_t* lock, std::int64_t deadline_ps) {
  const OrderedAction action(own);
  return take_ordered(own, lock, deadline_ps, [lock] { return real_try_spin_lock(lock); });
}

}  // namespace

int take_read_ordered(OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps) {
  const OrderedAction action(own);
  if (has_written(own, lock)) return EDEADLK;
  return take_ordered(own, lock, deadline_ps, [lock] { return real_try_read_lock(lock); });
}

int take_write_ordered(OrderedThread& own, pthread_rwlock_t* lock, std::int64_t deadline_ps) {
  const OrderedAction action(own);
  if (has_written(own, lock)) return EDEADLK;
  return take_ordered(own, lock, deadline_ps, [lock] { return real_try_write_lock(lock); });
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
  for (;;) {
    OrderedThread* const first = owner_of(mutex) == 0 ? order.first_to_take(mutex) : nullptr;
    if (first != nullptr) {
      if (block(own, mutex, deadline_ps, first, WaitEnds::by_thread) == Woken::timed_out) return ETIMEDOUT;
      continue;
    }
    const int error = real_try_lock(mutex);
    if (error == 0 || error == EOWNERDEAD) order.note_owner(mutex, own);
    if (error != EBUSY) return error;
    const std::int32_t owner_id = owner_of(mutex);
    const bool checks = (mutex->__data.__kind & kind_bits) == PTHREAD_MUTEX_ERRORCHECK_NP;
    if (owner_id == own.id && checks) return EDEADLK;
    OrderedThread* const owner = order.find_by_id(owner_id);
    const bool is_given_in_host = owner == nullptr || owner->host_gives == mutex;
    if (is_given_in_host && deadline_ps == without_limit)
      return wait_outside(own, [mutex] { return real_lock(mutex); });
    if (block(own, mutex, deadline_ps, owner, WaitEnds::by_thread) == Woken::timed_out) return ETIMEDOUT;
  }
}

int wait_ordered(OrderedThread& own, pthread_cond_t* condition, pthread_mutex_t* mutex,
                 std::int64_t deadline_ps) {
  pthread_testcancel();
  ThreadOrder& order = thread_order();
  Woken woken = Woken::no;
  int error = 0;
  {
    const OrderedAction action(own);
    error = real_unlock(mutex);
    if (error != 0) return error;
    order.wake(mutex, 1, &own);
    woken = block(own, condition, deadline_ps, nullptr, WaitEnds::by_cancel);
    error = lock_ordered(own, mutex, without_limit);
  }
  if (woken == Woken::interrupted) pthread_testcancel();
  return error != 0 ? error : woken == Woken::timed_out ? ETIMEDOUT : 0;
}

APENET_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  if (own == nullptr || is_shared(mutex)) return real_lock(mutex);
  const OrderedAction action(*own);
  return lock_ordered(*own, mutex, without_limit);
}

APENET_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  if (own == nullptr || is_shared(mutex)) return real_try_lock(mutex);
  const OrderedAction action(*own);
  const int error = real_try_lock(mutex);
  if (error == 0) thread_order().note_owner(mutex, *own);
  return error;
}

APENET_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_caller(__builtin_return_address(0));
  if (own == nullptr || is_shared(mutex)) {
    const bool tells = thread_order().in_use() && !is_shared(mutex);  // it may be gone once it is unlocked
    const int error = real_unlock(mutex);
    if (tells) wake(mutex, 1, nullptr);
    return error;
  }
  const OrderedAction action(*own);
  const int error = real_unlock(mutex);
  const bool is_free = owner_of(mutex) != own->id;  // unlike a recursive one
  if (error == 0 && is_free) wake(mutex, 1, own);
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
  if (own == nullptr || is_shared(condition) || is_shared(mutex)) {
    const HostConditionWait wait(condition, mutex);
    const OutsideOrder outside(own);
    return real_wait(condition, mutex);
  }
  return wait_ordered(*own, condition, mutex, without_limit);
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

#define APENET_TAKE(name, type, real, take)                        \
  APENET_EXPORT int name(std::add_pointer_t<type> lock) noexcept { \
    auto* const own = ordered_caller(__builtin_return_address(0)); \
    if (own == nullptr || is_shared_lock(lock)) return real(lock); \
    return take(*own, lock, without_limit);                        \
  }
#define APENET_TRY(name, type, real_try)                               \
  APENET_EXPORT int name(std::add_pointer_t<type> lock) noexcept {     \
    auto* const own = ordered_caller(__builtin_return_address(0));     \
    if (own == nullptr || is_shared_lock(lock)) return real_try(lock); \
    const OrderedAction action(*own);                                  \
    return real_try(lock);                                             \
  }
#define APENET_GIVE(name, type, real)                                        \
  APENET_EXPORT int name(std::add_pointer_t<type> lock) noexcept {           \
    if (!thread_order().in_use() || is_shared_lock(lock)) return real(lock); \
    auto* const own = ordered_caller(__builtin_return_address(0));           \
    const auto give = [&] {                                                  \
      const int error = real(lock);                                          \
      wake(lock, every_thread, own);                                         \
      return error;                                                          \
    };                                                                       \
    if (own == nullptr) return give();                                       \
    const OrderedAction action(*own);                                        \
    return give();                                                           \
  }

namespace {
bool is_shared_lock(const pthread_rwlock_t* lock) {
  return is_shared(lock);
}
// It does not tell. Nobody who has it in common with another process uses it otherwise.
bool is_shared_lock(const volatile int*) {
  return false;
}
}  // namespace

APENET_TAKE(pthread_rwlock_rdlock, pthread_rwlock_t, real_read_lock, take_read_ordered)
APENET_TAKE(pthread_rwlock_wrlock, pthread_rwlock_t, real_write_lock, take_write_ordered)
APENET_TRY(pthread_rwlock_tryrdlock, pthread_rwlock_t, real_try_read_lock)
APENET_TRY(pthread_rwlock_trywrlock, pthread_rwlock_t, real_try_write_lock)
APENET_GIVE(pthread_rwlock_unlock, pthread_rwlock_t, real_rw_unlock)
APENET_TAKE(pthread_spin_lock, pthread_spinlock_t, real_spin_lock, take_spin_ordered)
APENET_TRY(pthread_spin_trylock, pthread_spinlock_t, real_try_spin_lock)
APENET_GIVE(pthread_spin_unlock, pthread_spinlock_t, real_spin_unlock)

}  // namespace apenet::shim
