#include "runtime/shim/own_files.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>

#include "runtime/ipc/program_memory.hpp"
#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/file_names.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/socket_limits.hpp"
#include "runtime/shim/timer_files.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

struct OwnFile {
  ipc::MadeFile made;
  std::atomic<std::uint32_t> starts{0};   // number of started processes when certainly nobody else had it
  std::atomic<std::int64_t> found_ns{0};  // when another process was last seen to have it
  std::atomic<bool> is_published{false};  // to the processes of the order
  std::atomic<bool> is_named{false};      // other processes may come to it by its name
};

// The newest of them; what is older is no longer known, and counts as shared.
constexpr std::size_t kept_files = 256;
constexpr std::string_view signal_link = "anon_inode:[signalfd]";

struct OwnFiles {
  std::array<OwnFile, kept_files> files;
  std::atomic<std::uint32_t> made{0};
  std::atomic<std::uint32_t> starts{0};       // number of started processes
  std::atomic<std::uint32_t> set_changes{0};  // number of changes of epoll sets
};

OwnFiles& own_files() {
  static constinit OwnFiles value;
  return value;
}

void note_own_file(int file, int other = -1, bool is_named = false) {
  if (ipc::Client::run_made_at_s() == 0) return;
  const int error = errno;
  OwnFiles& all = own_files();
  OwnFile& own = all.files[all.made++ % kept_files];
  note_made(own.made, file, other);
  own.starts = all.starts.load();
  own.is_published = false;
  own.is_named = is_named;
  errno = error;
}

void note_own_pair(const int* files) {
  note_own_file(files[0], files[1]);
  note_own_file(files[1], files[0]);
}

// The process has given them to another one, or is a fork.
void forget_own_files() {
  for (OwnFile& own : own_files().files) own.made.kind = ipc::FileKind::none;
  ++own_files().set_changes;
}

OwnFile* find_own(const ipc::FileName& name) {
  if (name.kind == ipc::FileKind::none) return nullptr;
  std::array<OwnFile, kept_files>& files = own_files().files;
  const auto* const end = files.data() + files.size();
  OwnFile* const found = std::find_if(files.data(), files.data() + files.size(),
                                      [&name](const OwnFile& own) { return own.made.is(name); });
  return found == end ? nullptr : found;
}

// Whether nobody else has it. A check costs some ms, so that one is not repeated at once.
bool is_unshared(OwnFile& own) {
  if (own.is_named) return false;
  const std::uint32_t starts = own_files().starts;
  if (own.starts == starts) return true;
  constexpr std::int64_t least_ns = 100'000'000;
  if (own.found_ns != 0 && host_now_ns() - own.found_ns < least_ns) return false;
  if (is_held_elsewhere(own.made, true)) {
    own.found_ns = host_now_ns();
    return false;
  }
  own.found_ns = 0;
  own.starts = starts;
  return true;
}

// Or at its end: a read does not wait.
bool is_readable(int file) {
  pollfd polled{.fd = file, .events = POLLIN, .revents = 0};
  return ipc::poll_now(&polled, 1) == 1;
}

bool is_own(int file, int depth);

constexpr int most_depth = 5;  // sets in sets

// Whether each descriptor of an epoll set fits: fdinfo lists them, one a line.
bool do_members_fit(int epoll, int depth, bool (*fits)(int file, int depth)) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", epoll);
  const int info = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (info < 0) return false;
  constexpr std::string_view key = "tfd:";
  ProcessText text;
  std::size_t kept = 0;
  bool do_fit = true;
  for (int bytes = 1; do_fit && bytes > 0;) {
    bytes = host_call(SYS_read, info, text.data() + kept, text.size() - kept);
    std::string_view left(text.data(), kept + static_cast<std::size_t>(std::max(bytes, 0)));
    for (std::size_t end = left.find('\n'); do_fit && end != std::string_view::npos; end = left.find('\n')) {
      std::string_view line = left.substr(0, end);
      left.remove_prefix(end + 1);
      if (!line.starts_with(key)) continue;
      line.remove_prefix(std::min(line.find_first_not_of(' ', key.size()), line.size()));
      do_fit = fits(number_at<int>(line.data(), line.data() + line.size()), depth);
    }
    kept = left.size();
    if (kept == text.size()) do_fit = false;
    std::memmove(text.data(), left.data(), kept);
  }
  host_call(SYS_close, info, 0);
  return do_fit;
}

// What was last found of an epoll set: programs ask for its events more often than they change it.
struct KnownSet {
  int epoll = -1;
  std::uint32_t changes = 0;
  std::uint32_t starts = 0;
  bool is_own = false;
};

constinit thread_local KnownSet known_set __attribute__((tls_model("initial-exec")));

