// Waits for files of which some are simulated sockets. Those of the host are asked whenever the process
// wakes; if one is ready, the wait in the simulator is cancelled.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "api/sockets/calls.hpp"
#include "api/sockets/epoll_sets.hpp"
#include "api/sockets/library_checks.hpp"
#include "api/sockets/program_memory.hpp"
#include "api/sockets/signals.hpp"
#include "api/sockets/simulated_socket.hpp"
#include "runtime/ipc/inside.hpp"

namespace apenet::sockets {
namespace {

using ipc::SocketPoll;

constexpr std::int64_t longest_s = 4'000'000;  // the end of virtual time is behind it

// -1: for ever; empty: EINVAL.
std::optional<std::int64_t> to_ps(const timespec* limit) {
  if (limit == nullptr) return -1;
  if (limit->tv_sec < 0 || limit->tv_nsec < 0 || limit->tv_nsec >= ps_per_s / ps_per_ns) return std::nullopt;
  return std::min<std::int64_t>(limit->tv_sec, longest_s) * ps_per_s + limit->tv_nsec * ps_per_ns;
}
std::optional<std::int64_t> to_ps(const timeval* limit) {
  if (limit == nullptr) return -1;
  if (limit->tv_sec < 0 || limit->tv_usec < 0) return std::nullopt;
  const std::int64_t seconds = limit->tv_sec + limit->tv_usec / us_per_s;
  return std::min(seconds, longest_s) * ps_per_s + limit->tv_usec % us_per_s * ps_per_us;
}
std::int64_t to_ps(int timeout_ms) {
  return timeout_ms < 0 ? -1 : timeout_ms * ps_per_ms;
}

int poll_host(pollfd* files, std::size_t count) {
  static const auto real = next<decltype(&::poll)>("poll");
  return real(files, count, 0);
}

// Asks and waits. Returns the number of ready sockets, or a negative errno; the host's files are as poll()
// leaves them. stops(): see Caller::call().
template <typename Stops>
std::int64_t await(std::string_view name, std::vector<SocketPoll>& sockets, std::vector<pollfd>& host,
                   std::int64_t most_ps, Stops stops) {
  Caller* const caller = Caller::instance();
  if (caller == nullptr) return -EBADF;
  const bool host_is_ready = !host.empty() && poll_host(host.data(), host.size()) != 0;
  LibraryChecks checks(caller->client(), most_ps);
  if (checks.is_needless()) return 0;
  ipc::SocketCall call{.verb = ipc::SocketVerb::poll};
  if (host_is_ready || (most_ps == 0 && !checks.waits())) call.flags = ipc::no_wait;
  call.most_ps = checks.waits() ? -1 : most_ps;
  const auto is_over = [&] {
    return stops() || checks.is_over() || (!host.empty() && poll_host(host.data(), host.size()) != 0);
  };
  const std::int64_t result =
      caller->call(name, call, sockets.data(), sockets.size() * sizeof(SocketPoll), {}, is_over).result;
  checks.note_result(result);
  const bool has_host = result == -EINTR && !host.empty() && poll_host(host.data(), host.size()) != 0;
  return has_host ? 0 : result;
}

int poll_mixed(pollfd* files, nfds_t count, std::int64_t most_ps) {
  std::vector<SocketPoll> sockets;
  std::vector<pollfd> host;
  for (nfds_t i = 0; i < count; ++i) {
    if (const auto socket = known_socket(files[i].fd)) {
      sockets.push_back({.socket = socket->number, .events = files[i].events});
    } else if (files[i].fd >= 0) {
      host.push_back(files[i]);
    }
  }
  const std::int64_t result = await("poll", sockets, host, most_ps, [] { return false; });
  if (result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  std::size_t next_socket = 0;
  std::size_t next_host = 0;
  int ready = 0;
  for (nfds_t i = 0; i < count; ++i) {
    files[i].revents = 0;
    if (is_simulated(files[i].fd)) {
      files[i].revents = sockets[next_socket++].revents;
    } else if (files[i].fd >= 0) {
      files[i].revents = host[next_host++].revents;
    }
    if (files[i].revents != 0) ++ready;
  }
  return ready;
}

bool any_simulated(const pollfd* files, nfds_t count) {
  return files != nullptr &&
         std::any_of(files, files + count, [](const pollfd& one) { return is_simulated(one.fd); });
}

// What a call may leave out. Of a mask the kernel has this much.
template <typename Limit>
bool are_given(const Limit* limit, const sigset_t* mask) {
  constexpr std::size_t kernel_set_bytes = 8;
  return ipc::is_readable_or_none(limit) && (mask == nullptr || is_readable(mask, kernel_set_bytes));
}

// A mask of signals holds during the whole call.
class Masked {
 public:
  explicit Masked(const sigset_t* mask) : is_set_(mask != nullptr), handled_(signal_counts().handled) {
    if (is_set_) pthread_sigmask(SIG_SETMASK, mask, &before_);
  }
  ~Masked() {
    if (is_set_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Masked(const Masked&) = delete;
  Masked& operator=(const Masked&) = delete;

  // The mask may have let in signals that were pending: the wait then only checks.
  template <typename Wait>
  int wait(std::int64_t most_ps, Wait wait) const {
    if (signal_counts().handled == handled_) return wait(most_ps);
    const int result = wait(0);
    if (result != 0) return result;
    errno = EINTR;
    return -1;
  }

 private:
  bool is_set_;
  std::uint64_t handled_;
  sigset_t before_{};
};

struct Sets {
  fd_set* reads;
  fd_set* writes;
  fd_set* errors;
};

bool has(const fd_set* set, int file) {
  return set != nullptr && FD_ISSET(file, set);
}

// The host reports sets that are none, and uses no more of them than stands for so many files.
bool any_simulated(int count, const Sets& sets) {
  constexpr std::size_t word_bits = 8 * sizeof(std::uint64_t);
  const auto files = static_cast<std::size_t>(std::clamp(count, 0, FD_SETSIZE));
  const std::size_t bytes = (files + word_bits - 1) / word_bits * sizeof(std::uint64_t);
  for (const fd_set* const set : {sets.reads, sets.writes, sets.errors}) {
    if (set != nullptr && bytes > 0 && !ipc::is_readable(set, bytes)) return false;
  }
  for (int file = 0; file < std::min(count, FD_SETSIZE); ++file) {
    if ((has(sets.reads, file) || has(sets.writes, file) || has(sets.errors, file)) && is_simulated(file))
      return true;
  }
  return false;
}

int select_mixed(int count, const Sets& sets, std::int64_t most_ps) {
  std::vector<pollfd> files;
  for (int file = 0; file < std::min(count, FD_SETSIZE); ++file) {
    int events = 0;
    if (has(sets.reads, file)) events |= POLLIN;
    if (has(sets.writes, file)) events |= POLLOUT;
    if (has(sets.errors, file)) events |= POLLPRI;
    if (events != 0) files.push_back({.fd = file, .events = static_cast<short>(events), .revents = 0});
  }
  if (poll_mixed(files.data(), files.size(), most_ps) < 0) return -1;
  int ready = 0;
  const auto keep = [&](fd_set* set, const pollfd& file, int events) {
    if (!has(set, file.fd)) return;
    if ((file.revents & events) != 0) {
      ++ready;
    } else {
      FD_CLR(file.fd, set);
    }
  };
  for (const pollfd& file : files) {
    keep(sets.reads, file, POLLIN | POLLHUP | POLLERR);
    keep(sets.writes, file, POLLOUT | POLLERR);
    keep(sets.errors, file, POLLPRI);
  }
  return ready;
}

// A simulated socket in an epoll set.
struct Interest {
  std::uint32_t number = 0;
  epoll_event event{};
  bool is_off = false;               // EPOLLONESHOT has reported it
  std::uint64_t skips = UINT64_MAX;  // EPOLLET: SocketPoll::changes at the last report
};

struct EpollSet {
  std::map<int, Interest> sockets;  // by descriptor
  std::uint64_t version = 0;
  int next = 0;  // descriptor with which the next report begins, so that none waits for ever
};

struct EpollSets {
  SpinLock mutex;
  std::map<int, EpollSet> sets;  // by descriptor
};

// Whether there are any. Allocators close files while they hold their locks, and must not be asked for
// memory.
std::atomic<bool>& has_epoll_sets() {
  static constinit std::atomic<bool> value{false};
  return value;
}

EpollSets& epoll_sets() {
  static EpollSets& value = *new EpollSets;
  return value;
}

bool has_sockets(int epoll) {
  if (!has_epoll_sets()) return false;
  const std::scoped_lock lock(epoll_sets().mutex);
  return epoll_sets().sets.contains(epoll);
}

// The host finds what is wrong with a call: a stand-in is in no set, so nothing is changed. 0, or errno.
int error_of_control(int epoll, int operation, int file, const epoll_event* event) {
  static const auto real = next<decltype(&::epoll_ctl)>("epoll_ctl");
  epoll_event copy{};
  const bool has_event = operation != EPOLL_CTL_DEL;
  if (has_event && !copy_in(&copy, event, sizeof copy)) return EFAULT;
  const bool is_operation =
      operation == EPOLL_CTL_ADD || operation == EPOLL_CTL_MOD || operation == EPOLL_CTL_DEL;
  real(epoll, is_operation ? EPOLL_CTL_DEL : operation, file, &copy);
  return errno == ENOENT ? 0 : errno;
}

int control_set(int epoll, int operation, int file, const epoll_event* event) {
  const int before = errno;
  if (const int error = error_of_control(epoll, operation, file, event); error != 0) return fail(error);
  errno = before;
  const auto socket = known_socket(file);
  has_epoll_sets() = true;
  const std::scoped_lock lock(epoll_sets().mutex);
  EpollSet& set = epoll_sets().sets[epoll];
  const auto found = set.sockets.find(file);
  const bool is_new = operation == EPOLL_CTL_ADD;
  if (is_new == (found != set.sockets.end())) {
    errno = is_new ? EEXIST : ENOENT;
    return -1;
  }
  ++set.version;
  if (operation == EPOLL_CTL_DEL) {
    set.sockets.erase(found);
  } else {
    set.sockets[file] = {.number = socket->number, .event = *event};
  }
  return 0;
}

int wait_for_set(int epoll, epoll_event* events, int count, std::int64_t most_ps) {
  // Not epoll_wait(): the shim's calls epoll_pwait() by its name, which is the one below.
  static const auto real = next<decltype(&::epoll_pwait)>("epoll_pwait");
  Caller* const caller = Caller::instance();
  if (caller == nullptr || count <= 0) return fail(EINVAL);
  const std::int64_t began_ps = caller->client().clock_ps();
  for (;;) {
    std::vector<SocketPoll> sockets;
    std::vector<int> files;
    std::uint64_t version = 0;
    {
      const std::scoped_lock lock(epoll_sets().mutex);
      const EpollSet& set = epoll_sets().sets[epoll];
      version = set.version;
      const auto add = [&](const auto& entry) {
        const Interest& interest = entry.second;
        if (interest.is_off) return;
        sockets.push_back({.socket = interest.number,
                           .events = static_cast<std::int16_t>(interest.event.events & 0x3fffU),
                           .skips = interest.skips});
        files.push_back(entry.first);
      };
      const auto middle = set.sockets.lower_bound(set.next);
      std::for_each(middle, set.sockets.end(), add);
      std::for_each(set.sockets.begin(), middle, add);
    }
    std::vector<pollfd> host = {{.fd = epoll, .events = POLLIN, .revents = 0}};
    const auto has_changed = [&] {
      const std::scoped_lock lock(epoll_sets().mutex);
      return epoll_sets().sets[epoll].version != version;
    };
    const std::int64_t left_ps =
        most_ps <= 0 ? most_ps
                     : std::max<std::int64_t>(0, most_ps - (caller->client().clock_ps() - began_ps));
    const std::int64_t result = await("epoll_wait", sockets, host, left_ps, has_changed);
    if (result < 0) {
      errno = static_cast<int>(-result);
      return -1;
    }
    int ready = host[0].revents != 0 ? std::max(0, real(epoll, events, count, 0, nullptr)) : 0;
    // An action: the order of the threads decides which of them reports a socket.
    const ipc::Inside inside(caller->client());
    const std::scoped_lock lock(epoll_sets().mutex);
    EpollSet& set = epoll_sets().sets[epoll];
    bool is_reported_elsewhere = false;  // by another thread's wait
    for (std::size_t i = 0; i < sockets.size() && ready < count; ++i) {
      const auto found = set.sockets.find(files[i]);
      if (sockets[i].revents == 0 || found == set.sockets.end()) continue;
      Interest& interest = found->second;
      const bool is_edge = (interest.event.events & EPOLLET) != 0;
      if (interest.is_off || (is_edge && interest.skips == sockets[i].changes)) {
        is_reported_elsewhere = true;
        continue;
      }
      const epoll_event found_event{.events = static_cast<std::uint16_t>(sockets[i].revents),
                                    .data = interest.event.data};
      if (!copy_out(events + ready, &found_event, sizeof found_event))
        return ready > 0 ? ready : fail(EFAULT);
      ++ready;
      if (is_edge) interest.skips = sockets[i].changes;
      if ((interest.event.events & EPOLLONESHOT) != 0) interest.is_off = true;
      set.next = files[i] + 1;
    }
    const bool is_over = most_ps >= 0 && caller->client().clock_ps() - began_ps >= most_ps;
    if (ready > 0 || most_ps == 0 || is_over) return ready;
    if (set.version == version && host[0].revents == 0 && !is_reported_elsewhere) return 0;
  }
}

// Linux's select() leaves what is left of its limit to the program.
class TimeLeft {
 public:
  TimeLeft(timeval* limit, std::int64_t limit_ps) : limit_(limit), limit_ps_(limit_ps), began_ps_(now_ps()) {}
  ~TimeLeft() {
    if (limit_ == nullptr) return;
    constexpr std::int64_t ps_per_us = 1'000'000;
    constexpr std::int64_t us_per_s = 1'000'000;
    const std::int64_t left_us = std::max<std::int64_t>(limit_ps_ - (now_ps() - began_ps_), 0) / ps_per_us;
    *limit_ = {.tv_sec = left_us / us_per_s, .tv_usec = left_us % us_per_s};
  }
  TimeLeft(const TimeLeft&) = delete;
  TimeLeft& operator=(const TimeLeft&) = delete;

 private:
  static std::int64_t now_ps() {
    Caller* const caller = Caller::instance();
    return caller == nullptr ? 0 : caller->client().clock_ps();
  }

  timeval* limit_;
  std::int64_t limit_ps_;
  std::int64_t began_ps_;
};

}  // namespace

void forget_in_epoll_sets(int file) {
  if (!has_epoll_sets()) return;
  const std::scoped_lock lock(epoll_sets().mutex);
  for (auto& [epoll, set] : epoll_sets().sets) {
    if (set.sockets.erase(file) > 0) ++set.version;
  }
}

void forget_epoll_set(int epoll) {
  if (!has_epoll_sets()) return;
  const std::scoped_lock lock(epoll_sets().mutex);
  epoll_sets().sets.erase(epoll);
}

APENET_SOCKETS_EXPORT int poll(pollfd* files, nfds_t count, int timeout_ms) {
  static const auto real = next<decltype(&::poll)>("poll");
  if (!is_readable(files, count * sizeof *files)) return fail(EFAULT);
  if (!any_simulated(files, count)) return real(files, count, timeout_ms);
  const CalledFrom here(__builtin_return_address(0));
  return poll_mixed(files, count, to_ps(timeout_ms));
}

APENET_SOCKETS_EXPORT int __poll_chk(pollfd* files, nfds_t count, int timeout_ms, std::size_t bytes) {
  static const auto real = next<int (*)(pollfd*, nfds_t, int, std::size_t)>("__poll_chk");
  if (bytes / sizeof *files < count || !any_simulated(files, count))
    return real(files, count, timeout_ms, bytes);
  return poll_mixed(files, count, to_ps(timeout_ms));
}

APENET_SOCKETS_EXPORT int ppoll(pollfd* files, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  static const auto real = next<decltype(&::ppoll)>("ppoll");
  if (!is_readable(files, count * sizeof *files)) return fail(EFAULT);
  if (!any_simulated(files, count)) return real(files, count, timeout, mask);
  if (!are_given(timeout, mask)) return fail(EFAULT);
  const std::optional<std::int64_t> limit_ps = to_ps(timeout);
  if (!limit_ps) return fail(EINVAL);
  const Masked masked(mask);
  return masked.wait(*limit_ps, [&](std::int64_t most_ps) { return poll_mixed(files, count, most_ps); });
}

APENET_SOCKETS_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  static const auto real = next<decltype(&::select)>("select");
  const Sets sets{reads, writes, errors};
  if (!any_simulated(count, sets)) return real(count, reads, writes, errors, timeout);
  if (!are_given(timeout, nullptr)) return fail(EFAULT);
  const std::optional<std::int64_t> most_ps = to_ps(timeout);
  if (!most_ps || count < 0) return fail(EINVAL);
  const TimeLeft left(timeout, *most_ps);
  return select_mixed(count, sets, *most_ps);
}

APENET_SOCKETS_EXPORT int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors,
                                  const timespec* timeout, const sigset_t* mask) {
  static const auto real = next<decltype(&::pselect)>("pselect");
  const Sets sets{reads, writes, errors};
  if (!any_simulated(count, sets)) return real(count, reads, writes, errors, timeout, mask);
  if (!are_given(timeout, mask)) return fail(EFAULT);
  const std::optional<std::int64_t> limit_ps = to_ps(timeout);
  if (!limit_ps || count < 0) return fail(EINVAL);
  const Masked masked(mask);
  return masked.wait(*limit_ps, [&](std::int64_t most_ps) { return select_mixed(count, sets, most_ps); });
}

APENET_SOCKETS_EXPORT int epoll_ctl(int epoll, int operation, int file, epoll_event* event) noexcept {
  static const auto real = next<decltype(&::epoll_ctl)>("epoll_ctl");
  if (!is_simulated(file)) return real(epoll, operation, file, event);
  const int result = control_set(epoll, operation, file, event);
  const int error = errno;
  if (Caller* const caller = result == 0 ? Caller::instance() : nullptr; caller != nullptr)
    caller->client().tell_readers(ipc::ThreadOrder::Readers::all);
  errno = error;
  return result;
}

// The shim calls these (runtime/shim/own_files.hpp).
APENET_SOCKETS_EXPORT bool apenet_set_has_sockets(int epoll) {
  return has_sockets(epoll);
}

APENET_SOCKETS_EXPORT int apenet_wait_for_set(int epoll, epoll_event* events, int count, std::int64_t most_ps,
                                              const sigset_t* mask) {
  const Masked masked(mask);
  return masked.wait(most_ps,
                     [&](std::int64_t left_ps) { return wait_for_set(epoll, events, count, left_ps); });
}

APENET_SOCKETS_EXPORT int epoll_wait(int epoll, epoll_event* events, int count, int timeout_ms) {
  static const auto real = next<decltype(&::epoll_wait)>("epoll_wait");
  if (!has_sockets(epoll)) return real(epoll, events, count, timeout_ms);
  const CalledFrom here(__builtin_return_address(0));
  return wait_for_set(epoll, events, count, to_ps(timeout_ms));
}

APENET_SOCKETS_EXPORT int epoll_pwait(int epoll, epoll_event* events, int count, int timeout_ms,
                                      const sigset_t* mask) {
  static const auto real = next<decltype(&::epoll_pwait)>("epoll_pwait");
  if (!has_sockets(epoll)) return real(epoll, events, count, timeout_ms, mask);
  if (!are_given<timespec>(nullptr, mask)) return fail(EFAULT);
  const Masked masked(mask);
  return masked.wait(to_ps(timeout_ms),
                     [&](std::int64_t most_ps) { return wait_for_set(epoll, events, count, most_ps); });
}

APENET_SOCKETS_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* timeout,
                                       const sigset_t* mask) {
  static const auto real = next<decltype(&::epoll_pwait2)>("epoll_pwait2");
  if (!has_sockets(epoll)) return real(epoll, events, count, timeout, mask);
  if (!are_given(timeout, mask)) return fail(EFAULT);
  const std::optional<std::int64_t> limit_ps = to_ps(timeout);
  if (!limit_ps) return fail(EINVAL);
  const Masked masked(mask);
  return masked.wait(*limit_ps,
                     [&](std::int64_t most_ps) { return wait_for_set(epoll, events, count, most_ps); });
}

}  // namespace apenet::sockets
