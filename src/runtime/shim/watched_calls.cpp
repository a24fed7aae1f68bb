#if defined(__x86_64__)

#include "runtime/shim/watched_calls.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/program_memory.hpp"
#include "runtime/shim/checked_calls.hpp"
#include "runtime/shim/family.hpp"
#include "runtime/shim/fruitless_sleeps.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/process_files.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;
using ipc::OutsideCause;

// What a call may ask.
enum class Question : std::uint8_t {
  file,      // whether a file is there, or how it is
  change,    // nothing if it succeeds: it changes a file
  creation,  // nothing if it succeeds: it makes a file
  opening,   // nothing if it succeeds
};

// Memory, the thread and its process, signals, clocks, writes, and sockets. The shim replaces the functions
// for the waits and for what comes from sockets.
constexpr auto asking_nothing = std::to_array<int>({
    SYS_write,
    SYS_close,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_brk,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_pwrite64,
    SYS_writev,
    SYS_pipe,
    SYS_sched_yield,
    SYS_mremap,
    SYS_msync,
    SYS_mincore,
    SYS_madvise,
    SYS_shmat,
    SYS_dup,
    SYS_dup2,
    SYS_getitimer,
    SYS_alarm,
    SYS_setitimer,
    SYS_getpid,
    SYS_sendfile,
    SYS_socket,
    SYS_connect,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_shutdown,
    SYS_bind,
    SYS_listen,
    SYS_getsockname,
    SYS_getpeername,
    SYS_socketpair,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_kill,
    SYS_uname,
    SYS_shmdt,
    SYS_msgsnd,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_getcwd,
    SYS_fchdir,
    SYS_fchmod,
    SYS_fchown,
    SYS_umask,
    SYS_gettimeofday,
    SYS_getrlimit,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_times,
    SYS_getuid,
    SYS_syslog,
    SYS_getgid,
    SYS_setuid,
    SYS_setgid,
    SYS_geteuid,
    SYS_getegid,
    SYS_setpgid,
    SYS_getppid,
    SYS_getpgrp,
    SYS_setsid,
    SYS_getgroups,
    SYS_getresuid,
    SYS_getresgid,
    SYS_capget,
    SYS_capset,
    SYS_rt_sigpending,
    SYS_rt_sigqueueinfo,
    SYS_sigaltstack,
    SYS_personality,
    SYS_setpriority,
    SYS_sched_setparam,
    SYS_sched_setscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_mlock,
    SYS_munlock,
    SYS_mlockall,
    SYS_munlockall,
    SYS_prctl,
    SYS_arch_prctl,
    SYS_setrlimit,
    SYS_sync,
    SYS_gettid,
    SYS_readahead,
    SYS_fsetxattr,
    SYS_tkill,
    SYS_time,
    SYS_sched_setaffinity,
    SYS_sched_getaffinity,
    SYS_epoll_create,
    SYS_remap_file_pages,
    SYS_set_tid_address,
    SYS_restart_syscall,
    SYS_fadvise64,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_getoverrun,
    SYS_timer_delete,
    SYS_clock_settime,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_epoll_ctl,
    SYS_tgkill,
    SYS_mbind,
    SYS_set_mempolicy,
    SYS_get_mempolicy,
    SYS_inotify_init,
    SYS_inotify_rm_watch,
    SYS_migrate_pages,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_splice,
    SYS_tee,
    SYS_sync_file_range,
    SYS_vmsplice,
    SYS_move_pages,
    SYS_timerfd_create,
    SYS_eventfd,
    SYS_fallocate,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_signalfd,
    SYS_signalfd4,
    SYS_eventfd2,
    SYS_epoll_create1,
    SYS_dup3,
    SYS_pipe2,
    SYS_inotify_init1,
    SYS_pwritev,
    SYS_rt_tgsigqueueinfo,
    SYS_prlimit64,
    SYS_syncfs,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_getcpu,
    SYS_getrandom,
    SYS_memfd_create,
    SYS_membarrier,
    SYS_mlock2,
    SYS_copy_file_range,
    SYS_pwritev2,
    SYS_pkey_mprotect,
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_rseq,
    SYS_io_uring_setup,
    SYS_close_range,
});

