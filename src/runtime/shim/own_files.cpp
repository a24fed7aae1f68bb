#include "runtime/shim/own_files.hpp"

#include <fcntl.h>
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
#include <ctime>
#include <string_view>

#include "runtime/ipc/single_threaded.hpp"
#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/family.hpp"
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

enum class FileKind : std::uint8_t { none, pipe, socket, eventfd };

// What the host calls a file.
struct FileName {
  FileKind kind = FileKind::none;
  std::uint64_t device = 0;
  std::uint64_t number = 0;
};

// One that the process has made. A reader sees `kind` last.
struct OwnFile {
  std::atomic<FileKind> kind{FileKind::none};
  std::atomic<std::uint64_t> device{0};
  std::atomic<std::uint64_t> number{0};
  std::atomic<std::uint64_t> other{0};      // key of the other socket of a pair; 0: there is none
  std::atomic<std::int64_t> made_ticks{0};  // since the host's start
  std::atomic<std::uint32_t> starts{0};     // number of started processes when certainly nobody else had it
  std::atomic<std::int64_t> found_ns{0};    // when another process was last seen to have it
};

// The newest of them; what is older is no longer known, and counts as shared.
constexpr std::size_t kept_files = 256;

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

std::string_view info_of(int process, int file, ProcessText& buffer) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/fdinfo/%d", process, file);
  return bytes_of(path, buffer);
}

// The number of an eventfd in what fdinfo shows; 0 if it shows none.
std::uint64_t eventfd_number(std::string_view info) {
  constexpr std::string_view key = "eventfd-id: ";
  const std::size_t at = info.find(key);
  if (at == std::string_view::npos) return 0;
  // The host counts from zero.
  return number_at<std::uint64_t>(info.data() + at + key.size(), info.data() + info.size()) + 1;
}

FileName name_of(int file) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0) return {};
  if (S_ISFIFO(status.st_mode)) return {FileKind::pipe, status.st_dev, status.st_ino};
  if (S_ISSOCK(status.st_mode)) return {FileKind::socket, status.st_dev, status.st_ino};
  if ((status.st_mode & S_IFMT) != 0) return {};
  ProcessText buffer;
  const std::uint64_t number = eventfd_number(info_of(getpid(), file, buffer));
  return number == 0 ? FileName{} : FileName{FileKind::eventfd, status.st_dev, number};
}