bool is_own_set(int epoll, int depth) {
  if (depth >= most_depth || has_simulated_sockets(epoll)) return false;
  const OwnFiles& all = own_files();
  const KnownSet now{.epoll = epoll, .changes = all.set_changes, .starts = all.starts};
  KnownSet& known = known_set;
  const bool is_same =
      known.epoll == epoll && known.changes == now.changes && known.starts == now.starts && known.is_own;
  if (is_same) return true;
  const bool are_own = do_members_fit(epoll, depth + 1, is_own);
  known = now;
  known.is_own = are_own;
  return are_own;
}

bool is_own(int file, int depth) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0) return false;
  if ((status.st_mode & S_IFMT) != 0) {
    OwnFile* const own =
        S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) ? find_own(name_of_file(file)) : nullptr;
    return own != nullptr && is_unshared(*own);
  }
  ProcessText buffer;
  const std::string_view link = link_of(getpid(), static_cast<std::uint64_t>(file), buffer);
  if (link == "anon_inode:[eventpoll]") return is_own_set(file, depth);
  if (link == "anon_inode:[timerfd]") return timer_of_file(file) != nullptr;
  if (link == signal_link) return !has_children() && !thread_order().has_processes();
  OwnFile* const own = link == "anon_inode:[eventfd]" ? find_own(name_of_file(file)) : nullptr;
  return own != nullptr && is_unshared(*own);
}

bool is_of_process_or_order(int file, int depth) {
  if (is_of_order(file)) return true;
  ProcessText buffer;
  const std::string_view link = link_of(getpid(), static_cast<std::uint64_t>(file), buffer);
  if (link != "anon_inode:[eventpoll]") return is_own(file, depth);
  return depth < most_depth && !has_simulated_sockets(file) &&
         do_members_fit(file, depth + 1, is_of_process_or_order);
}

// A message gives descriptors to the process at the other end of the socket.
void give_files(int socket) {
  forget_passed_files(socket);
  forget_own_files();
}

// Whether a call that reads the file returns at once.
bool does_not_wait(int file) {
  return is_nonblocking(file) || is_readable(file);
}

__attribute__((constructor)) void begin() {
  pthread_atfork(note_process_start, nullptr, forget_own_files);
}

}  // namespace

void note_process_start() {
  ++own_files().starts;
  thread_order().note_start();
}

void for_unpublished_files(void (*use)(const ipc::MadeFile& made)) {
  for (OwnFile& own : own_files().files) {
    if (own.made.kind != ipc::FileKind::none && !own.is_published.exchange(true)) use(own.made);
  }
}

bool is_unix_socket(int file) {
  int domain = 0;
  socklen_t bytes = sizeof domain;
  const int error = host_call(SYS_getsockopt, file, SOL_SOCKET, std::uint64_t{SO_DOMAIN}, &domain,
                              reinterpret_cast<std::uint64_t>(&bytes));
  return error == 0 && domain == AF_UNIX;
}

void note_listening_socket(int socket) {
  note_own_file(socket, -1, true);
  if (thread_order().has_processes()) publish_own_files();
}

void note_connected_socket(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  const int error = errno;
  const bool is_known = host_call(SYS_getsockopt, socket, SOL_SOCKET, std::uint64_t{SO_PEERCRED}, &peer,
                                  reinterpret_cast<std::uint64_t>(&bytes)) == 0;
  errno = error;
  const auto process = static_cast<std::uint32_t>(peer.pid);
  const bool is_of_order = is_known && peer.pid > 0 && thread_order().has_processes() &&
                           thread_order().knows_process(process) && thread_order().acts_in_order(process);
  if (is_of_order) note_listening_socket(socket);
}

bool is_signal_file(int file) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0 || (status.st_mode & S_IFMT) != 0) return false;
  ProcessText buffer;
  return link_of(getpid(), static_cast<std::uint64_t>(file), buffer) == signal_link;
}

bool is_of_process_or_order(int file) {
  const int error = errno;
  const bool is = is_of_process_or_order(file, 0);
  errno = error;
  return is;
}

bool is_own_file(int file) {
  const int error = errno;
  const bool is = is_own(file, 0);
  errno = error;
  return is;
}

bool are_own_files(std::span<const pollfd> files) {
  const bool any = std::any_of(files.begin(), files.end(), [](const pollfd& one) { return one.fd >= 0; });
  return any && std::all_of(files.begin(), files.end(),
                            [](const pollfd& one) { return one.fd < 0 || is_own_file(one.fd); });
}

InsideWait::InsideWait(ipc::Client& /*client*/) {
  begin();
}

