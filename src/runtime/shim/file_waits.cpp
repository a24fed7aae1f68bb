// Waits for files with a time limit (select, poll, epoll) end in virtual time.
//
// A wait for files that only this process can make ready (own_files.hpp) is a sleep: it costs no real time,
// and in a process with several threads it ends when another one makes a file ready. A wait for others takes
// as long in the host as it would in virtual time; if it times out, the process's clock advances by the
// timeout.
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/deadlines.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/host_caller.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/signal_waits.hpp"
#include "runtime/shim/timer_files.hpp"

namespace apenet::shim {
namespace {

using ipc::end_of_time_ps;

constexpr std::int64_t ps_per_ms = ps_per_s / 1000;
constexpr std::int64_t us_per_s = 1'000'000;

// A wait for files, as a call of the program describes it. For an epoll set the only file is the set.
struct FileWait {
  std::span<pollfd> files;
  std::int64_t most_ps = end_of_time_ps;  // which stands for no limit
  const sigset_t* mask = nullptr;         // signals that are blocked meanwhile; nullptr: as otherwise
  std::int64_t* left_ps = nullptr;        // what is left of the time, if the wait is a sleep
  [[nodiscard]] bool is_endless() const { return most_ps == end_of_time_ps; }
};

// The epoll set for which the thread waits has got its first simulated socket: apenet_wait_for_set() goes on.
constexpr int is_simulated_now = -2;

// What is left of such a wait. -1: it has no limit.
std::int64_t rest_of(ipc::Client& client, std::int64_t most_ps, std::int64_t began_ps) {
  if (most_ps == end_of_time_ps) return -1;
  return std::max<std::int64_t>(most_ps - (now_ps(client) - began_ps), 0);
}

// Passes the result of a poll of files, or of a wait for them in the host.
int asked_files(std::span<const pollfd> files, int result) {
  if (files.empty() || result < 0 || !counts_checks() || are_own_files(files)) return result;
  const std::uint64_t key = static_cast<std::uint32_t>(files[0].fd) + std::uint64_t{1};
  if (result == 0) {
    note_check(OutsideCause::descriptor, key);
  } else {
    note_found(OutsideCause::descriptor, key);
  }
  return result;
}

// poll_host(limit): the program's call in the host; nullptr: without a limit.
template <typename Poll>
int wait_for_own_files(ipc::Client& client, const FileWait& wait, Poll poll_host) {
  constexpr timespec none{};
  const VirtualTimers& timers = VirtualTimers::of_process();
  const bool is_alone = ipc::is_single_threaded();
  HostFileWait host(wait.files);
  const std::int64_t began_ps = now_ps(client);
  for (;;) {
    if (client.has_due_timer()) apenet_timers_due();
    // A handler may have stopped the last timer.
    const bool is_endless = wait.is_endless() && timers.first_ps() == VirtualTimer::never_ps;
    const int result = poll_host(is_endless ? nullptr : &none);
    std::int64_t left_ps = wait.most_ps - (now_ps(client) - began_ps);
    if (wait.left_ps != nullptr) *wait.left_ps = std::max<std::int64_t>(left_ps, 0);
    if (result != 0 || left_ps <= 0) return result;
    bool is_ended = false;
    if (wait.mask != nullptr) {
      is_ended = sleep_to_timer(client, left_ps, *wait.mask);
    } else {
      const std::int64_t first_ps = timers.first_ps() - now_ps(client);
      const std::int64_t part_ps = first_ps > 0 ? std::min(left_ps, first_ps) : left_ps;
      const std::optional<std::int64_t> rest_ps = sleep_ps(client, part_ps, is_alone ? nullptr : &host);
      is_ended = rest_ps.has_value();
      left_ps -= part_ps - rest_ps.value_or(0);
    }
    if (is_ended && !host.take_ready()) {
      if (wait.left_ps != nullptr) *wait.left_ps = left_ps;
      errno = EINTR;
      return -1;
    }
  }
}

// Without a limit, beside other threads of the order: one of them makes a file ready.
template <typename Poll>
int wait_in_order(ipc::OrderedThread& own, const FileWait& wait, Poll poll_host) {
  constexpr timespec none{};
  ipc::ThreadOrder& order = thread_order();
  PolledFiles files(wait.files);
  for (;;) {
    pthread_testcancel();
    order.enter(own);
    const int result = poll_host(&none);
    const int error = errno;
    ipc::Woken woken = ipc::Woken::no;
    if (result == 0)
      woken = order.block(own, ipc::Client::own_files_of(order), ipc::OrderedThread::no_deadline_ps, nullptr,
                          ipc::WaitEnds::by_signal, &files);
    order.leave(own, !is_in_call());
    errno = woken == ipc::Woken::interrupted ? EINTR : error;
    if (result != 0) return result;
    if (woken == ipc::Woken::interrupted) return -1;
  }
}

// Children work in the host's time, and other threads while they wait for something outside.
template <typename Poll>
int wait_in_host(ipc::Client& client, FileWait wait, Poll poll_host) {
  constexpr timespec none{};
  const std::int64_t began_ps = now_ps(client);
  const std::int64_t until_ps =
      wait.is_endless() ? ipc::OrderedThread::no_deadline_ps
                        : order_deadline_ps(began_ps + std::min(wait.most_ps, end_of_time_ps - began_ps));
  {
    const OrderedFiles ordered(wait.files, until_ps, OrderedFiles::Use::check, wait.mask);
    if (ordered.outcome() != OrderedFiles::Outcome::in_host) {
      if (wait.left_ps != nullptr)
        *wait.left_ps = std::max<std::int64_t>(wait.most_ps - (now_ps(client) - began_ps), 0);
      if (ordered.outcome() != OrderedFiles::Outcome::interrupted) return poll_host(&none);
      errno = EINTR;
      return -1;
    }
  }
  if (wait.files.size() == 1 && has_simulated_sockets(wait.files[0].fd) &&
      poll_host(&none) == is_simulated_now)
    return is_simulated_now;
  if (!wait.is_endless()) {
    wait.most_ps = std::max<std::int64_t>(wait.most_ps - (now_ps(client) - began_ps), 0);
    const timespec limit = to_timespec(wait.most_ps);
    const int result = wait_for(
        client, wait.most_ps, [](int ready) { return ready == 0; }, [&] { return poll_host(&limit); });
    return asked_files(wait.files, result);
  }
  const HostPace pace(&client);
  return poll_host(nullptr);
}

template <typename Poll>
int wait_for_files(ipc::Client& client, const FileWait& wait, Poll poll_host) {
  constexpr timespec none{};
  if (wait.most_ps == 0) {
    int result = 0;
    {
      const OrderedFiles ordered(wait.files, OrderedFiles::at_once, OrderedFiles::Use::check);
      result = poll_host(&none);
    }
    if (result == 0) charge_empty_check();
    return asked_files(wait.files, result);
  }
  if (client.progress().leaves() || !are_own_files(wait.files)) return wait_in_host(client, wait, poll_host);
  const bool is_alone = ipc::is_single_threaded();
  const bool has_timer = VirtualTimers::of_process().first_ps() != VirtualTimer::never_ps;
  if (wait.is_endless() && !is_alone) {
    ipc::OrderedThread* const own = ordered_thread();
    if (own != nullptr && wait.mask == nullptr)
      return has_timer ? wait_for_own_files(client, wait, poll_host) : wait_in_order(*own, wait, poll_host);
    const InsideWait inside(client);
    const HostPace pace(&client, HostPace::Ender::thread);
    return poll_host(nullptr);
  }
  const bool needs_host = !is_alone || wait.is_endless() || wait.mask != nullptr ? has_children() : false;
  if ((wait.is_endless() && !has_timer) || needs_host || (!is_alone && wait.mask != nullptr))
    return wait_in_host(client, wait, poll_host);
  return wait_for_own_files(client, wait, poll_host);
}

// Calls poll_host(), which asks without a wait for files, and finds none. Sleeps then. left_ps: of the time,
// or nullptr.
template <typename Poll>
int sleep_without_files(ipc::Client& client, std::int64_t ps, Poll poll_host,
                        std::int64_t* left_ps = nullptr) {
  constexpr timespec none{};
  const int result = poll_host(&none);
  if (result != 0) return result;
  const std::optional<std::int64_t> left = sleep_ps(client, ps);
  if (left_ps != nullptr) *left_ps = left.value_or(0);
  if (!left) return 0;
  errno = EINTR;
  return -1;
}

// A wait without files for signals that only its mask lets in.
template <typename Poll>
int wait_for_signals(ipc::Client& client, std::int64_t most_ps, const sigset_t& mask, Poll poll_host) {
  pollfd none{.fd = -1, .events = 0, .revents = 0};
  const FileWait wait{.files = {&none, 1}, .most_ps = most_ps, .mask = &mask};
  constexpr timespec at_once{};
  if (wait.most_ps == 0) return poll_host(&at_once);
  const bool has_timer = VirtualTimers::of_process().first_ps() != VirtualTimer::never_ps;
  const bool has_end = !wait.is_endless() || has_timer;
  if (!has_end || client.progress().leaves() || has_children()) return wait_in_host(client, wait, poll_host);
  return wait_for_own_files(client, wait, poll_host);
}

// A library of the process offers a descriptor for its events (ipc::FileWaiter). poll_host() asks the host,
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

template <typename Poll>
int wait_for_card(const ipc::Client& client, std::int64_t most_ps, Poll poll_host) {
  constexpr timespec none{};
  const int result = poll_host(&none);
  if (result != 0 || most_ps == 0) return result;
  const ipc::FileWaiter& waiter = client.file_waiter();
  waiter.wait(waiter.library, most_ps);
  return poll_host(&none);
}

// The bytes of a set that stand for so many files: the host uses no others, and the set may be no longer.
std::size_t bytes_of_set(int count) {
  constexpr std::size_t word_bits = 8 * sizeof(std::uint64_t);
  const auto files = static_cast<std::size_t>(std::clamp(count, 0, FD_SETSIZE));
  return (files + word_bits - 1) / word_bits * sizeof(std::uint64_t);
}

// Sets of files as the program gave them, for a second poll, and after a wait that a signal has ended: the
// host leaves them as they are then.
class FileSets {
 public:
  FileSets(int count, fd_set* reads, fd_set* writes, fd_set* errors)
      : count_(std::clamp(count, 0, FD_SETSIZE)), given_{reads, writes, errors} {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i] != nullptr) std::memcpy(&saved_[i], given_[i], bytes_of_set(count_));
    }
  }
  void restore() {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i] != nullptr) std::memcpy(given_[i], &saved_[i], bytes_of_set(count_));
    }
  }
  // The same for poll(); no file stands for more than there is room for.
  [[nodiscard]] std::span<pollfd> polled() {
    constexpr std::array<short, 3> events = {POLLIN, POLLOUT, POLLPRI};
    std::size_t used = 0;
    for (int file = 0; file < count_; ++file) {
      short wanted = 0;
      for (std::size_t i = 0; i < given_.size(); ++i) {
        if (given_[i] != nullptr && FD_ISSET(file, &saved_[i]))
          wanted = static_cast<short>(wanted | events[i]);
      }
      if (wanted == 0) continue;
      if (used == files_.size()) return {files_.data(), 0};
      files_[used++] = {.fd = file, .events = wanted, .revents = 0};
    }
    return {files_.data(), used};
  }

 private:
  int count_;
  std::array<fd_set*, 3> given_;
  std::array<fd_set, 3> saved_{};
  std::array<pollfd, 64> files_{};
};