// Waits, which the shim knows by their functions.
constexpr auto calls_that_wait = std::to_array<int>({
    SYS_poll,          SYS_select,          SYS_pause,        SYS_nanosleep,      SYS_accept,
    SYS_wait4,         SYS_semop,           SYS_msgrcv,       SYS_futex,          SYS_rt_sigtimedwait,
    SYS_rt_sigsuspend, SYS_semtimedop,      SYS_io_getevents, SYS_epoll_wait,     SYS_clock_nanosleep,
    SYS_mq_timedsend,  SYS_mq_timedreceive, SYS_waitid,       SYS_pselect6,       SYS_ppoll,
    SYS_epoll_pwait,   SYS_accept4,         SYS_epoll_pwait2, SYS_io_uring_enter,
});

// Calls with the name of a file. name: which argument it is. In the functions with "at" in their names the
// folder stands before it.
struct NamedFileCall {
  int number;
  Question question;
  std::uint8_t name;
  bool has_folder;
};
constexpr auto named_file_calls = std::to_array<NamedFileCall>({
    {SYS_open, Question::opening, 0, false},
    {SYS_stat, Question::file, 0, false},
    {SYS_lstat, Question::file, 0, false},
    {SYS_access, Question::file, 0, false},
    {SYS_truncate, Question::change, 0, false},
    {SYS_chdir, Question::change, 0, false},
    {SYS_rename, Question::change, 0, false},
    {SYS_mkdir, Question::creation, 0, false},
    {SYS_rmdir, Question::change, 0, false},
    {SYS_creat, Question::opening, 0, false},
    {SYS_link, Question::creation, 1, false},
    {SYS_unlink, Question::change, 0, false},
    {SYS_symlink, Question::creation, 1, false},
    {SYS_readlink, Question::file, 0, false},
    {SYS_chmod, Question::change, 0, false},
    {SYS_chown, Question::change, 0, false},
    {SYS_lchown, Question::change, 0, false},
    {SYS_utime, Question::change, 0, false},
    {SYS_mknod, Question::creation, 0, false},
    {SYS_statfs, Question::file, 0, false},
    {SYS_setxattr, Question::change, 0, false},
    {SYS_lsetxattr, Question::change, 0, false},
    {SYS_getxattr, Question::file, 0, false},
    {SYS_lgetxattr, Question::file, 0, false},
    {SYS_listxattr, Question::file, 0, false},
    {SYS_llistxattr, Question::file, 0, false},
    {SYS_removexattr, Question::change, 0, false},
    {SYS_lremovexattr, Question::change, 0, false},
    {SYS_utimes, Question::change, 0, false},
    {SYS_mq_open, Question::opening, 0, false},
    {SYS_mq_unlink, Question::change, 0, false},
    {SYS_inotify_add_watch, Question::change, 1, false},
    {SYS_openat, Question::opening, 1, true},
    {SYS_mkdirat, Question::creation, 1, true},
    {SYS_mknodat, Question::creation, 1, true},
    {SYS_fchownat, Question::change, 1, true},
    {SYS_futimesat, Question::change, 1, true},
    {SYS_newfstatat, Question::file, 1, true},
    {SYS_unlinkat, Question::change, 1, true},
    {SYS_renameat, Question::change, 1, true},
    {SYS_linkat, Question::creation, 3, true},
    {SYS_symlinkat, Question::creation, 2, true},
    {SYS_readlinkat, Question::file, 1, true},
    {SYS_fchmodat, Question::change, 1, true},
    {SYS_faccessat, Question::file, 1, true},
    {SYS_utimensat, Question::change, 1, true},
    {SYS_name_to_handle_at, Question::file, 1, true},
    {SYS_renameat2, Question::change, 1, true},
    {SYS_statx, Question::file, 1, true},
    {SYS_openat2, Question::opening, 1, true},
    {SYS_faccessat2, Question::file, 1, true},
});

