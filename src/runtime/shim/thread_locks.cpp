// Locks, conditions and other meetings of threads: their operations happen in the order of the threads
// (docs/internals/threads.md).
//
// What a lock holds stays in the C library's object: only its operations that do not wait are called, each as
// an action. A thread that would wait is blocked in the order, and tries again when it has been woken.
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>
#include <threads.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

using ipc::OrderedThread;
using ipc::ThreadOrder;
using ipc::WaitEnds;
using ipc::Woken;

constexpr std::int64_t without_limit = OrderedThread::no_deadline_ps;
constexpr std::uint32_t every_thread = UINT32_MAX;

// A function of the C library, looked up at its first call without a lock: these are called everywhere.
template <typename Function>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name, const char* version = nullptr)
      : name_(name), version_(version) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(version_ == nullptr ? next_symbol(name_)
                                                                : next_symbol_of(name_, version_));
      function_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<Function> function_{nullptr};
};

// Older conditions of the same names have another layout.
constexpr const char* condition_version = "GLIBC_2.3.2";

constinit RealFunction<int (*)(pthread_mutex_t*)> real_lock("pthread_mutex_lock");
constinit RealFunction<int (*)(pthread_mutex_t*)> real_try_lock("pthread_mutex_trylock");
constinit RealFunction<int (*)(pthread_mutex_t*)> real_unlock("pthread_mutex_unlock");
constinit RealFunction<int (*)(pthread_cond_t*, pthread_mutex_t*)> real_wait("pthread_cond_wait",
                                                                             condition_version);
