// Tells OutsideWait (outside_waits.hpp) of calls that check a lock or an open descriptor and find nothing
// new.
//
// Nothing is changed: each function calls that of the C library and returns its result. A check that finds
// what it asks for costs a comparison.
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "runtime/ipc/host_call.hpp"
#include "runtime/shim/checked_calls.hpp"
#include "runtime/shim/ordered_files.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/own_files.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/shared_objects.hpp"
#include "runtime/shim/socket_limits.hpp"
#include "runtime/shim/timer_files.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

// A descriptor, whose state changes when another process writes.
void note_descriptor(int file, std::uint64_t state) {
  const std::uint64_t key = static_cast<std::uint32_t>(file) + std::uint64_t{1};
  note_check(OutsideCause::descriptor, key + (state << 32U));
}

// The end of an open file, or what is known of it. The kernel's own files change without a writer.
template <typename Status>
int checked_open(int file, int result, const Status* status) {
  if (result != 0 || !S_ISREG(status->st_mode) || !counts_checks()) return result;
  const int error = errno;
  struct statfs system {};
  const bool is_kernels = ipc::host_call(SYS_fstatfs, file, &system) != 0 ||
                          system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC;
  if (!is_kernels) note_descriptor(file, state_of(*status));
  forget_check();
  errno = error;
  return result;
}

off_t sought(int file, int whence, off_t result) {
  if (whence == SEEK_END && result >= 0 && counts_checks())
    note_descriptor(file, static_cast<std::uint64_t>(result));
  forget_check();
  return result;
}

// A call on a descriptor that does not wait, or that has come to the end of a file to which another process
// may append.
template <typename Result>
Result read_from(int file, Result result) {
  const bool is_empty = result < 0 && errno == EAGAIN;
  if (is_empty && is_of_order(file)) charge_empty_check();
  if ((is_empty || result == 0) && counts_checks() && !is_own_file(file)) {
    note_descriptor(file, 0);
    if (!is_empty) forget_check();  // the rank itself may write to it
  } else if (result > 0) {
    note_found(OutsideCause::descriptor, static_cast<std::uint32_t>(file) + std::uint64_t{1});
  }
  return result;
}

int accepted(int socket, int connection) {
  if (connection < 0) return read_from(socket, connection);
  if (is_unix_socket(connection)) note_connected_socket(connection);
  return connection;
}

// The program will read on after the end of the file, or has come to it and closes the file.
void note_end_of(FILE* stream) {
  const int error = errno;
  if (counts_checks() && std::feof(stream) != 0) read_from(fileno(stream), 0);
  errno = error;
}

int interrupted() {
  errno = EINTR;
  return -1;
}

int locked(std::uint64_t key, int result) {
  if (result < 0 && (errno == EAGAIN || errno == EACCES)) note_check(OutsideCause::lock, key | 1U);
  if (result >= 0) note_found(OutsideCause::lock, key | 1U);
  return result;
}

// lock: what fcntl() was given to take, or, if it only asks, what it has found.
int lock_checked(int file, bool asks, const struct flock& lock, int result) {
  const std::uint64_t key = static_cast<std::uint64_t>(file) << 1U;
  if (!asks) return lock.l_type == F_UNLCK ? result : locked(key, result);
  if (result < 0) return result;
  if (lock.l_type == F_UNLCK) {
    note_found(OutsideCause::lock, key | 1U);
  } else {
    note_check(OutsideCause::lock, key | 1U);
  }
  return result;
}

}  // namespace

// The same of one that may wait, if `waits`.
#define APENET_WAITING_CALL(result, name, parameters, qualifier, arguments, waits, seen) \
  APENET_EXPORT result name parameters qualifier {                                       \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);         \
    APENET_HOST_CALLER;                                                                  \
    const HostPace pace((waits) ? pacing_client() : nullptr);                            \
    result const done = real arguments;                                                  \
    return seen;                                                                         \
  }