template <std::size_t count>
bool is_among(const std::array<int, count>& numbers, long number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

template <typename Type>
Type* as_pointer(long word) {
  return reinterpret_cast<Type*>(word);  // NOLINT(performance-no-int-to-ptr)
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char one : text) hash = (hash ^ static_cast<unsigned char>(one)) * 0x100000001b3U;
  return hash;
}

// Files of the system, which the C library also reads on its own behalf: time zones, hosts, users,
// processors.
bool is_of_system(std::string_view path) {
  constexpr std::string_view processes = "/proc/";
  constexpr std::array<std::string_view, 8> folders{
      "/etc/", "/usr/", "/lib", "/sys/", "/dev/log", "/dev/urandom", "/run/systemd/", "/var/run/nscd/"};
  // What the host shows of another process changes when that does.
  if (path.starts_with(processes)) {
    path.remove_prefix(processes.size());
    const int process = number_at<int>(path.data(), path.data() + path.size());
    return process == 0 || process == getpid();
  }
  return std::any_of(folders.begin(), folders.end(),
                     [path](std::string_view folder) { return path.starts_with(folder); });
}

// The name of a file in a call. The kernel may not have read it: there may be none, as in futimens(), or the
// pointer may be bad.
class FileName {
 public:
  FileName(const WatchedCall& call, const NamedFileCall& kind) {
    const char* const from = as_pointer<const char>(call.arguments[kind.name]);
    if (from == nullptr) return;
    // Up to the end of a page at a time: the next one may not be there.
    constexpr std::size_t page_bytes = 4096;
    while (bytes_ < text_.size()) {
      const std::size_t in_page = page_bytes - reinterpret_cast<std::uintptr_t>(from + bytes_) % page_bytes;
      const std::size_t part = std::min(in_page, text_.size() - bytes_);
      if (!ipc::copy_in(text_.data() + bytes_, from + bytes_, part)) return;
      const std::size_t length = strnlen(text_.data() + bytes_, part);
      bytes_ += length;
      is_known_ = length < part;
      if (is_known_) return;
    }
  }
  // Without one the call says nothing of a file that the program names.
  [[nodiscard]] bool is_known() const { return is_known_; }
  [[nodiscard]] std::string_view get() const { return {text_.data(), bytes_}; }

 private:
  std::array<char, 4096> text_;  // PATH_MAX
  std::size_t bytes_ = 0;
  bool is_known_ = false;
};

int folder_of(const WatchedCall& call, const NamedFileCall& kind) {
  return kind.has_folder ? static_cast<int>(call.arguments[kind.name - 1U]) : AT_FDCWD;
}

void note(OutsideCause what, const WatchedCall& call, std::uint64_t key) {
  note_possible_check({.what = what,
                       .key = mixed(mixed(static_cast<std::uint64_t>(call.number), 1), key),
                       .number = static_cast<std::uint32_t>(call.number)});
}

// error: of the call, or 0. A program that makes a file of a random name waits for its folder.
void note_file(const WatchedCall& call, const NamedFileCall& kind, std::string_view name, int error) {
  if (kind.question == Question::creation) name = name.substr(0, name.rfind('/') + 1);
  const auto folder = static_cast<std::uint64_t>(name.starts_with('/') ? 0 : folder_of(call, kind));
  note(OutsideCause::file, call, mixed(mixed(hash_of(name), folder), static_cast<std::uint64_t>(error)));
}