constinit RealFunction<int (*)(pthread_cond_t*)> real_signal("pthread_cond_signal", condition_version);
constinit RealFunction<int (*)(pthread_cond_t*)> real_broadcast("pthread_cond_broadcast", condition_version);
constinit RealFunction<int (*)(sem_t*)> real_sem_wait("sem_wait");
constinit RealFunction<int (*)(sem_t*)> real_sem_try("sem_trywait");
constinit RealFunction<int (*)(sem_t*)> real_sem_post("sem_post");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_read_lock("pthread_rwlock_rdlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_write_lock("pthread_rwlock_wrlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_try_read_lock("pthread_rwlock_tryrdlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_try_write_lock("pthread_rwlock_trywrlock");
constinit RealFunction<int (*)(pthread_rwlock_t*)> real_rw_unlock("pthread_rwlock_unlock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_spin_lock("pthread_spin_lock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_try_spin_lock("pthread_spin_trylock");
constinit RealFunction<int (*)(pthread_spinlock_t*)> real_spin_unlock("pthread_spin_unlock");
constinit RealFunction<int (*)(pthread_barrier_t*)> real_barrier_wait("pthread_barrier_wait");
constinit RealFunction<int (*)(pthread_t, void**)> real_join("pthread_join");
constinit RealFunction<int (*)(pthread_t, void**)> real_try_join("pthread_tryjoin_np");
constinit RealFunction<int (*)(pollfd*, nfds_t, int)> real_poll("poll");
constinit RealFunction<int (*)(pthread_once_t*, void (*)())> real_once("pthread_once");

// Threads that wait at a condition in the host.
constinit std::atomic<int> host_condition_waits{0};

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

std::int32_t owner_of(const pthread_mutex_t* mutex) {
  return mutex->__data.__owner;
}

// Within an action. When the deadline ends the wait, the process has come there, too.
Woken block(OrderedThread& own, const volatile void* object, std::int64_t deadline_ps, OrderedThread* owner,
            WaitEnds ends) {
  const Woken woken = thread_order().block(own, const_cast<const void*>(object), deadline_ps, owner, ends);
  ipc::Client* const client = woken == Woken::timed_out ? ipc::Client::attached() : nullptr;
  if (client != nullptr) client->pass_time(own.key.clock_ps);
  return woken;
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

// try_it() returns EBUSY if the thread has to wait for whoever wakes the object.
template <typename Object, typename Try>
int take_ordered(OrderedThread& own, Object* object, std::int64_t deadline_ps, Try try_it) {
  for (;;) {
    const int error = try_it();
    if (error != EBUSY) return error;
    if (block(own, object, deadline_ps, nullptr, WaitEnds::by_thread) == Woken::timed_out) return ETIMEDOUT;
  }
}

// The call of pthread_once that initialises: other threads are blocked until it has ended, also by an
// exception.
class Initialisation {
 public:
  Initialisation(OrderedThread& own, const pthread_once_t* once) : own_(own), once_(once) {
    const OrderedAction action(own_);
    const auto is_ours = [this](const std::atomic<const pthread_once_t*>& entry) { return entry == once_; };
    while (std::any_of(in_progress.begin(), in_progress.end(), is_ours))
      thread_order().block(own_, once_, without_limit, nullptr, WaitEnds::by_thread);
    entry_ = std::find(in_progress.begin(), in_progress.end(), nullptr);
    if (entry_ != in_progress.end()) *entry_ = once_;
  }
  ~Initialisation() {
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
  InProgress::iterator entry_;
};

constinit Initialisation::InProgress Initialisation::in_progress{};

// Wakes those that are blocked at the object. `own` may be nullptr.
void wake(const volatile void* object, std::uint32_t most, const OrderedThread* own) {
  thread_order().wake(const_cast<const void*>(object), most, own);
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

int wait_ordered(OrderedThread& own, sem_t* semaphore, std::int64_t deadline_ps, bool ends_by_signal) {
  for (;;) {
    pthread_testcancel();
    const OrderedAction action(own);
    if (real_sem_try(semaphore) == 0) return 0;
    const Woken woken = block(own, semaphore, deadline_ps, nullptr,
                              ends_by_signal ? WaitEnds::by_signal : WaitEnds::by_cancel);
    if (woken == Woken::timed_out) return ETIMEDOUT;
    if (woken == Woken::interrupted && ends_by_signal) return EINTR;
  }
}

int join_ordered(OrderedThread& own, pthread_t thread, void** result, std::int64_t deadline_ps) {
  for (;;) {
    pthread_testcancel();
    const OrderedAction action(own);
    OrderedThread* const other = thread_order().find(thread);
    if (other == nullptr || other == &own) break;
    if (block(own, other, deadline_ps, nullptr, WaitEnds::by_cancel) == Woken::timed_out) return ETIMEDOUT;
  }
  return real_join(thread, result);
}

bool is_shared(const pthread_rwlock_t* lock) {
  return lock->__data.__shared != 0;
}

constinit thread_local bool is_unordered = false;

ThreadOrder& thread_order() {
  static constinit ThreadOrder order;
  return order;
}

OrderedThread* ordered_thread() {
  ThreadOrder& order = thread_order();
  return !order.in_use() || host_calls > 0 ? nullptr : order.find(pthread_self());
}

OrderedThread* enter_order() {
  if (is_unordered) return nullptr;
  ThreadOrder& order = thread_order();
  OrderedThread* const own = order.find(pthread_self());
  if (own != nullptr) return own;
  // Nothing is ordered in the child of a fork.
  if (!order.in_use()) pthread_atfork(nullptr, nullptr, [] { thread_order().reset(); });
  const ipc::Client* client = ipc::Client::attached();
  return order.adopt(client == nullptr ? 0 : client->order_time_ps());
}

bool is_drained(int file) {
  const int error = errno;
  struct stat status {};
  const bool is_known = fstat(file, &status) == 0;
  const bool is_output = file == STDOUT_FILENO || file == STDERR_FILENO;
  const bool is = is_known && (S_ISREG(status.st_mode) || (is_output && !is_own_file(file)));
  errno = error;
  return is;
}

FileChange::FileChange(int file, std::size_t bytes) : own_(ordered_thread()) {
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().enter(*own_);
  pollfd room{.fd = file, .events = POLLOUT, .revents = 0};
  const auto has_room = [&] {
    return bytes <= PIPE_BUF && real_poll(&room, 1, 0) == 1 && room.revents == POLLOUT;
  };
  is_action_ = is_drained(file) || has_room();
  if (!is_action_) thread_order().leave(*own_, !is_in_call());
  errno = error;
}

FileChange::~FileChange() {
  if (own_ == nullptr) return;
  const int error = errno;
  const void* const object = ipc::Client::own_files_of(thread_order());
  if (is_action_ || thread_order().count_blocked(object) > 0) {
    if (!is_action_) thread_order().enter(*own_);
    thread_order().wake(object, every_thread, own_);
    thread_order().leave(*own_, !is_in_call());
  }
  errno = error;
}

OrderedAction::~OrderedAction() {
  thread_order().leave(own_, !is_in_call());
}

std::int64_t order_deadline_ps(std::int64_t virtual_ps) {
  return ipc::Client::attached()->as_order_time_ps(virtual_ps);
}

bool is_shared(const pthread_mutex_t* mutex) {
  constexpr int shared_bit = 128;
  return (mutex->__data.__kind & shared_bit) != 0;
}

bool is_shared(const pthread_cond_t* condition) {
  return (condition->__data.__wrefs & 1U) != 0;
}

HostConditionWait::HostConditionWait() {
  ++host_condition_waits;
}

HostConditionWait::~HostConditionWait() {
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
    if (owner == nullptr && deadline_ps == without_limit)
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

}  // namespace apenet::shim

using apenet::shim::as_thread_result;
using apenet::shim::every_thread;
using apenet::shim::is_shared;
using apenet::shim::lock_ordered;
using apenet::shim::ordered_thread;
using apenet::shim::OrderedAction;
using apenet::shim::thread_order;
using apenet::shim::wake;
using apenet::shim::without_limit;

APENET_EXPORT apenet::ipc::ThreadOrder* apenet_thread_order() {
  return &thread_order();
}

APENET_EXPORT int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr || is_shared(mutex)) return apenet::shim::real_lock(mutex);
  const OrderedAction action(*own);
  return lock_ordered(*own, mutex, without_limit);
}

APENET_EXPORT int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr || is_shared(mutex)) return apenet::shim::real_try_lock(mutex);
  const OrderedAction action(*own);
  const int error = apenet::shim::real_try_lock(mutex);
  if (error == 0) thread_order().note_owner(mutex, *own);
  return error;
}

APENET_EXPORT int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr || is_shared(mutex)) {
    const bool tells = thread_order().in_use() && !is_shared(mutex);  // it may be gone once it is unlocked
    const int error = apenet::shim::real_unlock(mutex);
    if (tells) wake(mutex, 1, nullptr);
    return error;
  }
  const OrderedAction action(*own);
  const int error = apenet::shim::real_unlock(mutex);
  const bool is_free = apenet::shim::owner_of(mutex) != own->id;  // unlike a recursive one
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
    const apenet::shim::HostConditionWait wait;
    const apenet::shim::OutsideOrder outside(own);
    return apenet::shim::real_wait(condition, mutex);
  }
  return apenet::shim::wait_ordered(*own, condition, mutex, without_limit);
}

