// Tells OutsideWait (outside_waits.hpp) of calls that look for something outside and do not find it.
//
// Nothing is changed: each function calls that of the C library and returns its result. What a rank finds
// costs a comparison.
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <mqueue.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/socket_limits.hpp"
#include "runtime/shim/timer_files.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

// A call that names a file has failed for a reason that may go away.
void note_failed(int folder, const char* path) {
  const int error = errno;
  switch (error) {
    case ENOENT:
      note_file_look(folder, path, Presence::absent, static_cast<std::uint64_t>(error));
      break;
    case EEXIST:
      note_file_look(folder, path, Presence::there, static_cast<std::uint64_t>(error));
      break;
    case ENOTDIR:
    case ENXIO:
    case EACCES:
    case EPERM:
    case EBUSY:
    case ETXTBSY:
    case ENOTEMPTY:
    case EAGAIN:
      note_file_look(folder, path, Presence::refused, static_cast<std::uint64_t>(error));
      break;
    default:
      break;
  }
  errno = error;
}

// A call that finds a file.
template <typename Result>
Result tried(int folder, const char* path, Result result) {
  if (result < 0) {
    note_failed(folder, path);
  } else {
    note_file_find(folder, path);
  }
  return result;
}

// A call that makes, moves or removes a file.
template <typename Result>
Result changed(int folder, const char* path, Result result) {
  if (result < 0) {
    note_failed(folder, path);
  } else {
    forget_look();
  }
  return result;
}

template <typename Object>
Object* opened(const char* path, Object* result) {
  tried(AT_FDCWD, path, is_null(result) ? -1 : 0);
  return result;
}

FILE* opened_as(const char* path, const char* mode, FILE* result) {
  if (result == nullptr || mode[0] == 'r') return opened(path, result);
  forget_look();
  return result;
}

// A look at a file without opening it, which may also wait for its end.
int asked_for(int folder, const char* path, int result) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) note_file_look(folder, path, Presence::there, 0);
  return result;
}

// Changes when the file does.
template <typename Status>
std::uint64_t state_of(const Status& status) {
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const auto changed_ns =
      static_cast<std::uint64_t>(status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
  return (size * 0x9e3779b97f4a7c15U) ^ changed_ns;
}

template <typename Status>
int looked_at(int folder, const char* path, int result, const Status* status) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) note_file_look(folder, path, Presence::there, state_of(*status));
  return result;
}

// A descriptor, whose state changes when another process writes.
void note_descriptor(int file, std::uint64_t state) {
  const std::uint64_t key = static_cast<std::uint32_t>(file) + std::uint64_t{1};
  note_look(OutsideCause::descriptor, key + (state << 32U));
}

// The end of an open file, or what is known of it. The kernel's own files change without a writer.
template <typename Status>
int looked_at_open(int file, int result, const Status* status) {
  if (result != 0 || !S_ISREG(status->st_mode) || !counts_looks()) return result;
  const int error = errno;
  struct statfs system {};
  const bool is_kernels =
      ::fstatfs(file, &system) != 0 || system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC;
  if (!is_kernels) note_descriptor(file, state_of(*status));
  forget_look();
  errno = error;
  return result;
}

off_t sought(int file, int whence, off_t result) {
  if (whence == SEEK_END && result >= 0 && counts_looks())
    note_descriptor(file, static_cast<std::uint64_t>(result));
  forget_look();
  return result;
}

// A call on a descriptor that does not wait, or that has come to the end of a file to which another process
// may append.
template <typename Result>
Result read_from(int file, Result result) {
  const bool is_empty = result < 0 && errno == EAGAIN;
  if ((is_empty || result == 0) && counts_looks() && !is_own_file(file)) {
    note_descriptor(file, 0);
    if (!is_empty) forget_look();  // the rank itself may write to it
  } else if (result > 0) {
    note_find(OutsideCause::descriptor, static_cast<std::uint32_t>(file) + std::uint64_t{1});
  }
  return result;
}