int to_ms(const timespec* limit) {
  return limit == nullptr ? -1 : static_cast<int>(limit->tv_sec * 1000 + limit->tv_nsec / 1'000'000);
}

std::int64_t to_limit_ps(int ms) {
  return ms < 0 ? end_of_time_ps : ms * ps_per_ms;
}

// Shorter than the end of time, which stands for none.
std::int64_t to_limit_ps(const timespec* limit) {
  return limit == nullptr ? end_of_time_ps : std::min(to_ps(*limit), end_of_time_ps - 1);
}

// Whether the sets that the call does not leave out are there. The host reports memory that is none.
template <typename... Sets>
bool are_sets(int count, const Sets*... sets) {
  const std::size_t bytes = bytes_of_set(count);
  return ((sets == nullptr || bytes == 0 || ipc::is_readable(sets, bytes)) && ...);
}

// The C library passes this much of a set of signals.
bool is_set_or_none(const sigset_t* mask) {
  return mask == nullptr || ipc::is_readable(mask, sizeof(std::uint64_t));
}

bool are_readable(const pollfd* files, nfds_t count) {
  return count <= UINT32_MAX && ipc::is_readable(files, count * sizeof *files);
}

// As waits for the card give it: -1 for no limit.
std::int64_t to_card_ps(std::int64_t limit_ps) {
  return limit_ps == end_of_time_ps ? -1 : limit_ps;
}

