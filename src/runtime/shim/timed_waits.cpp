// Sleeps and waits with a deadline: they end in virtual time.
//
// A sleep costs no wall time: the process's clock moves. A wait for another thread or for a file that has a
// deadline is made for real, as long as it would last; if it runs out, the process's clock moves to the
// deadline.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"

namespace apenet::shim {
namespace {

constexpr std::int64_t ps_per_s = 1'000'000'000'000;

std::int64_t to_ps(const timespec& time) {
  constexpr std::int64_t most_s = ipc::end_of_time_ps / ps_per_s;
  return std::min<std::int64_t>(time.tv_sec, most_s) * ps_per_s + time.tv_nsec * 1000;
}

// The others live on meanwhile: a program that sleeps between two looks at its memory finds there what has
// come.
void pass(ipc::Client& client, std::int64_t ps) {
  client.lock();
  client.charge(ps);
  client.settle();
  client.unlock();
}

void advance_to(ipc::Client& client, std::int64_t deadline_ps) {
  const std::int64_t remaining_ps = deadline_ps - client.clock_ps();
  if (remaining_ps > 0) pass(client, remaining_ps);
}

// A deadline on one of our two clocks, counted from the begin of virtual time. Which clock a condition
// variable uses cannot be asked; the bases lie years apart, so the nearer one is meant.
std::int64_t deadline_ps(const timespec& deadline) {
  const std::int64_t from_realtime = deadline.tv_sec - realtime_base_s;
  const std::int64_t from_monotonic = deadline.tv_sec - monotonic_base_s;
  const std::int64_t base =
      std::abs(from_realtime) < std::abs(from_monotonic) ? realtime_base_s : monotonic_base_s;
  constexpr std::int64_t most_s = 4'000'000;  // 46 days: "for ever" in the programs that say so
  return std::clamp<std::int64_t>(deadline.tv_sec - base, 0, most_s) * ps_per_s + deadline.tv_nsec * 1000;
}

// The same deadline on the host's monotonic clock.
timespec real_deadline(const ipc::Client& client, std::int64_t virtual_ps) {
  timespec now{};
  next<int (*)(clockid_t, timespec*)>("clock_gettime")(CLOCK_MONOTONIC, &now);
  const std::int64_t ps = to_ps(now) + std::max<std::int64_t>(virtual_ps - client.clock_ps(), 0);
  return {.tv_sec = ps / ps_per_s, .tv_nsec = ps % ps_per_s / 1000};
}

int sleep_for(ipc::Client& client, const timespec& duration, timespec* remaining) {
  if (duration.tv_sec < 0 || duration.tv_nsec < 0 || duration.tv_nsec > 999'999'999) return EINVAL;
  client.observe_compute();
  pass(client, to_ps(duration));
  if (remaining != nullptr) *remaining = {.tv_sec = 0, .tv_nsec = 0};
  return 0;
}

// wait(deadline on CLOCK_MONOTONIC) for a wait whose deadline lies on one of the virtual clocks.
template <typename Wait>
int wait_until(ipc::Client& client, const timespec& deadline, int timed_out, Wait wait) {
  const std::int64_t until_ps = deadline_ps(deadline);
  const timespec real = real_deadline(client, until_ps);
  const int result = wait(&real);
  if (result == timed_out) advance_to(client, until_ps);
  return result;
}

}  // namespace
}  // namespace apenet::shim

using apenet::ipc::Client;
using apenet::shim::next;
using apenet::shim::virtual_client;

APENET_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remaining) {
  Client* client = virtual_client();
  if (client == nullptr) {
    return next<int (*)(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep")(clock, flags, request,
                                                                                        remaining);
  }
  if ((flags & TIMER_ABSTIME) == 0) return apenet::shim::sleep_for(*client, *request, remaining);
  apenet::shim::advance_to(*client, apenet::shim::deadline_ps(*request));
  return 0;
}

// MPI libraries yield in their progress loops. Under the simulator a process that has nothing to do waits for
// its event, and a yield to a neighbour that also has nothing to do is two context switches for nothing. Not
// so with threads: the one that yields has just let go of the library's lock, and takes it again before
// another gets it, unless that one runs first.
APENET_EXPORT int sched_yield() noexcept {
  static const auto real = next<int (*)()>("sched_yield");
  Client* client = virtual_client();
  const bool in_vain = client != nullptr && __libc_single_threaded != 0 &&
                       (client->block().waiting | client->block().looking) != 0;
  return in_vain ? 0 : real();
}

APENET_EXPORT int nanosleep(const timespec* request, timespec* remaining) {
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

APENET_EXPORT int usleep(useconds_t microseconds) {
  const timespec duration{.tv_sec = microseconds / 1'000'000, .tv_nsec = microseconds % 1'000'000 * 1000};
  return nanosleep(&duration, nullptr);
}

APENET_EXPORT unsigned sleep(unsigned seconds) {
  const timespec duration{.tv_sec = seconds, .tv_nsec = 0};
  timespec remaining{};
  return nanosleep(&duration, &remaining) == 0 ? 0 : static_cast<unsigned>(remaining.tv_sec);
}

APENET_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  Client* client = virtual_client();
  static const auto real = next<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  if (client == nullptr || timeout == nullptr) return real(count, reads, writes, errors, timeout);
  const timespec duration{.tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000};
  const int result = count == 0 ? 0 : real(count, reads, writes, errors, timeout);
  if (result == 0) apenet::shim::sleep_for(*client, duration, nullptr);
  return result;
}

APENET_EXPORT int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  Client* client = virtual_client();
  static const auto real = next<int (*)(pollfd*, nfds_t, int)>("poll");
  if (client == nullptr || timeout_ms <= 0) return real(fds, count, timeout_ms);
  const int result = count == 0 ? 0 : real(fds, count, timeout_ms);
  if (result == 0) apenet::shim::pass(*client, std::int64_t{timeout_ms} * 1'000'000'000);
  return result;
}

APENET_EXPORT int epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
  Client* client = virtual_client();
  static const auto real = next<int (*)(int, epoll_event*, int, int)>("epoll_wait");
  const int result = real(epoll, events, count, timeout_ms);
  if (client != nullptr && result == 0 && timeout_ms > 0)
    apenet::shim::pass(*client, std::int64_t{timeout_ms} * 1'000'000'000);
  return result;
}

APENET_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* deadline) {
  Client* client = virtual_client();
  static const auto real =
      next<int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  if (client == nullptr) return real(condition, mutex, clock, deadline);
  return apenet::shim::wait_until(*client, *deadline, ETIMEDOUT, [&](const timespec* until) {
    return real(condition, mutex, CLOCK_MONOTONIC, until);
  });
}

APENET_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                         const timespec* deadline) {
  if (virtual_client() != nullptr) return pthread_cond_clockwait(condition, mutex, CLOCK_REALTIME, deadline);
  return next<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait")(
      condition, mutex, deadline);
}

APENET_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  Client* client = virtual_client();
  static const auto real = next<int (*)(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  if (client == nullptr) return real(semaphore, clock, deadline);
  const auto wait = [&](const timespec* until) {
    return real(semaphore, CLOCK_MONOTONIC, until) == 0 ? 0 : errno;
  };
  const int error = apenet::shim::wait_until(*client, *deadline, ETIMEDOUT, wait);
  errno = error;
  return error == 0 ? 0 : -1;
}

APENET_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  if (virtual_client() != nullptr) return sem_clockwait(semaphore, CLOCK_REALTIME, deadline);
  return next<int (*)(sem_t*, const timespec*)>("sem_timedwait")(semaphore, deadline);
}