APENET_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  return apenet::shim::tell_condition(condition, 1,
                                      [](pthread_cond_t* c) { return apenet::shim::real_signal(c); });
}

APENET_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  return apenet::shim::tell_condition(condition, every_thread,
                                      [](pthread_cond_t* c) { return apenet::shim::real_broadcast(c); });
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

// The handler of a signal may post it.
APENET_EXPORT int sem_wait(sem_t* semaphore) {
  auto* const own = ordered_thread();
  if (own == nullptr || is_shared(semaphore)) {
    const apenet::shim::HostPace pace(apenet::shim::pacing_client(), apenet::shim::HostPace::Ender::thread);
    const apenet::shim::OutsideOrder outside(own);
    return apenet::shim::real_sem_wait(semaphore);
  }
  return apenet::shim::wait_ordered(*own, semaphore, without_limit, false);
}

APENET_EXPORT int sem_post(sem_t* semaphore) noexcept {
  if (!thread_order().in_use() || is_shared(semaphore)) return apenet::shim::real_sem_post(semaphore);
  auto* const own = ordered_thread();
  const auto post = [&] {
    const int result = apenet::shim::real_sem_post(semaphore);
    wake(semaphore, 1, own);
    return result;
  };
  if (own == nullptr) return post();
  const OrderedAction action(*own);
  return post();
}

#define APENET_TAKE(name, type, real, take)                                                    \
  APENET_EXPORT int name(type* lock) noexcept {                                                \
    auto* const own = ordered_thread();                                                        \
    if (own == nullptr || apenet::shim::is_shared_lock(lock)) return apenet::shim::real(lock); \
    return apenet::shim::take(*own, lock, without_limit);                                      \
  }
