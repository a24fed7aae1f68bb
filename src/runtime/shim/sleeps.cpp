// Sleeps, and waits for files with a timeout, end in virtual time.
//
// A sleep costs no wall time: the process's clock advances. A wait for files takes as long in the host as it
// would in virtual time; if it times out, the process's clock advances by the timeout.
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/single_threaded.h>
#include <threads.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/timer_files.hpp"

namespace apenet::shim {
namespace {

constexpr std::int64_t ps_per_ms = ps_per_s / 1000;

// Calls wait(), a wait for files that returns 0 on timeout.
template <typename Wait>
int wait_for_files(ipc::Client& client, std::int64_t ps, Wait wait) {
  return wait_for(
      client, ps, [](int result) { return result == 0; }, wait);
}

// Calls look(), which asks without a wait for files, and finds none. Sleeps then. left: of the time, or
// nullptr.
template <typename Look>
int sleep_without_files(ipc::Client& client, std::int64_t ps, Look look, std::int64_t* left_ps = nullptr) {
  const int result = look();
  if (result != 0) return result;
  const std::optional<std::int64_t> left = sleep_ps(client, ps);
  if (left_ps != nullptr) *left_ps = left.value_or(0);
  if (!left) return 0;
  errno = EINTR;
  return -1;
}

// Waits for timers of the process, and for nothing else. look(time limit) is the wait of the host.
template <typename Look>
int wait_for_timers(ipc::Client& client, std::int64_t most_ps, Look look) {
  constexpr timespec none{};
  const VirtualTimers& timers = VirtualTimers::of_process();
  const std::int64_t began_ps = now_ps(client);
  for (;;) {
    if (client.has_due_timer()) apenet_timers_due();
    // A handler may have stopped the last.
    const bool is_endless = most_ps == ipc::end_of_time_ps && timers.first_ps() == VirtualTimer::never_ps;
    const int result = look(is_endless ? nullptr : &none);
    const std::int64_t left_ps = most_ps - (now_ps(client) - began_ps);
    if (result != 0 || left_ps <= 0) return result;
    const std::int64_t first_ps = timers.first_ps() - now_ps(client);
    if (sleep_ps(client, first_ps > 0 ? std::min(left_ps, first_ps) : left_ps)) {
      errno = EINTR;
      return -1;
    }
  }
}

std::uint64_t number_of(int file) {
  return static_cast<std::uint32_t>(file);
}

std::uint64_t first_of(const pollfd* fds) {
  return fds == nullptr ? 0 : number_of(fds[0].fd);
}

// Passes the result of a look at files without a wait.
int asked_files(std::uint64_t file, int result) {
  if (result == 0) note_look(ipc::OutsideCause::descriptor, file + 1);
  return result;
}

// A library of the process offers a descriptor for its events (ipc::FileWaiter). look() asks the host,
// without a wait, which files are ready. If none is, waits for an event of the library and asks again. Other
// files that become ready meanwhile do not end this wait.
bool has_card_descriptor(const ipc::Client* client) {
  return client != nullptr && client->file_waiter().wait != nullptr;
}

bool waits_for_card(const ipc::Client* client, const pollfd* fds, nfds_t count) {
  if (!has_card_descriptor(client) || fds == nullptr) return false;
  return std::any_of(fds, fds + count,
                     [own = client->file_waiter().descriptor](const pollfd& one) { return one.fd == own; });
}

bool waits_for_card(const ipc::Client* client, int count, const fd_set* reads) {
  if (!has_card_descriptor(client) || reads == nullptr) return false;
  const int own = client->file_waiter().descriptor;
  return own < count && own < FD_SETSIZE && FD_ISSET(own, reads);
}

// Without a limit the wait ends in virtual time only if a timer runs.
bool waits_for_timers(const pollfd* fds, nfds_t count, bool is_unlimited) {
  if (is_unlimited && VirtualTimers::of_process().first_ps() == VirtualTimer::never_ps) return false;
  return fds != nullptr && are_timer_files(fds, count) && !has_children();
}

template <typename Look>
int wait_for_card(const ipc::Client& client, std::int64_t most_ps, Look look) {
  const int result = look();
  if (result != 0 || most_ps == 0) return result;
  const ipc::FileWaiter& waiter = client.file_waiter();
  waiter.wait(waiter.library, most_ps);
  return look();
}

// Sets of files as the program gave them, for a second look.
struct FileSets {
  fd_set* given[3];
  fd_set saved[3] = {};