// The program will read on after the end of the file, or has come to it and closes the file.
void note_end_of(FILE* stream) {
  const int error = errno;
  if (counts_looks() && std::feof(stream) != 0) read_from(fileno(stream), 0);
  errno = error;
}

int locked(std::uint64_t key, int result) {
  if (result < 0 && (errno == EAGAIN || errno == EACCES)) note_look(OutsideCause::lock, key | 1U);
  if (result >= 0) note_find(OutsideCause::lock, key | 1U);
  return result;
}

template <typename Result>
Result named(const char* name, Result result, bool is_found) {
  note_object_look(name, is_found);
  return result;
}

int keyed(key_t key, int result) {
  const auto subject = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) + 1;
  if (result >= 0) {
    note_find(OutsideCause::object, subject);
  } else if (errno == ENOENT || errno == EEXIST) {
    note_look(OutsideCause::object, subject);
  }
  return result;
}

}  // namespace
}  // namespace apenet::shim

using apenet::shim::asked_for;
using apenet::shim::await_socket;
using apenet::shim::changed;
using apenet::shim::HostPace;
using apenet::shim::InsideWait;
using apenet::shim::is_shared;
using apenet::shim::keyed;
using apenet::shim::locked;
using apenet::shim::looked_at;
using apenet::shim::looked_at_open;
using apenet::shim::named;
using apenet::shim::next;
using apenet::shim::note_end_of;
using apenet::shim::note_look;
using apenet::shim::opened;
using apenet::shim::opened_as;
using apenet::shim::pacing_client;
using apenet::shim::read_from;
using apenet::shim::sought;
using apenet::shim::tried;

// Defines a function that returns `seen`, which contains `done`, the result of the C library's.
#define APENET_LOOK(result, name, parameters, qualifier, arguments, seen)        \
  APENET_EXPORT result name parameters qualifier {                               \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name); \
    result const done = real arguments;                                          \
    return seen;                                                                 \
  }

// The same of one that may wait.
#define APENET_WAITING_LOOK(result, name, parameters, qualifier, arguments, seen) \
  APENET_EXPORT result name parameters qualifier {                                \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);  \
    const HostPace pace(pacing_client());                                         \
    result const done = real arguments;                                           \
    return seen;                                                                  \
  }

// The same of one that may wait for a file. flags: as recv() has them.
#define APENET_FILE_LOOK(result, name, parameters, qualifier, arguments, file, flags, seen) \
  APENET_EXPORT result name parameters qualifier {                                          \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);            \
    if (!await_socket(file, POLLIN, flags)) return read_from(file, result{-1});             \
    const InsideWait inside(file);                                                          \
    const HostPace pace(pacing_client());                                                   \
    result const done = real arguments;                                                     \
    return seen;                                                                            \
  }

// Files. The names without declarations are those of older C libraries, of files of 64 bits, and of programs
// built with _FORTIFY_SOURCE.
APENET_LOOK(int, access, (const char* path, int mode), noexcept, (path, mode),
            asked_for(AT_FDCWD, path, done))
APENET_LOOK(int, euidaccess, (const char* path, int mode), noexcept, (path, mode),
            asked_for(AT_FDCWD, path, done))
APENET_LOOK(int, eaccess, (const char* path, int mode), noexcept, (path, mode),
            asked_for(AT_FDCWD, path, done))
APENET_LOOK(int, faccessat, (int folder, const char* path, int mode, int flags), noexcept,
            (folder, path, mode, flags), asked_for(folder, path, done))