#define APENET_TRY(name, type, real_try)                                                           \
  APENET_EXPORT int name(type* lock) noexcept {                                                    \
    auto* const own = ordered_thread();                                                            \
    if (own == nullptr || apenet::shim::is_shared_lock(lock)) return apenet::shim::real_try(lock); \
    const OrderedAction action(*own);                                                              \
    return apenet::shim::real_try(lock);                                                           \
  }
#define APENET_GIVE(name, type, real)                                                                    \
  APENET_EXPORT int name(type* lock) noexcept {                                                          \
    if (!thread_order().in_use() || apenet::shim::is_shared_lock(lock)) return apenet::shim::real(lock); \
    auto* const own = ordered_thread();                                                                  \
    const auto give = [&] {                                                                              \
      const int error = apenet::shim::real(lock);                                                        \
      wake(lock, every_thread, own);                                                                     \
      return error;                                                                                      \
    };                                                                                                   \
    if (own == nullptr) return give();                                                                   \
    const OrderedAction action(*own);                                                                    \
    return give();                                                                                       \
  }

namespace apenet::shim {
namespace {
bool is_shared_lock(const pthread_rwlock_t* lock) {
  return is_shared(lock);
}
// It does not tell. Nobody who has it in common with another process uses it otherwise.
bool is_shared_lock(const volatile int*) {
  return false;
}
}  // namespace
}  // namespace apenet::shim

APENET_TAKE(pthread_rwlock_rdlock, pthread_rwlock_t, real_read_lock, take_read_ordered)
APENET_TAKE(pthread_rwlock_wrlock, pthread_rwlock_t, real_write_lock, take_write_ordered)
APENET_TRY(pthread_rwlock_tryrdlock, pthread_rwlock_t, real_try_read_lock)
APENET_TRY(pthread_rwlock_trywrlock, pthread_rwlock_t, real_try_write_lock)
APENET_GIVE(pthread_rwlock_unlock, pthread_rwlock_t, real_rw_unlock)
APENET_TAKE(pthread_spin_lock, pthread_spinlock_t, real_spin_lock, take_spin_ordered)
APENET_TRY(pthread_spin_trylock, pthread_spinlock_t, real_try_spin_lock)
APENET_GIVE(pthread_spin_unlock, pthread_spinlock_t, real_spin_unlock)

APENET_EXPORT int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  auto* const own = ordered_thread();
  const apenet::shim::BarrierLayout& layout = apenet::shim::layout_of(barrier);
  if (own == nullptr || layout.shared != 0) return apenet::shim::real_barrier_wait(barrier);
  const OrderedAction action(*own);
  if (thread_order().count_blocked(barrier) + 1 < layout.count) {
    thread_order().block(*own, barrier, without_limit, nullptr, apenet::ipc::WaitEnds::by_thread);
    return 0;
  }
  wake(barrier, every_thread, own);
  return PTHREAD_BARRIER_SERIAL_THREAD;
}

APENET_EXPORT int pthread_join(pthread_t thread, void** result) {
  auto* const own = ordered_thread();
  return own == nullptr ? apenet::shim::real_join(thread, result)
                        : apenet::shim::join_ordered(*own, thread, result, without_limit);
}

APENET_EXPORT int pthread_tryjoin_np(pthread_t thread, void** result) noexcept {
  auto* const own = ordered_thread();
  if (own == nullptr) return apenet::shim::real_try_join(thread, result);
  const OrderedAction action(*own);
  if (thread_order().find(thread) != nullptr) return EBUSY;
  return apenet::shim::real_join(thread, result);
}

APENET_EXPORT int thrd_join(thrd_t thread, int* result) {
  void* value = nullptr;
  if (pthread_join(thread, &value) != 0) return thrd_error;
  if (result != nullptr) *result = static_cast<int>(reinterpret_cast<std::intptr_t>(value));
  return thrd_success;
}

APENET_EXPORT int pthread_once(pthread_once_t* once, void (*initialise)()) {
  auto* const own = ordered_thread();
  if (own == nullptr || __atomic_load_n(once, __ATOMIC_ACQUIRE) == apenet::shim::once_is_done)
    return apenet::shim::real_once(once, initialise);
  const apenet::shim::Initialisation initialisation(*own, once);
  return apenet::shim::real_once(once, initialise);
}