  FileSets(fd_set* reads, fd_set* writes, fd_set* errors) : given{reads, writes, errors} {
    for (int i = 0; i < 3; ++i) {
      if (given[i] != nullptr) saved[i] = *given[i];
    }
  }
  void restore() {
    for (int i = 0; i < 3; ++i) {
      if (given[i] != nullptr) *given[i] = saved[i];
    }
  }
};

// Open MPI's MPI_Finalize sleeps until its process manager answers, and for a second after it has closed the
// endpoints of one-sided accesses, because some providers need that. Not this one, so it sleeps no longer
// than this at once.
constexpr timespec longest_while_leaving{.tv_sec = 0, .tv_nsec = 10'000'000};

// Whether this is the only thread of a rank whose MPI library is being initialised.
bool is_initialising_alone() {
  ipc::Client* client = ipc::Client::attached();
  return client != nullptr && __libc_single_threaded != 0 && client->block().identity.initialising != 0;
}

}  // namespace
}  // namespace apenet::shim

using apenet::ipc::Client;
using apenet::ipc::end_of_time_ps;
using apenet::shim::asked_files;
using apenet::shim::clock_client;
using apenet::shim::ClockKind;
using apenet::shim::EarlyDeadline;
using apenet::shim::FileSets;
using apenet::shim::first_of;
using apenet::shim::has_card_descriptor;
using apenet::shim::HostPace;
using apenet::shim::is_valid;
using apenet::shim::longest_while_leaving;
using apenet::shim::next;
using apenet::shim::number_of;
using apenet::shim::ps_per_ms;
using apenet::shim::sleep_without_files;
using apenet::shim::to_ps;
using apenet::shim::wait_for_card;
using apenet::shim::wait_for_files;
using apenet::shim::wait_for_timers;
using apenet::shim::waits_for_card;
using apenet::shim::waits_for_timers;

APENET_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  const bool leaves = client != nullptr && client->progress().leaves();
  const bool is_of_host = client == nullptr || leaves;
  const ClockKind kind = is_of_host ? ClockKind::host : apenet::shim::kind_of(clock);
  // The host reports invalid arguments.
  if (kind == ClockKind::host || clock == CLOCK_THREAD_CPUTIME_ID || !is_valid(request)) {
    if (leaves && flags == 0 && is_valid(request) && request->tv_sec > 0) request = &longest_while_leaving;
    const bool is_early = client == nullptr && (flags & TIMER_ABSTIME) != 0;
    const EarlyDeadline early(is_early ? request : nullptr);
    return next<int (*)(clockid_t, int, const timespec*, timespec*)>("clock_nanosleep")(
        clock, flags, is_early ? early.get() : request, remaining);
  }
  const std::int64_t now_ps = apenet::shim::read_clock_ps(*client);
  timespec from = *request;
  if ((flags & TIMER_ABSTIME) != 0) from.tv_sec -= apenet::shim::base_s(kind);
  const std::int64_t since_ps = kind == ClockKind::cpu ? apenet::shim::cpu_ps(*client) : now_ps;
  const std::int64_t ps = (flags & TIMER_ABSTIME) != 0 ? to_ps(from) - since_ps : to_ps(from);
  const std::optional<std::int64_t> left_ps = apenet::shim::sleep_ps(*client, ps);
  if (!left_ps) return 0;
  if (remaining != nullptr && (flags & TIMER_ABSTIME) == 0) *remaining = apenet::shim::to_timespec(*left_ps);
  return EINTR;
}

APENET_EXPORT int nanosleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

APENET_EXPORT int __nanosleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  return nanosleep(request, remaining);
}