#define APENET_STATUS_LOOKS(suffix)                                                                          \
  APENET_LOOK(int, stat##suffix, (const char* path, struct stat##suffix* status), noexcept, (path, status),  \
              looked_at(AT_FDCWD, path, done, status))                                                       \
  APENET_LOOK(int, lstat##suffix, (const char* path, struct stat##suffix* status), noexcept, (path, status), \
              looked_at(AT_FDCWD, path, done, status))                                                       \
  APENET_LOOK(int, fstatat##suffix, (int folder, const char* path, struct stat##suffix* status, int flags),  \
              noexcept, (folder, path, status, flags), looked_at(folder, path, done, status))                \
  APENET_LOOK(int, __xstat##suffix, (int version, const char* path, struct stat##suffix* status), ,          \
              (version, path, status), looked_at(AT_FDCWD, path, done, status))                              \
  APENET_LOOK(int, __lxstat##suffix, (int version, const char* path, struct stat##suffix* status), ,         \
              (version, path, status), looked_at(AT_FDCWD, path, done, status))                              \
  APENET_LOOK(int, __fxstatat##suffix,                                                                       \
              (int version, int folder, const char* path, struct stat##suffix* status, int flags), ,         \
              (version, folder, path, status, flags), looked_at(folder, path, done, status))                 \
  APENET_LOOK(int, fstat##suffix, (int file, struct stat##suffix* status), noexcept, (file, status),         \
              looked_at_open(file, done, status))                                                            \
  APENET_LOOK(int, __fxstat##suffix, (int version, int file, struct stat##suffix* status), ,                 \
              (version, file, status), looked_at_open(file, done, status))
APENET_STATUS_LOOKS()
APENET_STATUS_LOOKS(64)
APENET_LOOK(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* status),
            noexcept, (folder, path, flags, mask, status), asked_for(folder, path, done))

// The mode of a new file, which the program passes only for one.
#define APENET_MODE(flags)                              \
  mode_t mode = 0;                                      \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {         \
    va_list list;                                       \
    va_start(list, flags);                              \
    mode = static_cast<mode_t>(va_arg(list, unsigned)); \
    va_end(list);                                       \
  }
#define APENET_OPEN_LOOKS(suffix)                                                                            \
  APENET_EXPORT int open##suffix(const char* path, int flags, ...) {                                         \
    static const auto real = next<int (*)(const char*, int, ...)>("open" #suffix);                           \
    APENET_MODE(flags)                                                                                       \
    const HostPace pace(pacing_client());                                                                    \
    const int file = real(path, flags, mode);                                                                \
    return (flags & O_CREAT) != 0 ? changed(AT_FDCWD, path, file) : tried(AT_FDCWD, path, file);             \
  }                                                                                                          \
  APENET_EXPORT int openat##suffix(int folder, const char* path, int flags, ...) {                           \
    static const auto real = next<int (*)(int, const char*, int, ...)>("openat" #suffix);                    \
    APENET_MODE(flags)                                                                                       \
    const HostPace pace(pacing_client());                                                                    \
    const int file = real(folder, path, flags, mode);                                                        \
    return (flags & O_CREAT) != 0 ? changed(folder, path, file) : tried(folder, path, file);                 \
  }                                                                                                          \
  APENET_LOOK(int, __open##suffix##_2, (const char* path, int flags), , (path, flags),                       \
              tried(AT_FDCWD, path, done))                                                                   \
  APENET_LOOK(int, __openat##suffix##_2, (int folder, const char* path, int flags), , (folder, path, flags), \
              tried(folder, path, done))                                                                     \
  APENET_LOOK(FILE*, fopen##suffix, (const char* path, const char* mode), , (path, mode),                    \
              opened_as(path, mode, done))
APENET_OPEN_LOOKS()
APENET_OPEN_LOOKS(64)
APENET_LOOK(int, creat, (const char* path, mode_t mode), , (path, mode), changed(AT_FDCWD, path, done))
APENET_LOOK(int, creat64, (const char* path, mode_t mode), , (path, mode), changed(AT_FDCWD, path, done))
APENET_LOOK(int, mkdir, (const char* path, mode_t mode), noexcept, (path, mode),
            changed(AT_FDCWD, path, done))
