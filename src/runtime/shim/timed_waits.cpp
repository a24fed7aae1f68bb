// Waits for another thread with a deadline in virtual time.
//
// The wait takes as long in the host as it would in virtual time, or ends when virtual time has passed the
// deadline. If it times out, the thread's clock advances to the deadline.
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/sem.h>
#include <threads.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

// Converts the error of a pthread.h wait to the result of the threads.h wait that it implements.
int as_thread_result(int error) {
  switch (error) {
    case 0:
      return thrd_success;
    case EBUSY:
      return thrd_busy;
    case ENOMEM:
      return thrd_nomem;
    case ETIMEDOUT:
      return thrd_timedout;
    default:
      return thrd_error;
  }
}

// The clocks that the C library's waits accept. It reports the error for others.
bool is_clock_of_waits(clockid_t clock) {
  return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

using Ender = LimitedWait::Ender;

// Of an object in memory that the process may share with another one, as its attributes say. The marks are
// the C library's.
Ender ender_of(bool is_shared) {
  return is_shared ? Ender::thread : Ender::own_thread;
}

Ender ender_of(const pthread_mutex_t* mutex) {
  constexpr int shared_bit = 128;
  return ender_of((mutex->__data.__kind & shared_bit) != 0);
}

Ender ender_of(const pthread_cond_t* condition) {
  return ender_of((condition->__data.__wrefs & 1U) != 0);
}

Ender ender_of(const pthread_rwlock_t* lock) {
  return ender_of(lock->__data.__shared != 0);
}

Ender ender_of(pthread_t /*thread*/) {
  return Ender::own_thread;
}

Ender ender_of(sem_t* semaphore) {
  return ender_of(is_shared(semaphore));
}

bool would_block(int result) {
  return result < 0 && errno == EAGAIN;
}

}  // namespace
}  // namespace apenet::shim

using apenet::ipc::Client;
using apenet::shim::clock_client;
using apenet::shim::EarlyDeadline;
using apenet::shim::ender_of;
using apenet::shim::HostPace;
using apenet::shim::is_clock_of_waits;
using apenet::shim::is_null;
using apenet::shim::LimitedWait;
using apenet::shim::next;
using apenet::shim::wait_until;

// Defines a wait that returns its error, in two forms: with a clock argument, and the older one, which uses
// the realtime clock.
#define APENET_TIMED_WAIT(clock_name, timed_name, parameters, arguments, object, condition)               \
  APENET_EXPORT int clock_name(APENET_UNPACK parameters, clockid_t clock, const timespec* deadline) {     \
    APENET_TIME_CALL;                                                                                     \
    static const auto real =                                                                              \
        next<int (*)(APENET_UNPACK parameters, clockid_t, const timespec*)>(#clock_name);                 \
    Client* client = clock_client();                                                                      \
    if (client == nullptr || is_null(deadline) || !is_clock_of_waits(clock))                              \
      return real(APENET_UNPACK arguments, clock, EarlyDeadline(deadline).get());                         \
    const auto wait = [&](const timespec* until) {                                                        \
      return real(APENET_UNPACK arguments, CLOCK_MONOTONIC, until);                                       \
    };                                                                                                    \
    return wait_until(*client, *deadline, CLOCK_MONOTONIC, ETIMEDOUT, wait, ender_of(object), condition); \
  }                                                                                                       \
  APENET_EXPORT int timed_name(APENET_UNPACK parameters, const timespec* deadline) {                      \
    APENET_TIME_CALL;                                                                                     \
    static const auto real = next<int (*)(APENET_UNPACK parameters, const timespec*)>(#timed_name);       \
    if (clock_client() == nullptr) return real(APENET_UNPACK arguments, EarlyDeadline(deadline).get());   \
    return clock_name(APENET_UNPACK arguments, CLOCK_REALTIME, deadline);                                 \
  }
#define APENET_UNPACK(...) __VA_ARGS__

APENET_TIMED_WAIT(pthread_cond_clockwait, pthread_cond_timedwait,
                  (pthread_cond_t * condition, pthread_mutex_t* mutex), (condition, mutex), condition,
                  condition)
APENET_TIMED_WAIT(pthread_mutex_clocklock, pthread_mutex_timedlock, (pthread_mutex_t * mutex), (mutex), mutex,
                  nullptr)
APENET_TIMED_WAIT(pthread_rwlock_clockrdlock, pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock), (lock),
                  lock, nullptr)
APENET_TIMED_WAIT(pthread_rwlock_clockwrlock, pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock), (lock),
                  lock, nullptr)
