// Tells OutsideWait (outside_waits.hpp) of calls that look for something outside and do not find it.
//
// Nothing is changed: each function calls that of the C library and returns its result. What a rank finds
// costs a comparison.
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/timer_files.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

using ipc::OutsideCause;

// The file that a call tried to find or to make.
void note_failed(int folder, const char* path) {
  const int error = errno;
  const bool is_there = error == EEXIST;
  if (error == ENOENT || error == ENOTDIR || error == ENXIO || is_there)
    note_file_look(folder, path, is_there, static_cast<std::uint64_t>(error));
  errno = error;
}

template <typename Result>
Result tried(int folder, const char* path, Result result) {
  if (result < 0) note_failed(folder, path);
  return result;
}

template <typename Object>
Object* opened(const char* path, Object* result) {
  if (result == nullptr) note_failed(AT_FDCWD, path);
  return result;
}

// A look at a file without opening it, which may also wait for its end.
int asked_for(int folder, const char* path, int result) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) note_file_look(folder, path, true, 0);
  return result;
}

// A look at what changes when the file does.
template <typename Status>
int looked_at(int folder, const char* path, int result, const Status* status) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) {
    const auto size = static_cast<std::uint64_t>(status->st_size);
    const auto changed_ns =
        static_cast<std::uint64_t>(status->st_mtim.tv_sec * 1'000'000'000 + status->st_mtim.tv_nsec);
    note_file_look(folder, path, true, (size * 0x9e3779b97f4a7c15U) ^ changed_ns);
  }
  return result;
}

// A call on a descriptor that does not wait, or that has come to the end of a file to which another process
// may append.
template <typename Result>
Result read_from(int file, Result result) {
  const bool is_empty = result == 0 || (result < 0 && errno == EAGAIN);
  if (is_empty && counts_looks() && !is_own_file(file))
    note_look(OutsideCause::descriptor, static_cast<std::uint32_t>(file) + std::uint64_t{1});
  return result;
}

int locked(std::uint64_t key, int result) {
  if (result < 0 && (errno == EAGAIN || errno == EACCES)) note_look(OutsideCause::lock, key | 1U);
  return result;
}

}  // namespace
}  // namespace apenet::shim

using apenet::shim::asked_for;
using apenet::shim::HostPace;
using apenet::shim::InsideWait;
using apenet::shim::is_shared;
using apenet::shim::locked;
using apenet::shim::looked_at;
using apenet::shim::next;
using apenet::shim::note_look;
using apenet::shim::opened;
using apenet::shim::pacing_client;
using apenet::shim::read_from;
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