std::optional<long> ask_for_file(const WatchedCall& call, const NamedFileCall& kind) {
  const FileName file(call, kind);
  if (!file.is_known()) return {};
  const std::string_view name = file.get();
  const auto& [first, second, third, fourth, fifth, sixth] = call.arguments;
  const int returned =
      host_call(call.number, first, second, static_cast<std::uint64_t>(third), as_pointer<const void>(fourth),
                static_cast<std::uint64_t>(fifth), static_cast<std::uint64_t>(sixth));
  const int error = errno;
  if (returned < 0 && error == EFAULT) return -error;
  if (call.is_librarys && is_of_system(name)) return returned < 0 ? -error : returned;
  if (returned < 0) {
    if (error != EINVAL && error != ENOSYS) note_file(call, kind, name, error);
    return -error;
  }
  if (kind.question == Question::file && !name.empty()) note_file(call, kind, name, 0);
  return returned;
}

// Opens of pipes may wait, so the call itself is still to be made.
void note_opening(const WatchedCall& call, const NamedFileCall& kind) {
  const FileName file(call, kind);
  if (!file.is_known()) return;
  const std::string_view name = file.get();
  const char* const path = as_pointer<const char>(call.arguments[kind.name]);
  struct stat status {};
  const int error =
      host_call(SYS_newfstatat, folder_of(call, kind), path, reinterpret_cast<std::uint64_t>(&status)) == 0
          ? 0
          : errno;
  std::uint64_t flags = static_cast<std::uint64_t>(call.arguments[kind.name + std::size_t{1}]);
  if (call.number == SYS_creat) flags = O_CREAT;
  if (call.number == SYS_openat2 &&
      !ipc::copy_in(&flags, as_pointer<const void>(call.arguments[2]), sizeof flags))
    return;
  const bool makes = (flags & O_CREAT) != 0;
  const bool is_exclusive = makes && (flags & O_EXCL) != 0;
  if (error == EFAULT || (call.is_librarys && is_of_system(name))) return;
  if (call.number == SYS_mq_open) return note_file(call, kind, name, ENOENT);
  if (error == 0 && is_exclusive) {
    note_file(call, kind, name, EEXIST);
  } else if (error != 0 && !makes) {
    note_file(call, kind, name, error);
  } else if (error == 0 && !makes &&
             host_call(SYS_faccessat, folder_of(call, kind), path,
                       (flags & O_ACCMODE) == O_RDONLY ? R_OK : W_OK) != 0) {
    note_file(call, kind, name, errno);
  } else if (makes && error == ENOENT) {
    // Its folder may be missing.
    std::array<char, 256> folder{};
    const std::size_t length = name.rfind('/') + 1;
    if (length == 0 || length >= folder.size()) return;
    name.copy(folder.data(), length);
    if (host_call(SYS_faccessat, folder_of(call, kind), folder.data(), X_OK) != 0)
      note_file(call, kind, name, errno);
  }
}

// Names an open file; 0: nobody else can change it.
std::uint64_t key_of_open(int file) {
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0 || is_own_file(file)) return 0;
  return mixed(mixed(status.st_dev, status.st_ino), 1) | 1U;
}

void note_open_file(const WatchedCall& call, OutsideCause what, long detail) {
  if (const std::uint64_t key = key_of_open(static_cast<int>(call.arguments[0])); key != 0)
    note(what, call, mixed(key, static_cast<std::uint64_t>(detail)));
}