// ask_host(limit): the program's call in the host.
template <typename Ask>
int wait_for_set(ipc::Client& client, int epoll, epoll_event* events, int count, std::int64_t most_ps,
                 const sigset_t* mask, Ask ask_host) {
  const bool had_sockets = has_simulated_sockets(epoll);  // then it is asked for the other files alone
  const auto poll_host = [&](const timespec* limit) {
    return !had_sockets && has_simulated_sockets(epoll) ? is_simulated_now : ask_host(limit);
  };
  if (has_card_descriptor(&client)) return wait_for_card(client, to_card_ps(most_ps), poll_host);
  pollfd set{.fd = epoll, .events = POLLIN, .revents = 0};
  const std::int64_t began_ps = now_ps(client);
  const int result =
      wait_for_files(client, {.files = {&set, 1}, .most_ps = most_ps, .mask = mask}, poll_host);
  if (result != is_simulated_now) return result;
  return apenet_wait_for_set(epoll, events, count, rest_of(client, most_ps, began_ps), mask);
}

}  // namespace

APENET_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real = next<int (*)(int, fd_set*, fd_set*, fd_set*, timeval*)>("select");
  const bool is_invalid = !are_sets(count, reads, writes, errors) || !ipc::is_readable_or_none(timeout) ||
                          (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0));
  if (client == nullptr || is_invalid) {
    const HostPace pace(client);
    return real(count, reads, writes, errors, timeout);
  }
  FileSets sets(count, reads, writes, errors);
  timeval left{};
  const auto poll_host = [&](const timespec* limit) {
    sets.restore();
    if (limit == nullptr) return real(count, reads, writes, errors, nullptr);
    left = {.tv_sec = limit->tv_sec, .tv_usec = limit->tv_nsec / 1000};
    return real(count, reads, writes, errors, &left);
  };
  timespec duration{};
  if (timeout != nullptr) {  // as in the kernel, tv_usec may exceed a second
    duration = {.tv_sec = timeout->tv_sec + timeout->tv_usec / us_per_s,
                .tv_nsec = timeout->tv_usec % us_per_s * 1000};
  }
  const std::int64_t most_ps = to_limit_ps(timeout == nullptr ? nullptr : &duration);
  if (waits_for_card(client, count, reads)) return wait_for_card(*client, to_card_ps(most_ps), poll_host);
  std::int64_t left_ps = -1;  // the host tells
  int result = 0;
  if (count == 0 && timeout != nullptr) {
    result = sleep_without_files(*client, most_ps, poll_host, &left_ps);
  } else {
    const FileWait wait{.files = sets.polled(), .most_ps = most_ps, .left_ps = &left_ps};
    result = wait_for_files(*client, wait, poll_host);
  }
  if (result < 0) sets.restore();
  if (timeout == nullptr) return result;
  if (left_ps >= 0) {
    const timespec rest = to_timespec(left_ps);
    left = {.tv_sec = rest.tv_sec, .tv_usec = rest.tv_nsec / 1000};
  }
  *timeout = left;
  return result;
}