APENET_EXPORT int thrd_sleep(const timespec* request, timespec* remaining) {
  APENET_TIME_CALL;
  const int error = clock_nanosleep(CLOCK_REALTIME, 0, request, remaining);
  return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

APENET_EXPORT int usleep(useconds_t microseconds) {
  APENET_TIME_CALL;
  const timespec duration{.tv_sec = microseconds / 1'000'000, .tv_nsec = microseconds % 1'000'000 * 1000};
  return nanosleep(&duration, nullptr);
}

APENET_EXPORT unsigned sleep(unsigned seconds) {
  APENET_TIME_CALL;
  const timespec duration{.tv_sec = seconds, .tv_nsec = 0};
  timespec remaining{};
  return nanosleep(&duration, &remaining) == 0 ? 0 : static_cast<unsigned>(remaining.tv_sec);
}

// MPI libraries yield in their progress loops. Under the simulator an idle process waits for its event, so a
// yield to another idle process would only cost two context switches. With several threads the yield is
// needed: the yielding thread has just released the library's lock and would take it again before another
// thread runs.
APENET_EXPORT int sched_yield() noexcept {
  APENET_HOST_CALLER;
  static const auto real = next<int (*)()>("sched_yield");
  Client* client = apenet::shim::virtual_client();
  if (client == nullptr) return apenet::shim::is_initialising_alone() ? 0 : real();
  const apenet::ipc::Progress& progress = client->progress();
  if (__libc_single_threaded != 0) {
    const bool is_in_library = apenet::shim::is_in_call() || progress.waits() || progress.looks();
    return is_in_library ? 0 : real();
  }
  client->meet_others();  // what it waits for, another thread does in memory
  if (!progress.gives_way() && !client->awaits_thread()) return real();
  // Sleep instead of yielding: on a loaded host, a yield may return before the woken thread has run.
  constexpr timespec moment{.tv_sec = 0, .tv_nsec = 50'000};
  timespec* const remaining = nullptr;
  std::atomic<std::uint32_t>& give_way = client->block().threads.give_way;
  ++give_way;
  apenet::ipc::host_call(SYS_nanosleep, &moment, remaining);
  --give_way;
  return 0;
}

APENET_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real = next<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  if (waits_for_card(client, count, reads)) {
    const std::int64_t most_us = timeout == nullptr ? -1 : timeout->tv_sec * 1'000'000 + timeout->tv_usec;
    FileSets sets(reads, writes, errors);
    return wait_for_card(*client, most_us * 1'000'000, [&] {
      sets.restore();
      timeval none{};
      return real(count, reads, writes, errors, &none);
    });
  }
  if (client == nullptr || timeout == nullptr || timeout->tv_sec < 0 || timeout->tv_usec < 0) {
    const HostPace pace(client);
    return real(count, reads, writes, errors, timeout);
  }
  // As in the kernel, tv_usec may exceed a second.
  const timespec duration{.tv_sec = timeout->tv_sec + timeout->tv_usec / 1'000'000,
                          .tv_nsec = timeout->tv_usec % 1'000'000 * 1000};
  const auto look = [&] { return real(count, reads, writes, errors, timeout); };
  if (to_ps(duration) == 0)
    return count == 0 ? look() : asked_files(static_cast<std::uint64_t>(count), look());
  if (count > 0) return wait_for_files(*client, to_ps(duration), look);
  *timeout = {.tv_sec = 0, .tv_usec = 0};
  std::int64_t left_ps = 0;
  const int result = sleep_without_files(*client, to_ps(duration), look, &left_ps);
  const timespec left = apenet::shim::to_timespec(left_ps);
  *timeout = {.tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000};
  return result;
}

APENET_EXPORT int __select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  return select(count, reads, writes, errors, timeout);
}

APENET_EXPORT int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* timeout,
                          const sigset_t* mask) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real =
      next<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>("pselect");
  if (waits_for_card(client, count, reads)) {
    FileSets sets(reads, writes, errors);
    return wait_for_card(*client, timeout == nullptr ? -1 : to_ps(*timeout), [&] {
      sets.restore();
      const timespec now{};
      return real(count, reads, writes, errors, &now, mask);
    });
  }
  if (client == nullptr || !is_valid(timeout)) {
    const HostPace pace(client);
    return real(count, reads, writes, errors, timeout, mask);
  }
  const timespec none{};
  const timespec* const longest = count == 0 ? &none : timeout;
  const auto look = [&] { return real(count, reads, writes, errors, longest, mask); };
  if (count == 0) return sleep_without_files(*client, to_ps(*timeout), look);
  if (to_ps(*timeout) == 0) return asked_files(static_cast<std::uint64_t>(count), look());
  return wait_for_files(*client, to_ps(*timeout), look);
}

APENET_EXPORT int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real = next<int (*)(pollfd*, nfds_t, int)>("poll");
  if (waits_for_card(client, fds, count))
    return wait_for_card(*client, timeout_ms * ps_per_ms, [&] { return real(fds, count, 0); });
  if (client != nullptr && timeout_ms != 0 && waits_for_timers(fds, count, timeout_ms < 0)) {
    return wait_for_timers(
        *client, timeout_ms < 0 ? end_of_time_ps : timeout_ms * ps_per_ms,
        [&](const timespec* limit) { return real(fds, count, limit == nullptr ? -1 : 0); });
  }
  if (client == nullptr || timeout_ms < 0) {
    const HostPace pace(client);
    return real(fds, count, timeout_ms);
  }
  const auto look = [&] { return real(fds, count, count == 0 ? 0 : timeout_ms); };
  if (count == 0) return sleep_without_files(*client, timeout_ms * ps_per_ms, look);
  if (timeout_ms == 0) return asked_files(first_of(fds), look());
  return wait_for_files(*client, timeout_ms * ps_per_ms, look);
}