// A program that reads a file at the same place again, and finds it unchanged. Of a pipe it reads on.
void note_reading(const WatchedCall& call) {
  const int file = static_cast<int>(call.arguments[0]);
  struct stat status {};
  if (host_call(SYS_fstat, file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const bool is_at_place =
      call.number == SYS_pread64 || call.number == SYS_preadv || call.number == SYS_preadv2;
  const std::int64_t place =
      is_at_place && call.arguments[3] != -1 ? call.arguments[3] : host_call(SYS_lseek, file, 0, SEEK_CUR);
  ProcessText path;
  if (is_of_system(link_of(getpid(), static_cast<std::uint64_t>(file), path))) return;
  const std::uint64_t key = mixed(mixed(status.st_dev, status.st_ino), state_of(status));
  note_possible_check({.what = OutsideCause::descriptor,
                       .key = mixed(key, static_cast<std::uint64_t>(place)) | 1U,
                       .number = static_cast<std::uint32_t>(call.number)});
}

// Calls that name a process or thread: nobody else changes what this one is told of itself.
bool asks_about_itself(const WatchedCall& call) {
  const auto is_own = [](long process) {
    return process == 0 || process == getpid() || process == ipc::own_thread_id();
  };
  switch (call.number) {
    case SYS_getsid:
    case SYS_getpgid:
    case SYS_sched_rr_get_interval:
    case SYS_sched_getparam:
    case SYS_sched_getscheduler:
    case SYS_sched_getattr:
    case SYS_pidfd_open:
    case SYS_process_vm_readv:
      return is_own(call.arguments[0]);
    case SYS_getpriority:
    case SYS_ioprio_get:
    case SYS_kcmp:
      return is_own(call.arguments[1]);
    case SYS_keyctl:
      return true;
    default:
      return false;
  }
}

bool asks_device(long request) {
  constexpr long sockets_of_ioctl = 0x89;
  constexpr long type_shift = 8;
  const bool is_of_sockets = (request >> type_shift & 0xff) == sockets_of_ioctl;
  return request == FIONREAD || request == TIOCOUTQ || is_of_sockets;
}

}  // namespace

bool pauses_watch(long number) {
  constexpr auto numbers = std::to_array<int>(
      {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group});
  return is_among(numbers, number);
}

std::optional<long> note_watched(const WatchedCall& call) {
  const auto& [first, second, third, fourth, fifth, sixth] = call.arguments;
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv:
    case SYS_preadv2:
      note_reading(call);  // the shim judges only whether there was something
      return {};
    default:
      break;
  }
  if (call.is_judged || is_among(asking_nothing, call.number) || is_among(calls_that_wait, call.number))
    return {};
  const auto* const kind = std::find_if(named_file_calls.begin(), named_file_calls.end(),
                                        [&](const NamedFileCall& one) { return one.number == call.number; });
  if (kind != named_file_calls.end()) {
    if (kind->question == Question::opening) {
      note_opening(call, *kind);
      return {};
    }
    return ask_for_file(call, *kind);
  }
  switch (call.number) {
    // The C library's streams and lists of files.
    case SYS_fstat:
    case SYS_lseek:
    case SYS_getdents64:
      if (!call.is_librarys && (call.number != SYS_lseek || third == SEEK_END))
        note_open_file(call, OutsideCause::descriptor, 0);
      break;
    case SYS_ioctl:
      if (asks_device(second)) note_open_file(call, OutsideCause::descriptor, second);
      break;
    case SYS_fcntl:
      if (second == F_GETLK || second == F_OFD_GETLK || second == F_SETLK || second == F_OFD_SETLK)
        note_open_file(call, OutsideCause::lock, second);
      break;
    case SYS_flock:
      if ((second & LOCK_UN) == 0) note_open_file(call, OutsideCause::lock, 0);
      break;
    case SYS_fstatfs:
    case SYS_fgetxattr:
    case SYS_flistxattr:
    case SYS_mq_getsetattr:
      note_open_file(call, OutsideCause::descriptor, 0);
      break;
    case SYS_shmctl:
    case SYS_msgctl:
    case SYS_semctl: {
      const long command = call.number == SYS_semctl ? third : second;
      if ((command & 0xff) == IPC_RMID || (command & 0xff) == IPC_SET) break;
      note(OutsideCause::object, call, mixed(static_cast<std::uint64_t>(first), 1));
      break;
    }
    default:
      if (!asks_about_itself(call)) note(OutsideCause::call, call, static_cast<std::uint64_t>(first));
      break;
  }
  return {};
}

}  // namespace apenet::shim

#endif