APENET_EXPORT int __select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  return select(count, reads, writes, errors, timeout);
}

APENET_EXPORT int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* timeout,
                          const sigset_t* mask) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real =
      next<int (*)(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)>("pselect");
  const bool is_invalid = !are_sets(count, reads, writes, errors) || !is_set_or_none(mask);
  if (client == nullptr || is_invalid || (timeout != nullptr && !is_valid(timeout))) {
    const HostPace pace(client);
    return real(count, reads, writes, errors, timeout, mask);
  }
  FileSets sets(count, reads, writes, errors);
  const auto poll_host = [&](const timespec* limit) {
    sets.restore();
    return real(count, reads, writes, errors, limit, mask);
  };
  const std::int64_t most_ps = to_limit_ps(timeout);
  if (waits_for_card(client, count, reads)) return wait_for_card(*client, to_card_ps(most_ps), poll_host);
  if (count == 0 && mask != nullptr) return wait_for_signals(*client, most_ps, *mask, poll_host);
  if (count == 0 && timeout != nullptr) return sleep_without_files(*client, most_ps, poll_host);
  const int result =
      wait_for_files(*client, {.files = sets.polled(), .most_ps = most_ps, .mask = mask}, poll_host);
  if (result < 0) sets.restore();
  return result;
}

APENET_EXPORT int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real = next<int (*)(pollfd*, nfds_t, int)>("poll");
  if (client == nullptr || !are_readable(fds, count)) return real(fds, count, timeout_ms);
  const auto poll_host = [&](const timespec* limit) { return real(fds, count, to_ms(limit)); };
  const std::int64_t most_ps = to_limit_ps(timeout_ms);
  if (waits_for_card(client, fds, count)) return wait_for_card(*client, to_card_ps(most_ps), poll_host);
  if (count == 0 && timeout_ms >= 0) return sleep_without_files(*client, most_ps, poll_host);
  return wait_for_files(*client, {.files = {fds, count}, .most_ps = most_ps}, poll_host);
}

