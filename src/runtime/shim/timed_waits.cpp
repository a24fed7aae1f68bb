// Waits for another thread with a deadline in virtual time.
//
// An ordered thread waits in the order of the threads. Otherwise the wait takes as long in the host as it
// would in virtual time, and if it times out, the thread's clock advances to the deadline.
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/sem.h>
#include <threads.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_objects.hpp"

namespace apenet::shim {
namespace {

// The clocks that the C library's waits accept. It reports the error for others.
bool is_clock_of_waits(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

using Ender = LimitedWait::Ender;

// Who may end a wait at an object in memory that the process may share with another one.
Ender ender_of(bool is_shared) {
  return is_shared ? Ender::outside : Ender::own_thread;
}

// A wait in the host that need not be known to others.
struct NoHostWait {
  template <typename... Arguments>
  explicit NoHostWait(const Arguments&... /*arguments*/) {}
};

bool would_block(int result) {
  return result < 0 && errno == EAGAIN;
}

}  // namespace

// Defines a wait that returns its error, in two forms: with a clock argument, and the older one, which uses
// the realtime clock. ordered(own, deadline): the wait of an ordered thread; nullopt: the object is not of
// the order. is_outside: others than this process may end it. Host: what lives around one in the host.
#define APENET_TIMED_WAIT(clock_name, timed_name, parameters, arguments, is_outside, ordered, Host)      \
  APENET_EXPORT int clock_name(APENET_UNPACK parameters, clockid_t clock, const timespec* deadline) {    \
    APENET_TIME_CALL;                                                                                    \
    static const auto real =                                                                             \
        next<int (*)(APENET_UNPACK parameters, clockid_t, const timespec*)>(#clock_name);                \
    ipc::Client* client = clock_client();                                                                \
    ipc::OrderedThread* const own = ordered_thread();                                                    \
    if (client == nullptr || !is_valid(deadline) || !is_clock_of_waits(clock)) {                         \
      [[maybe_unused]] const Host host(APENET_UNPACK arguments);                                         \
      const OutsideOrder outside(own);                                                                   \
      return real(APENET_UNPACK arguments, clock, EarlyDeadline(deadline).get());                        \
    }                                                                                                    \
    if (own != nullptr) {                                                                                \
      OrderedWait limited(client);                                                                       \
      const std::optional<int> error = ordered(*own, order_deadline_ps(deadline_ps(*deadline)));         \
      if (error == ETIMEDOUT) limited.expire();                                                          \
      if (error == 0) limited.end();                                                                     \
      if (error) return *error;                                                                          \
    }                                                                                                    \
    [[maybe_unused]] const Host host(APENET_UNPACK arguments);                                           \
    const auto wait = [&](const timespec* until) {                                                       \
      return real(APENET_UNPACK arguments, CLOCK_MONOTONIC, until);                                      \
    };                                                                                                   \
    return wait_until(*client, *deadline, CLOCK_MONOTONIC, ETIMEDOUT, wait, ender_of(is_outside));       \
  }                                                                                                      \
  APENET_EXPORT int timed_name(APENET_UNPACK parameters, const timespec* deadline) {                     \
    APENET_TIME_CALL;                                                                                    \
    static const auto real = next<int (*)(APENET_UNPACK parameters, const timespec*)>(#timed_name);      \
    if (clock_client() != nullptr) return clock_name(APENET_UNPACK arguments, CLOCK_REALTIME, deadline); \
    [[maybe_unused]] const Host host(APENET_UNPACK arguments);                                           \
    const OutsideOrder outside(ordered_thread());                                                        \
    return real(APENET_UNPACK arguments, EarlyDeadline(deadline).get());                                 \
  }
#define APENET_UNPACK(...) __VA_ARGS__

APENET_TIMED_WAIT(
    pthread_cond_clockwait, pthread_cond_timedwait, (pthread_cond_t * condition, pthread_mutex_t* mutex),
    (condition, mutex), is_shared(condition) || is_shared(mutex),
    [&](ipc::OrderedThread& waiter, std::int64_t until_ps) -> std::optional<int> {
      const ObjectUse use(&waiter, condition);
      if (!use.is_of_order() || name_in_order(mutex) == nullptr) return {};
      return wait_ordered(waiter, condition, mutex, until_ps);
    },
    HostConditionWait)
APENET_TIMED_WAIT(
    pthread_mutex_clocklock, pthread_mutex_timedlock, (pthread_mutex_t * mutex), (mutex), is_shared(mutex),
    [&](ipc::OrderedThread& waiter, std::int64_t until_ps) -> std::optional<int> {
      const ObjectUse use(&waiter, mutex);
      if (!use.is_of_order()) return {};
      return lock_ordered(waiter, mutex, until_ps);
    },
    NoHostWait)
APENET_TIMED_WAIT(
    pthread_rwlock_clockrdlock, pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock), (lock),
    is_shared(lock),
    [&](ipc::OrderedThread& waiter, std::int64_t until_ps) -> std::optional<int> {
      const ObjectUse use(&waiter, lock);
      if (!use.is_of_order()) return {};
      return take_read_ordered(waiter, lock, until_ps);
    },
    NoHostWait)
APENET_TIMED_WAIT(
    pthread_rwlock_clockwrlock, pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock), (lock),
    is_shared(lock),
    [&](ipc::OrderedThread& waiter, std::int64_t until_ps) -> std::optional<int> {
      const ObjectUse use(&waiter, lock);
      if (!use.is_of_order()) return {};
      return take_write_ordered(waiter, lock, until_ps);
    },
    NoHostWait)
APENET_TIMED_WAIT(
    pthread_clockjoin_np, pthread_timedjoin_np, (pthread_t thread, void** result), (thread, result), false,
    [&](ipc::OrderedThread& waiter, std::int64_t until_ps) -> std::optional<int> {
      return join_ordered(waiter, thread, result, until_ps);
    },
    NoHostWait)

APENET_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  return as_thread_result(pthread_cond_timedwait(reinterpret_cast<pthread_cond_t*>(condition),
                                                 reinterpret_cast<pthread_mutex_t*>(mutex), deadline));
}

APENET_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* deadline) {
  return as_thread_result(pthread_mutex_timedlock(reinterpret_cast<pthread_mutex_t*>(mutex), deadline));
}