APENET_LOOK(int, mkdirat, (int folder, const char* path, mode_t mode), noexcept, (folder, path, mode),
            changed(folder, path, done))
APENET_LOOK(int, mkfifo, (const char* path, mode_t mode), noexcept, (path, mode),
            changed(AT_FDCWD, path, done))
APENET_LOOK(int, link, (const char* path, const char* name), noexcept, (path, name),
            changed(AT_FDCWD, name, done))
APENET_LOOK(int, linkat, (int folder, const char* path, int to, const char* name, int flags), noexcept,
            (folder, path, to, name, flags), changed(to, name, done))
APENET_LOOK(int, symlink, (const char* path, const char* name), noexcept, (path, name),
            changed(AT_FDCWD, name, done))
APENET_LOOK(int, symlinkat, (const char* path, int folder, const char* name), noexcept, (path, folder, name),
            changed(folder, name, done))
APENET_LOOK(int, rename, (const char* path, const char* name), noexcept, (path, name),
            changed(AT_FDCWD, path, done))
APENET_LOOK(int, renameat, (int folder, const char* path, int to, const char* name), noexcept,
            (folder, path, to, name), changed(folder, path, done))
APENET_LOOK(int, unlink, (const char* path), noexcept, (path), changed(AT_FDCWD, path, done))
APENET_LOOK(int, unlinkat, (int folder, const char* path, int flags), noexcept, (folder, path, flags),
            changed(folder, path, done))
APENET_LOOK(int, remove, (const char* path), noexcept, (path), changed(AT_FDCWD, path, done))
APENET_LOOK(int, rmdir, (const char* path), noexcept, (path), changed(AT_FDCWD, path, done))
APENET_LOOK(int, chdir, (const char* path), noexcept, (path), tried(AT_FDCWD, path, done))
APENET_LOOK(ssize_t, readlink, (const char* path, char* target, std::size_t bytes), noexcept,
            (path, target, bytes), tried(AT_FDCWD, path, done))
APENET_LOOK(ssize_t, readlinkat, (int folder, const char* path, char* target, std::size_t bytes), noexcept,
            (folder, path, target, bytes), tried(folder, path, done))
APENET_LOOK(ssize_t, __readlink_chk, (const char* path, char* target, std::size_t bytes, std::size_t room), ,
            (path, target, bytes, room), tried(AT_FDCWD, path, done))
APENET_LOOK(char*, realpath, (const char* path, char* resolved), noexcept, (path, resolved),
            opened(path, done))

// Names that fit a pattern.
#define APENET_GLOB(suffix)                                                                            \
  APENET_EXPORT int glob##suffix(const char* pattern, int flags, int (*failed)(const char*, int),      \
                                 glob##suffix##_t* found) {                                            \
    static const auto real =                                                                           \
        next<int (*)(const char*, int, int (*)(const char*, int), glob##suffix##_t*)>("glob" #suffix); \
    const int result = real(pattern, flags, failed, found);                                            \
    if (result == GLOB_NOMATCH) {                                                                      \
      apenet::shim::note_file_look(AT_FDCWD, pattern, apenet::shim::Presence::refused, 0);             \
    } else {                                                                                           \
      apenet::shim::note_file_find(AT_FDCWD, pattern);                                                 \
    }                                                                                                  \
    return result;                                                                                     \
  }
APENET_GLOB()
APENET_GLOB(64)

// A folder whose entries may change.
APENET_EXPORT DIR* opendir(const char* path) {
  static const auto real = next<DIR* (*)(const char*)>("opendir");
  DIR* folder = opened(path, real(path));
  if (folder != nullptr) asked_for(AT_FDCWD, path, 0);
  return folder;
}