std::int64_t ticks_since_host_start() {
  timespec now{};
  host_call(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  const std::int64_t per_s = sysconf(_SC_CLK_TCK);
  return now.tv_sec * per_s + now.tv_nsec * per_s / 1'000'000'000;
}

void note_own_file(int file, int other = -1) {
  if (ipc::Client::run_made_at_s() == 0) return;
  const int error = errno;
  const FileName name = name_of(file);
  OwnFiles& all = own_files();
  OwnFile& own = all.files[all.made++ % kept_files];
  own.kind = FileKind::none;
  own.device = name.device;
  own.number = name.number;
  own.other = other < 0 ? 0 : name_of(other).number;
  own.made_ticks = ticks_since_host_start();
  own.starts = all.starts.load();
  own.kind = name.kind;
  errno = error;
}

void note_own_pair(const int* files) {
  note_own_file(files[0], files[1]);
  note_own_file(files[1], files[0]);
}

// The process has given them to another one, or is a fork.
void forget_own_files() {
  for (OwnFile& own : own_files().files) own.kind = FileKind::none;
  ++own_files().set_changes;
}

OwnFile* find_own(const FileName& name) {
  if (name.kind == FileKind::none) return nullptr;
  std::array<OwnFile, kept_files>& files = own_files().files;
  const auto* const end = files.data() + files.size();
  OwnFile* const found = std::find_if(files.data(), files.data() + files.size(), [&name](const OwnFile& own) {
    return own.kind == name.kind && own.number == name.number && own.device == name.device;
  });
  return found == end ? nullptr : found;
}

// Whether a link of /proc, as "pipe:[12]", names the file.
bool names(std::string_view link, std::string_view kind, std::uint64_t number) {
  if (number == 0 || !link.starts_with(kind)) return false;
  return number_at<std::uint64_t>(link.data() + kind.size(), link.data() + link.size()) == number;
}

bool has_file(int process, int descriptor, const OwnFile& own) {
  ProcessText buffer;
  const std::string_view link = link_of(process, static_cast<std::uint64_t>(descriptor), buffer);
  switch (own.kind) {
    case FileKind::pipe:
      return names(link, "pipe:[", own.number);
    case FileKind::socket:
      return names(link, "socket:[", own.number) || names(link, "socket:[", own.other);
    case FileKind::eventfd: {
      if (!link.starts_with("anon_inode:[eventfd]")) return false;
      ProcessText info;
      return eventfd_number(info_of(process, descriptor, info)) == own.number;
    }
    default:
      return true;
  }
}

// Whoever has inherited it was forked after it was made. counts_order: also processes that act in the order.
bool is_held_elsewhere(const OwnFile& own, bool counts_order = true) {
  bool is_held = false;
  for_numbers(ProcessPath{"/proc"}, [&](int process) {
    if (is_held || process == getpid()) return;
    if (!counts_order && thread_order().acts_in_order(static_cast<std::uint32_t>(process))) return;
    ProcessText buffer;
    const std::string_view began = stat_field(read_of(process, process, "stat", buffer), 22);
    if (number_at<std::int64_t>(began.data(), began.data() + began.size()) < own.made_ticks) return;
    ProcessPath folder;
    std::snprintf(folder.data(), folder.size(), "/proc/%d/fd", process);
    for_numbers(folder, [&](int descriptor) { is_held = is_held || has_file(process, descriptor, own); });
  });
  return is_held;
}

// Whether nobody else has it. A check costs some ms, so that one is not repeated at once.
bool is_unshared(OwnFile& own) {
  const std::uint32_t starts = own_files().starts;
  if (own.starts == starts) return true;
  constexpr std::int64_t least_ns = 100'000'000;
  if (own.found_ns != 0 && host_now_ns() - own.found_ns < least_ns) return false;
  if (is_held_elsewhere(own)) {
    own.found_ns = host_now_ns();
    return false;
  }
  own.found_ns = 0;
  own.starts = starts;
  return true;
}

bool is_of_order(const pollfd& file) {
  const OwnFile* const own = find_own(name_of(file.fd));
  return own != nullptr && own->kind != FileKind::eventfd && !is_held_elsewhere(*own, false);
}

// Or at its end: a read does not wait.
bool is_readable(int file) {
  pollfd polled{.fd = file, .events = POLLIN, .revents = 0};
  return host_call(SYS_poll, &polled, 1, 0) == 1;
}

bool is_own(int file, int depth);

// The descriptors of an epoll set, as fdinfo lists them, one a line.
bool are_members_own(int epoll, int depth) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", epoll);
  const int info = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (info < 0) return false;
  constexpr std::string_view key = "tfd:";
  ProcessText text;
  std::size_t kept = 0;
  bool are_own = true;
  for (int bytes = 1; are_own && bytes > 0;) {
    bytes = host_call(SYS_read, info, text.data() + kept, text.size() - kept);
    std::string_view left(text.data(), kept + static_cast<std::size_t>(std::max(bytes, 0)));
    for (std::size_t end = left.find('\n'); are_own && end != std::string_view::npos; end = left.find('\n')) {
      std::string_view line = left.substr(0, end);
      left.remove_prefix(end + 1);
      if (!line.starts_with(key)) continue;
      line.remove_prefix(std::min(line.find_first_not_of(' ', key.size()), line.size()));
      are_own = is_own(number_at<int>(line.data(), line.data() + line.size()), depth);
    }
    kept = left.size();
    if (kept == text.size()) are_own = false;
    std::memmove(text.data(), left.data(), kept);
  }
  host_call(SYS_close, info, 0);
  return are_own;
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
  constexpr int most_depth = 5;
  if (depth >= most_depth) return false;
  const OwnFiles& all = own_files();
  const KnownSet now{.epoll = epoll, .changes = all.set_changes, .starts = all.starts};
  KnownSet& known = known_set;
  const bool is_same =
      known.epoll == epoll && known.changes == now.changes && known.starts == now.starts && known.is_own;
  if (is_same) return true;
  const bool is_own = are_members_own(epoll, depth + 1);
  known = now;
  known.is_own = is_own;
  return is_own;
}