// The same of one that may wait for a file. awaited: whether the socket's limit has let it go on.
#define APENET_FILE_CALL(result, name, parameters, qualifier, arguments, file, flags, awaited, seen) \
  APENET_EXPORT result name parameters qualifier {                                                   \
    static const auto real = next<std::add_pointer_t<result parameters>>(#name);                     \
    if (!(awaited)) return read_from(file, static_cast<result>(-1));                                 \
    const InsideWait inside(file);                                                                   \
    if (inside.is_interrupted()) return interrupted();                                               \
    const HostPace pace(pacing_reader(file, flags));                                                 \
    result const done = real arguments;                                                              \
    return seen;                                                                                     \
  }

// Locks.
APENET_WAITING_CALL(int, flock, (int file, int operation), noexcept, (file, operation),
                    (operation & (LOCK_NB | LOCK_UN)) == 0,
                    (operation & LOCK_UN) != 0 ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_CALL(int, lockf, (int file, int command, off_t bytes), , (file, command, bytes),
                    command == F_LOCK,
                    command == F_ULOCK ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
APENET_WAITING_CALL(int, lockf64, (int file, int command, off64_t bytes), , (file, command, bytes),
                    command == F_LOCK,
                    command == F_ULOCK ? done : locked(static_cast<std::uint64_t>(file) << 1U, done))
#define APENET_FCNTL(name)                                                                \
  APENET_EXPORT int name(int file, int command, ...) {                                    \
    static const auto real = next<int (*)(int, int, ...)>(#name);                         \
    APENET_HOST_CALLER;                                                                   \
    va_list list;                                                                         \
    va_start(list, command);                                                              \
    void* const argument = va_arg(list, void*);                                           \
    va_end(list);                                                                         \
    const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;                    \
    const HostPace pace(waits ? pacing_client() : nullptr);                               \
    const int result = real(file, command, argument);                                     \
    const bool is_given = result >= 0 || errno != EFAULT;                                 \
    const bool asks = command == F_GETLK || command == F_OFD_GETLK;                       \
    const bool locks = asks || command == F_SETLK || command == F_OFD_SETLK;              \
    if (!locks || !is_given) return result;                                               \
    return lock_checked(file, asks, *static_cast<const struct flock*>(argument), result); \
  }
APENET_FCNTL(fcntl)
APENET_FCNTL(fcntl64)
// Another process may post it, or a thread that acts later.
APENET_EXPORT int sem_trywait(sem_t* semaphore) noexcept {
  static const auto real = next<int (*)(sem_t*)>("sem_trywait");
  ipc::OrderedThread* const own = ordered_thread();
  const ObjectUse use(own, semaphore);
  if (!use.is_of_order()) return locked(reinterpret_cast<std::uint64_t>(semaphore), real(semaphore));
  return real(semaphore);
}
APENET_WAITING_CALL(int, semop, (int set, sembuf* operations, std::size_t count), noexcept,
                    (set, operations, count), true, locked(static_cast<std::uint64_t>(set) << 1U, done))

// Open files.
#define APENET_DESCRIPTOR_CHECKS(suffix)                                                              \
  APENET_CHECK(int, fstat##suffix, (int file, struct stat##suffix* status), noexcept, (file, status), \
               checked_open(file, done, status))                                                      \
  APENET_CHECK(int, __fxstat##suffix, (int version, int file, struct stat##suffix* status), ,         \
               (version, file, status), checked_open(file, done, status))
APENET_DESCRIPTOR_CHECKS()
APENET_DESCRIPTOR_CHECKS(64)
APENET_CHECK(off_t, lseek, (int file, off_t offset, int whence), noexcept, (file, offset, whence),
             sought(file, whence, done))
APENET_CHECK(off64_t, lseek64, (int file, off64_t offset, int whence), noexcept, (file, offset, whence),
             sought(file, whence, done))
APENET_CHECK(ssize_t, pread, (int file, void* bytes, std::size_t count, off_t offset), ,
             (file, bytes, count, offset), count == 0 ? done : read_from(file, done))
APENET_CHECK(ssize_t, pread64, (int file, void* bytes, std::size_t count, off64_t offset), ,
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
  std::optional<WaitingFileAction> action;
  ipc::OrderedThread* const own = is_null(stream) ? nullptr : closer_of_order(fileno_unlocked(stream));
  if (own != nullptr) action.emplace(*own);
  return real(stream);
}

// Pipes and sockets.
APENET_EXPORT ssize_t read(int file, void* bytes, std::size_t count) {
  if (count > 0 && !await_socket(file, POLLIN)) return read_from(file, ssize_t{-1});
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  VirtualTimer* const timer = timer_of_file(file);
  if (timer != nullptr && count >= sizeof timer->ends && !await_timer_file(*timer)) return -1;
  ssize_t done = 0;
  {
    const InsideWait inside(file);
    if (inside.is_interrupted()) return interrupted();
    const HostPace pace(pacing_reader(file));
    done = real(file, bytes, count);
  }
  if (timer != nullptr && done > 0) read_timer_ends(*timer, bytes);
  return count == 0 ? done : read_from(file, done);
}
APENET_FILE_CALL(ssize_t, __read_chk, (int file, void* bytes, std::size_t count, std::size_t room), ,
                 (file, bytes, count, room), file, 0, count == 0 || await_socket(file, POLLIN),
                 count == 0 ? done : read_from(file, done))
APENET_FILE_CALL(ssize_t, recv, (int socket, void* bytes, std::size_t count, int flags), ,
                 (socket, bytes, count, flags), socket, flags, await_socket(socket, POLLIN, flags),
                 read_from(socket, done))
APENET_FILE_CALL(ssize_t, __recv_chk,
                 (int socket, void* bytes, std::size_t count, std::size_t room, int flags), ,
                 (socket, bytes, count, room, flags), socket, flags, await_socket(socket, POLLIN, flags),
                 read_from(socket, done))
APENET_FILE_CALL(ssize_t, recvfrom,
                 (int socket, void* bytes, std::size_t count, int flags, sockaddr* address,
                  socklen_t* length),
                 , (socket, bytes, count, flags, address, length), socket, flags,
                 await_socket(socket, POLLIN, flags), read_from(socket, done))
APENET_FILE_CALL(ssize_t, recvmsg, (int socket, msghdr* message, int flags), , (socket, message, flags),
                 socket, flags, await_socket(socket, POLLIN, message, flags), read_from(socket, done))
APENET_FILE_CALL(int, accept, (int socket, sockaddr* address, socklen_t* length), , (socket, address, length),
                 socket, 0, await_connection(socket), accepted(socket, done))
APENET_FILE_CALL(int, accept4, (int socket, sockaddr* address, socklen_t* length, int flags), ,
                 (socket, address, length, flags), socket, 0, await_connection(socket),
                 accepted(socket, done))

// The result of a connection that was begun without a wait.
APENET_EXPORT int getsockopt(int socket, int level, int name, void* value, socklen_t* length) noexcept {
  static const auto real = next<int (*)(int, int, int, void*, socklen_t*)>("getsockopt");
  const int result = real(socket, level, name, value, length);
  const bool asks = result == 0 && level == SOL_SOCKET && name == SO_ERROR && *length == sizeof(int);
  if (asks && *static_cast<const int*>(value) == ECONNREFUSED) note_check(ipc::OutsideCause::connection, 1);
  return result;
}

}  // namespace apenet::shim