// The same of one that may wait for a file.
#define APENET_FILE_LOOK(result, name, parameters, qualifier, arguments, file, seen) \
  APENET_EXPORT result name parameters qualifier {                                   \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);     \
    const InsideWait inside(file);                                                   \
    const HostPace pace(pacing_client());                                            \
    result const done = real arguments;                                              \
    return seen;                                                                     \
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
              (version, folder, path, status, flags), looked_at(folder, path, done, status))
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
    return tried(AT_FDCWD, path, real(path, flags, mode));                                                   \
  }                                                                                                          \
  APENET_EXPORT int openat##suffix(int folder, const char* path, int flags, ...) {                           \
    static const auto real = next<int (*)(int, const char*, int, ...)>("openat" #suffix);                    \
    APENET_MODE(flags)                                                                                       \
    const HostPace pace(pacing_client());                                                                    \
    return tried(folder, path, real(folder, path, flags, mode));                                             \
  }                                                                                                          \
  APENET_LOOK(int, __open##suffix##_2, (const char* path, int flags), , (path, flags),                       \
              tried(AT_FDCWD, path, done))                                                                   \
  APENET_LOOK(int, __openat##suffix##_2, (int folder, const char* path, int flags), , (folder, path, flags), \
              tried(folder, path, done))                                                                     \
  APENET_LOOK(FILE*, fopen##suffix, (const char* path, const char* mode), , (path, mode), opened(path, done))
APENET_OPEN_LOOKS()
APENET_OPEN_LOOKS(64)
APENET_LOOK(int, mkdir, (const char* path, mode_t mode), noexcept, (path, mode), tried(AT_FDCWD, path, done))
APENET_LOOK(int, mkdirat, (int folder, const char* path, mode_t mode), noexcept, (folder, path, mode),
            tried(folder, path, done))
APENET_LOOK(int, link, (const char* path, const char* name), noexcept, (path, name),
            tried(AT_FDCWD, name, done))
APENET_LOOK(int, symlink, (const char* path, const char* name), noexcept, (path, name),
            tried(AT_FDCWD, name, done))

// A folder whose entries may change.
APENET_EXPORT DIR* opendir(const char* path) {
  static const auto real = next<DIR* (*)(const char*)>("opendir");
  DIR* folder = opened(path, real(path));
  if (folder != nullptr) asked_for(AT_FDCWD, path, 0);
  return folder;
}

// Locks.
APENET_WAITING_LOOK(int, flock, (int file, int operation), noexcept, (file, operation),
                    locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_LOOK(int, lockf, (int file, int command, off_t bytes), , (file, command, bytes),
                    locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_LOOK(int, lockf64, (int file, int command, off64_t bytes), , (file, command, bytes),
                    locked(static_cast<std::uint64_t>(file) << 1U, done))
#define APENET_FCNTL(name)                                                          \
  APENET_EXPORT int name(int file, int command, ...) {                              \
    static const auto real = next<int (*)(int, int, ...)>(#name);                   \
    va_list list;                                                                   \
    va_start(list, command);                                                        \
    void* const argument = va_arg(list, void*);                                     \
    va_end(list);                                                                   \
    const HostPace pace(pacing_client());                                           \
    const int result = real(file, command, argument);                               \
    const bool locks = command == F_SETLK || command == F_OFD_SETLK;                \
    return locks ? locked(static_cast<std::uint64_t>(file) << 1U, result) : result; \
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

// Pipes and sockets.
APENET_EXPORT ssize_t read(int file, void* bytes, std::size_t count) {
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
                 (file, bytes, count, room), file, count == 0 ? done : read_from(file, done))
APENET_FILE_LOOK(ssize_t, recv, (int socket, void* bytes, std::size_t count, int flags), ,
                 (socket, bytes, count, flags), socket, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, __recv_chk,
                 (int socket, void* bytes, std::size_t count, std::size_t room, int flags), ,
                 (socket, bytes, count, room, flags), socket, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, recvfrom,
                 (int socket, void* bytes, std::size_t count, int flags, sockaddr* address,
                  socklen_t* length),
                 , (socket, bytes, count, flags, address, length), socket, read_from(socket, done))
APENET_FILE_LOOK(ssize_t, recvmsg, (int socket, msghdr* message, int flags), , (socket, message, flags),
                 socket, read_from(socket, done))
APENET_FILE_LOOK(int, accept, (int socket, sockaddr* address, socklen_t* length), , (socket, address, length),
                 socket, done > 0 ? done : read_from(socket, done))
APENET_FILE_LOOK(int, accept4, (int socket, sockaddr* address, socklen_t* length, int flags), ,
                 (socket, address, length, flags), socket, done > 0 ? done : read_from(socket, done))

// The result of a connection that was begun without a wait.
APENET_EXPORT int getsockopt(int socket, int level, int name, void* value, socklen_t* length) noexcept {
  static const auto real = next<int (*)(int, int, int, void*, socklen_t*)>("getsockopt");
  const int result = real(socket, level, name, value, length);
  const bool asks = result == 0 && level == SOL_SOCKET && name == SO_ERROR && *length == sizeof(int);
  if (asks && *static_cast<const int*>(value) == ECONNREFUSED)
    note_look(apenet::ipc::OutsideCause::connection, 1);
  return result;
}