bool is_own(int file, int depth) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0) return false;
  if ((status.st_mode & S_IFMT) != 0) {
    OwnFile* const own =
        S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode) ? find_own(name_of(file)) : nullptr;
    return own != nullptr && is_unshared(*own);
  }
  ProcessText buffer;
  const std::string_view link = link_of(getpid(), static_cast<std::uint64_t>(file), buffer);
  if (link == "anon_inode:[eventpoll]") return is_own_set(file, depth);
  if (link == "anon_inode:[timerfd]") return timer_of_file(file) != nullptr;
  if (link == "anon_inode:[signalfd]") return !has_children();
  OwnFile* const own = link == "anon_inode:[eventfd]" ? find_own(name_of(file)) : nullptr;
  return own != nullptr && is_unshared(*own);
}

// Whether a call that reads the file returns at once.
bool does_not_wait(int file) {
  return (host_call(SYS_fcntl, file, F_GETFL) & O_NONBLOCK) != 0 || is_readable(file);
}

__attribute__((constructor)) void begin() {
  pthread_atfork(note_process_start, nullptr, forget_own_files);
}

}  // namespace

void note_process_start() {
  ++own_files().starts;
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

OrderedFileWait wait_for_order(ipc::Client& client, std::span<pollfd> files, std::int64_t until_ps) {
  ipc::ThreadOrder& order = thread_order();
  ipc::OrderedThread* const own = order.has_processes() ? ordered_thread() : nullptr;
  const bool has_timer = VirtualTimers::of_process().first_ps() != VirtualTimer::never_ps;
  if (own == nullptr || !order.has_started() || has_timer || files.empty()) return OrderedFileWait::in_host;
  const int error = errno;
  PolledFiles readiness(files);
  OrderedFileWait outcome = OrderedFileWait::in_host;
  bool is_known = false;  // that they are of the order, at `changes`
  std::uint32_t changes = 0;
  const auto are_of_order = [&] {
    if (is_known && changes == order.process_changes()) return true;
    changes = order.process_changes();
    is_known = std::all_of(files.begin(), files.end(), is_of_order);
    return is_known;
  };
  for (bool waits = true; waits;) {
    order.enter(*own);
    ipc::Woken woken = ipc::Woken::no;
    if (readiness.is_there()) {
      outcome = OrderedFileWait::ready;
    } else if (are_of_order()) {
      woken = order.block(*own, order.files(), until_ps, nullptr, ipc::WaitEnds::by_signal, &readiness);
      if (woken == ipc::Woken::timed_out) outcome = OrderedFileWait::timed_out;
      if (woken == ipc::Woken::interrupted) outcome = OrderedFileWait::interrupted;
    }
    if (woken == ipc::Woken::timed_out) client.pass_until_ps(own->key.clock_ps);
    order.leave(*own, !is_in_call());
    waits = woken == ipc::Woken::signalled;
  }
  errno = error;
  return outcome;
}

InsideWait::InsideWait(ipc::Client& /*client*/) {
  begin();
}

InsideWait::InsideWait(int file) {
  ipc::Client* client = ipc::Client::known();
  if (client != nullptr && thread_order().has_processes() && host_calls == 0 &&
      (host_call(SYS_fcntl, file, F_GETFL) & O_NONBLOCK) == 0 && find_own(name_of(file)) != nullptr) {
    pollfd one{.fd = file, .events = POLLIN, .revents = 0};
    wait_for_order(*client, {&one, 1}, ipc::OrderedThread::no_deadline_ps);
  }
  if (ipc::is_single_threaded()) return;
  const bool counts = client != nullptr && client->started() && host_calls == 0 && !reads_clock_free;
  if (!counts || !is_own_file(file)) return;
  own_ = ordered_thread();
  if (own_ == nullptr) return;
  const int error = errno;
  thread_order().enter(*own_);
  is_action_ = does_not_wait(file);
  if (!is_action_) thread_order().leave(*own_, !is_in_call());
  errno = error;
  if (!is_action_) begin();
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
  return real(epoll, operation, file, event);
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
  if (message != nullptr && message->msg_controllen > 0) forget_own_files();
  if (!await_socket(socket, POLLOUT, flags)) return -1;
  const FileChange change(socket, SIZE_MAX);  // its length is not known before it is read
  const HostPace pace(pacing_client());
  return real(socket, message, flags);
}

APENET_EXPORT int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  static const auto real = next<int (*)(int, mmsghdr*, unsigned, int)>("sendmmsg");
  for (unsigned i = 0; i < count && messages != nullptr; ++i) {
    if (messages[i].msg_hdr.msg_controllen > 0) forget_own_files();
  }
  return real(socket, messages, count, flags);
}

}  // namespace apenet::shim