// Objects that another process makes.
APENET_EXPORT sem_t* sem_open(const char* name, int flags, ...) {
  static const auto real = next<sem_t* (*)(const char*, int, ...)>("sem_open");
  if ((flags & O_CREAT) == 0) {
    sem_t* const found = real(name, flags);
    return named(name, found, found != SEM_FAILED);
  }
  va_list list;
  va_start(list, flags);
  const auto mode = static_cast<mode_t>(va_arg(list, unsigned));
  const unsigned value = va_arg(list, unsigned);
  va_end(list);
  return real(name, flags, mode, value);
}
APENET_EXPORT mqd_t mq_open(const char* name, int flags, ...) {
  static const auto real = next<mqd_t (*)(const char*, int, ...)>("mq_open");
  if ((flags & O_CREAT) == 0) {
    const mqd_t found = real(name, flags);
    return named(name, found, found >= 0);
  }
  va_list list;
  va_start(list, flags);
  const auto mode = static_cast<mode_t>(va_arg(list, unsigned));
  mq_attr* const attributes = va_arg(list, mq_attr*);
  va_end(list);
  return real(name, flags, mode, attributes);
}
APENET_LOOK(mqd_t, __mq_open_2, (const char* name, int flags), , (name, flags), named(name, done, done >= 0))
APENET_LOOK(int, shmget, (key_t key, std::size_t bytes, int flags), noexcept, (key, bytes, flags),
            keyed(key, done))
APENET_LOOK(int, semget, (key_t key, int count, int flags), noexcept, (key, count, flags), keyed(key, done))
APENET_LOOK(int, msgget, (key_t key, int flags), noexcept, (key, flags), keyed(key, done))