InsideWait::InsideWait(int file) {
  ipc::Client* client = ipc::Client::known();
  if (client != nullptr && host_calls == 0 && is_of_order(file)) {
    pollfd one{.fd = file, .events = POLLIN, .revents = 0};
    ordered_.emplace(std::span(&one, 1),
                     is_nonblocking(file) ? OrderedFiles::at_once : ipc::OrderedThread::no_deadline_ps,
                     OrderedFiles::Use::change);
    if (ordered_->outcome() != OrderedFiles::Outcome::in_host) return;
  }
  if (ipc::is_single_threaded()) return;
  const bool counts = client != nullptr && client->started() && host_calls == 0 && !reads_clock_free;
  if (!counts || !is_own_file(file)) return;
  own_ = ordered_thread();
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().enter(*own_);
  is_action_ = does_not_wait(file);
  // A signal of a timer may have to end the wait.
  const bool has_timer = VirtualTimers::of_process().first_ps() != VirtualTimer::never_ps;
  is_at_file_ = !is_action_ && !has_timer && thread_order().leave_to_file(*own_);
  if (!is_action_ && !is_at_file_) thread_order().leave(*own_, !is_in_call());
  errno = error;
  if (!is_action_ && !is_at_file_) begin();
}

void InsideWait::begin() {
  own_ = ordered_thread();
  if (own_ == nullptr) return;
  if (VirtualTimers::of_process().first_ps() != VirtualTimer::never_ps) {
    thread_order().expect_outside(*own_, false);
  } else {
    thread_order().go_outside(*own_, false);
  }
}

InsideWait::~InsideWait() {
  if (own_ == nullptr) return;
  const int error = errno;
  if (is_action_) {
    thread_order().leave(*own_, !is_in_call());
  } else if (is_at_file_) {
    thread_order().come_from_file_wait(*own_);
  } else {
    thread_order().come_inside(*own_);
  }
  errno = error;
}

APENET_EXPORT int pipe(int* files) noexcept {
  static const auto real = next<int (*)(int*)>("pipe");
  const int result = real(files);
  if (result == 0) note_own_file(files[0]);
  return result;
}

APENET_EXPORT int pipe2(int* files, int flags) noexcept {
  static const auto real = next<int (*)(int*, int)>("pipe2");
  const int result = real(files, flags);
  if (result == 0) note_own_file(files[0]);
  return result;
}

APENET_EXPORT int socketpair(int domain, int type, int protocol, int* files) noexcept {
  static const auto real = next<int (*)(int, int, int, int*)>("socketpair");
  const int result = real(domain, type, protocol, files);
  if (result == 0) note_own_pair(files);
  return result;
}

APENET_EXPORT int eventfd(unsigned count, int flags) noexcept {
  static const auto real = next<int (*)(unsigned, int)>("eventfd");
  const int file = real(count, flags);
  if (file >= 0) note_own_file(file);
  return file;
}

APENET_EXPORT int epoll_ctl(int epoll, int operation, int file, epoll_event* event) noexcept {
  static const auto real = next<int (*)(int, int, int, epoll_event*)>("epoll_ctl");
  ++own_files().set_changes;
  const int result = real(epoll, operation, file, event);
  const int error = errno;
  if (ipc::Client* const client = virtual_client(); client != nullptr && result == 0)
    client->tell_readers(ipc::ThreadOrder::Readers::all);
  errno = error;
  return result;
}

APENET_EXPORT int epoll_create(int size) noexcept {
  static const auto real = next<int (*)(int)>("epoll_create");
  ++own_files().set_changes;
  return real(size);
}

APENET_EXPORT int epoll_create1(int flags) noexcept {
  static const auto real = next<int (*)(int)>("epoll_create1");
  ++own_files().set_changes;
  return real(flags);
}

// A message may carry descriptors to another process.
APENET_EXPORT ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto real = next<ssize_t (*)(int, const msghdr*, int)>("sendmsg");
  if (ipc::is_readable(message, sizeof *message) && message->msg_controllen > 0) give_files(socket);
  if (!await_socket(socket, POLLOUT, message, flags)) return -1;
  constexpr std::size_t unknown = SIZE_MAX;  // before it is read
  const auto write = [&](std::size_t /*from*/, std::size_t /*bytes*/) {
    return real(socket, message, flags);
  };
  if (const auto done = write_in_order(socket, unknown, false, write)) return *done;
  const FileChange change(socket, unknown);
  const HostPace pace(pacing_client());
  return real(socket, message, flags);
}

APENET_EXPORT int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  static const auto real = next<int (*)(int, mmsghdr*, unsigned, int)>("sendmmsg");
  const unsigned most = std::min<unsigned>(count, IOV_MAX);  // which the host takes of more
  for (unsigned i = 0; i < most && ipc::is_readable(&messages[i], sizeof messages[i]); ++i) {
    if (messages[i].msg_hdr.msg_controllen > 0) give_files(socket);
  }
  return real(socket, messages, count, flags);
}

}  // namespace apenet::shim