APENET_TIMED_WAIT(pthread_clockjoin_np, pthread_timedjoin_np, (pthread_t thread, void** result),
                  (thread, result), thread, nullptr)

APENET_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  return apenet::shim::as_thread_result(pthread_cond_timedwait(
      reinterpret_cast<pthread_cond_t*>(condition), reinterpret_cast<pthread_mutex_t*>(mutex), deadline));
}

APENET_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* deadline) {
  return apenet::shim::as_thread_result(
      pthread_mutex_timedlock(reinterpret_cast<pthread_mutex_t*>(mutex), deadline));
}

APENET_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real = next<int (*)(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  if (client == nullptr || is_null(deadline) || !is_clock_of_waits(clock))
    return real(semaphore, clock, EarlyDeadline(deadline).get());
  const auto wait = [&](const timespec* until) {
    return real(semaphore, CLOCK_MONOTONIC, until) == 0 ? 0 : errno;
  };
  const int error = wait_until(*client, *deadline, CLOCK_MONOTONIC, ETIMEDOUT, wait, ender_of(semaphore),
                               nullptr, std::optional(EINTR));
  if (error == 0) return 0;
  errno = error;
  return -1;
}

APENET_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  APENET_TIME_CALL;
  if (clock_client() != nullptr) return sem_clockwait(semaphore, CLOCK_REALTIME, deadline);
  return next<int (*)(sem_t*, const timespec*)>("sem_timedwait")(semaphore, EarlyDeadline(deadline).get());
}

APENET_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* __restrict message, size_t size,
                                      unsigned* __restrict priority, const timespec* __restrict deadline) {
  static const auto real =
      next<ssize_t (*)(mqd_t, char*, size_t, unsigned*, const timespec*)>("mq_timedreceive");
  Client* client = clock_client();
  if (client == nullptr || is_null(deadline))
    return real(queue, message, size, priority, EarlyDeadline(deadline).get());
  const ssize_t received = wait_until(
      *client, *deadline, CLOCK_REALTIME, ssize_t{-ETIMEDOUT},
      [&](const timespec* until) {
        const ssize_t result = real(queue, message, size, priority, until);
        return result < 0 ? -errno : result;
      },
      LimitedWait::Ender::outside);
  if (received >= 0) return received;
  errno = static_cast<int>(-received);
  return -1;
}

APENET_EXPORT int mq_timedsend(mqd_t queue, const char* message, size_t size, unsigned priority,
                               const timespec* deadline) {
  static const auto real =
      next<int (*)(mqd_t, const char*, size_t, unsigned, const timespec*)>("mq_timedsend");
  Client* client = clock_client();
  if (client == nullptr || is_null(deadline))
    return real(queue, message, size, priority, EarlyDeadline(deadline).get());
  const int error = wait_until(
      *client, *deadline, CLOCK_REALTIME, ETIMEDOUT,
      [&](const timespec* until) { return real(queue, message, size, priority, until) == 0 ? 0 : errno; },
      LimitedWait::Ender::outside);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// The handler of a signal may post it.
APENET_EXPORT int sem_wait(sem_t* semaphore) {
  static const auto real = next<int (*)(sem_t*)>("sem_wait");
  const HostPace pace(apenet::shim::pacing_client(), HostPace::Ender::thread);
  return real(semaphore);
}

APENET_EXPORT int semtimedop(int set, sembuf* operations, size_t count, const timespec* timeout) noexcept {
  static const auto real = next<int (*)(int, sembuf*, size_t, const timespec*)>("semtimedop");
  Client* client = clock_client();
  if (client == nullptr || !apenet::shim::is_valid(timeout)) return real(set, operations, count, timeout);
  return apenet::shim::wait_for(*client, apenet::shim::to_ps(*timeout), apenet::shim::would_block,
                                [&] { return real(set, operations, count, timeout); });
}