// Locks.
APENET_WAITING_LOOK(int, flock, (int file, int operation), noexcept, (file, operation),
                    (operation & LOCK_UN) != 0 ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_LOOK(int, lockf, (int file, int command, off_t bytes), , (file, command, bytes),
                    command == F_ULOCK ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_LOOK(int, lockf64, (int file, int command, off64_t bytes), , (file, command, bytes),
                    command == F_ULOCK ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
#define APENET_FCNTL(name)                                                            \
  APENET_EXPORT int name(int file, int command, ...) {                                \
    static const auto real = next<int (*)(int, int, ...)>(#name);                     \
    va_list list;                                                                     \
    va_start(list, command);                                                          \
    void* const argument = va_arg(list, void*);                                       \
    va_end(list);                                                                     \
    const HostPace pace(pacing_client());                                             \
    const int result = real(file, command, argument);                                 \
    const bool locks = (command == F_SETLK || command == F_OFD_SETLK) &&              \
                       static_cast<const struct flock*>(argument)->l_type != F_UNLCK; \
    return locks ? locked(static_cast<std::uint64_t>(file) << 1U, result) : result;   \
  }
APENET_FCNTL(fcntl)
APENET_FCNTL(fcntl64)
// Another process may post it, or a thread that acts later.
APENET_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  static const auto real = next<int (*)(sem_t*)>("sem_trywait");
  apenet::ipc::OrderedThread* const own = apenet::shim::ordered_thread();
  if (own == nullptr || apenet::shim::is_shared(semaphore))
    return locked(reinterpret_cast<std::uint64_t>(semaphore), real(semaphore));
  const apenet::shim::OrderedAction action(*own);
  return real(semaphore);
}
APENET_WAITING_LOOK(int, semop, (int set, sembuf* operations, std::size_t count), noexcept,
                    (set, operations, count), locked(static_cast<std::uint64_t>(set) << 1U, done))

// Open files.
APENET_LOOK(off_t, lseek, (int file, off_t offset, int whence), noexcept, (file, offset, whence),
            sought(file, whence, done))
APENET_LOOK(off64_t, lseek64, (int file, off64_t offset, int whence), noexcept, (file, offset, whence),
            sought(file, whence, done))
APENET_LOOK(ssize_t, pread, (int file, void* bytes, std::size_t count, off_t offset), ,
            (file, bytes, count, offset), count == 0 ? done : read_from(file, done))
APENET_LOOK(ssize_t, pread64, (int file, void* bytes, std::size_t count, off64_t offset), ,
            (file, bytes, count, offset), count == 0 ? done : read_from(file, done))
APENET_EXPORT void clearerr(FILE* stream) noexcept {
  static const auto real = next<void (*)(FILE*)>("clearerr");
  note_end_of(stream);
  real(stream);
}
APENET_EXPORT void rewind(FILE* stream) {
  static const auto real = next<void (*)(FILE*)>("rewind");
  note_end_of(stream);
  real(stream);
}
APENET_EXPORT int fseek(FILE* stream, long offset, int whence) {
  static const auto real = next<int (*)(FILE*, long, int)>("fseek");
  note_end_of(stream);
  return real(stream, offset, whence);
}
APENET_EXPORT int fseeko(FILE* stream, off_t offset, int whence) {
  static const auto real = next<int (*)(FILE*, off_t, int)>("fseeko");
  note_end_of(stream);
  return real(stream, offset, whence);
}
APENET_EXPORT int fclose(FILE* stream) {
  static const auto real = next<int (*)(FILE*)>("fclose");
  note_end_of(stream);
  return real(stream);
}

// Pipes and sockets.
APENET_EXPORT ssize_t read(int file, void* bytes, std::size_t count) {
  if (!await_socket(file, POLLIN)) return read_from(file, ssize_t{-1});
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  apenet::shim::VirtualTimer* const timer = apenet::shim::timer_of_file(file);
  if (timer != nullptr && count >= sizeof timer->ends && !apenet::shim::await_timer_file(*timer)) return -1;
  ssize_t done = 0;
  {
    const InsideWait inside(file);
    const HostPace pace(pacing_client());
    done = real(file, bytes, count);
  }
  if (timer != nullptr && done > 0) apenet::shim::read_timer_ends(*timer, bytes);
  return count == 0 ? done : read_from(file, done);
}
APENET_FILE_LOOK(ssize_t, __read_chk, (int file, void* bytes, std::size_t count, std::size_t room), ,
                 (file, bytes, count, room), file, 0, count == 0 ? done : read_from(file, done))
APENET_FILE_LOOK(ssize_t, recv, (int socket, void* bytes, std::size_t count, int flags), ,
                 (socket, bytes, count, flags), socket, flags, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, __recv_chk,
                 (int socket, void* bytes, std::size_t count, std::size_t room, int flags), ,
                 (socket, bytes, count, room, flags), socket, flags, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, recvfrom,
                 (int socket, void* bytes, std::size_t count, int flags, sockaddr* address,
                  socklen_t* length),
                 , (socket, bytes, count, flags, address, length), socket, flags, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, recvmsg, (int socket, msghdr* message, int flags), , (socket, message, flags),
                 socket, flags, read_from(socket, done))
APENET_FILE_LOOK(int, accept, (int socket, sockaddr* address, socklen_t* length), , (socket, address, length),
                 socket, 0, done > 0 ? done : read_from(socket, done))
APENET_FILE_LOOK(int, accept4, (int socket, sockaddr* address, socklen_t* length, int flags), ,
                 (socket, address, length, flags), socket, 0, done > 0 ? done : read_from(socket, done))

// The result of a connection that was begun without a wait.
APENET_EXPORT int getsockopt(int socket, int level, int name, void* value, socklen_t* length) noexcept {
  static const auto real = next<int (*)(int, int, int, void*, socklen_t*)>("getsockopt");
  const int result = real(socket, level, name, value, length);
  const bool asks = result == 0 && level == SOL_SOCKET && name == SO_ERROR && *length == sizeof(int);
  if (asks && *static_cast<const int*>(value) == ECONNREFUSED)
    note_look(apenet::ipc::OutsideCause::connection, 1);
  return result;
}