APENET_EXPORT int __poll(pollfd* fds, nfds_t count, int timeout_ms) {
  APENET_TIME_CALL;
  return poll(fds, count, timeout_ms);
}

APENET_EXPORT int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real = next<int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*)>("ppoll");
  const bool is_invalid = !are_readable(fds, count) || !is_set_or_none(mask);
  if (client == nullptr || is_invalid || (timeout != nullptr && !is_valid(timeout))) {
    const HostPace pace(client);
    return real(fds, count, timeout, mask);
  }
  const auto poll_host = [&](const timespec* limit) { return real(fds, count, limit, mask); };
  const std::int64_t most_ps = to_limit_ps(timeout);
  if (waits_for_card(client, fds, count)) return wait_for_card(*client, to_card_ps(most_ps), poll_host);
  if (count == 0 && mask != nullptr) return wait_for_signals(*client, most_ps, *mask, poll_host);
  if (count == 0 && timeout != nullptr) return sleep_without_files(*client, most_ps, poll_host);
  const std::span<pollfd> files(fds, count);
  return wait_for_files(*client, {.files = files, .most_ps = most_ps, .mask = mask}, poll_host);
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
  ipc::Client* client = clock_client();
  static const auto real = next<int (*)(int, epoll_event*, int, int, const sigset_t*)>("epoll_pwait");
  if (client == nullptr || !is_set_or_none(mask)) return real(epoll, events, count, timeout_ms, mask);
  return wait_for_set(*client, epoll, events, count, to_limit_ps(timeout_ms), mask,
                      [&](const timespec* limit) { return real(epoll, events, count, to_ms(limit), mask); });
}

APENET_EXPORT int epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
  APENET_TIME_CALL;
  return epoll_pwait(epoll, events, count, timeout_ms, nullptr);
}

APENET_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                               const sigset_t* mask) {
  APENET_TIME_CALL;
  ipc::Client* client = clock_client();
  static const auto real =
      next<int (*)(int, epoll_event*, int, const timespec*, const sigset_t*)>("epoll_pwait2");
  if (client == nullptr || !is_set_or_none(mask) || (timeout != nullptr && !is_valid(timeout))) {
    const HostPace pace(client);
    return real(epoll, events, count, timeout, mask);
  }
  return wait_for_set(*client, epoll, events, count, to_limit_ps(timeout), mask,
                      [&](const timespec* limit) { return real(epoll, events, count, limit, mask); });
}

}  // namespace apenet::shim