APENET_EXPORT int __poll(pollfd* fds, nfds_t count, int timeout_ms) {
  APENET_TIME_CALL;
  return poll(fds, count, timeout_ms);
}

APENET_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real = next<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  if (waits_for_card(client, fds, count)) {
    const timespec now{};
    return wait_for_card(*client, timeout == nullptr ? -1 : to_ps(*timeout),
                         [&] { return real(fds, count, &now, mask); });
  }
  const timespec none{};
  const bool is_unlimited = timeout == nullptr;
  if (client != nullptr && mask == nullptr && (is_unlimited || (is_valid(timeout) && to_ps(*timeout) > 0)) &&
      waits_for_timers(fds, count, is_unlimited)) {
    return wait_for_timers(*client, is_unlimited ? end_of_time_ps : to_ps(*timeout),
                           [&](const timespec* limit) { return real(fds, count, limit, mask); });
  }
  if (client == nullptr || !is_valid(timeout)) {
    const HostPace pace(client);
    return real(fds, count, timeout, mask);
  }
  const auto look = [&] { return real(fds, count, count == 0 ? &none : timeout, mask); };
  if (count == 0) return sleep_without_files(*client, to_ps(*timeout), look);
  if (to_ps(*timeout) == 0) return asked_files(first_of(fds), look());
  return wait_for_files(*client, to_ps(*timeout), look);
}

// Called by programs built with _FORTIFY_SOURCE. `bytes` is the size of the array; the C library reports an
// array that is too short.
APENET_EXPORT int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t bytes) {
  APENET_TIME_CALL;
  static const auto real = next<int (*)(pollfd*, nfds_t, int, size_t)>("__poll_chk");
  return bytes / sizeof *fds < count ? real(fds, count, timeout_ms, bytes) : poll(fds, count, timeout_ms);
}

APENET_EXPORT int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask,
                              size_t bytes) {
  APENET_TIME_CALL;
  static const auto real =
      next<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t)>("__ppoll_chk");
  return bytes / sizeof *fds < count ? real(fds, count, timeout, mask, bytes)
                                     : ppoll(fds, count, timeout, mask);
}

APENET_EXPORT int epoll_pwait(int epoll, epoll_event* events, int count, int timeout_ms,
                              const sigset_t* mask) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real = next<int (*)(int, epoll_event*, int, int, const sigset_t*)>("epoll_pwait");
  if (has_card_descriptor(client)) {
    return wait_for_card(*client, timeout_ms * ps_per_ms,
                         [&] { return real(epoll, events, count, 0, mask); });
  }
  if (client == nullptr || timeout_ms < 0) {
    const HostPace pace(client);
    return real(epoll, events, count, timeout_ms, mask);
  }
  if (timeout_ms == 0) return asked_files(number_of(epoll), real(epoll, events, count, timeout_ms, mask));
  return wait_for_files(*client, timeout_ms * ps_per_ms,
                        [&] { return real(epoll, events, count, timeout_ms, mask); });
}

APENET_EXPORT int epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
  APENET_TIME_CALL;
  return epoll_pwait(epoll, events, count, timeout_ms, nullptr);
}

APENET_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                               const sigset_t* mask) {
  APENET_TIME_CALL;
  Client* client = clock_client();
  static const auto real =
      next<int (*)(int, epoll_event*, int, const timespec*, const sigset_t*)>("epoll_pwait2");
  if (has_card_descriptor(client)) {
    const timespec now{};
    return wait_for_card(*client, timeout == nullptr ? -1 : to_ps(*timeout),
                         [&] { return real(epoll, events, count, &now, mask); });
  }
  if (client == nullptr || !is_valid(timeout)) {
    const HostPace pace(client);
    return real(epoll, events, count, timeout, mask);
  }
  if (to_ps(*timeout) == 0) return asked_files(number_of(epoll), real(epoll, events, count, timeout, mask));
  return wait_for_files(*client, to_ps(*timeout), [&] { return real(epoll, events, count, timeout, mask); });
}