APENET_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real = next<int (*)(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  ipc::OrderedThread* const own = ordered_thread();
  if (client == nullptr || !is_valid(deadline) || !is_clock_of_waits(clock)) {
    const OutsideOrder outside(own);
    return real(semaphore, clock, EarlyDeadline(deadline).get());
  }
  const auto wait = [&](const timespec* until) {
    return real(semaphore, CLOCK_MONOTONIC, until) == 0 ? 0 : errno;
  };
  const auto wait_in_order = [&]() -> std::optional<int> {
    const ObjectUse use(own, semaphore);
    if (!use.is_of_order()) return {};
    OrderedWait limited(client);
    const int error = wait_ordered(*own, semaphore, order_deadline_ps(deadline_ps(*deadline)));
    if (error == ETIMEDOUT) limited.expire();
    if (error == 0) limited.end();
    return error;
  };
  std::optional<int> error = wait_in_order();
  if (!error) {
    error = wait_until(*client, *deadline, CLOCK_MONOTONIC, ETIMEDOUT, wait, ender_of(is_shared(semaphore)),
                       std::optional(EINTR));
  }
  if (*error == 0) return 0;
  errno = *error;
  return -1;
}

APENET_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  APENET_TIME_CALL;
  if (clock_client() != nullptr) return sem_clockwait(semaphore, CLOCK_REALTIME, deadline);
  const OutsideOrder outside(ordered_thread());
  return next<int (*)(sem_t*, const timespec*)>("sem_timedwait")(semaphore, EarlyDeadline(deadline).get());
}

APENET_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* __restrict message, size_t size,
                                      unsigned* __restrict priority, const timespec* __restrict deadline) {
  static const auto real =
      next<ssize_t (*)(mqd_t, char*, size_t, unsigned*, const timespec*)>("mq_timedreceive");
  ipc::Client* client = clock_client();
  if (client == nullptr || is_null(deadline))
    return real(queue, message, size, priority, EarlyDeadline(deadline).get());
  const auto wait = [&](const timespec* until) {
    const ssize_t result = real(queue, message, size, priority, until);
    return result < 0 ? -errno : result;
  };
  const ssize_t received =
      wait_until(*client, *deadline, CLOCK_REALTIME, ssize_t{-ETIMEDOUT}, wait, Ender::outside);
  if (received >= 0) return received;
  errno = static_cast<int>(-received);
  return -1;
}

APENET_EXPORT int mq_timedsend(mqd_t queue, const char* message, size_t size, unsigned priority,
                               const timespec* deadline) {
  static const auto real =
      next<int (*)(mqd_t, const char*, size_t, unsigned, const timespec*)>("mq_timedsend");
  ipc::Client* client = clock_client();
  if (client == nullptr || is_null(deadline))
    return real(queue, message, size, priority, EarlyDeadline(deadline).get());
  const auto wait = [&](const timespec* until) {
    return real(queue, message, size, priority, until) == 0 ? 0 : errno;
  };
  const int error = wait_until(*client, *deadline, CLOCK_REALTIME, ETIMEDOUT, wait, Ender::outside);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

APENET_EXPORT int semtimedop(int set, sembuf* operations, size_t count, const timespec* timeout) noexcept {
  static const auto real = next<int (*)(int, sembuf*, size_t, const timespec*)>("semtimedop");
  ipc::Client* client = clock_client();
  if (client == nullptr || !is_valid(timeout)) return real(set, operations, count, timeout);
  return wait_for(*client, to_ps(*timeout), would_block,
                  [&] { return real(set, operations, count, timeout); });
}

}  // namespace apenet::shim
