// Tells OutsideWait (outside_waits.hpp) of calls that check for a file or a named object and do not find it.
//
// Nothing is changed: each function calls that of the C library and returns its result. A check that finds
// what it asks for costs a comparison.
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <mqueue.h>
#include <semaphore.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "runtime/shim/checked_calls.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/outside_waits.hpp"
#include "runtime/shim/process_images.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

// A call that names a file has failed for a reason that may go away.
void note_failed(int folder, const char* path) {
  const int error = errno;
  switch (error) {
    case ENOENT:
      note_file_check(folder, path, Presence::absent, static_cast<std::uint64_t>(error));
      break;
    case EEXIST:
      note_file_check(folder, path, Presence::there, static_cast<std::uint64_t>(error));
      break;
    case ENOTDIR:
    case ENXIO:
    case ENODATA:
    case EACCES:
    case EPERM:
    case EBUSY:
    case ETXTBSY:
    case ENOTEMPTY:
    case EAGAIN:
      note_file_check(folder, path, Presence::refused, static_cast<std::uint64_t>(error));
      break;
    default:
      break;
  }
  errno = error;
}

// What a call that names a file does if it succeeds.
enum class FileUse : std::uint8_t {
  find,
  open,  // also makes it if it is not there
  make,  // fails if it is there
  take,  // moves or removes it
};

template <FileUse use, typename Result>
Result used(int folder, const char* path, Result result) {
  if (result < 0) {
    note_failed(folder, path);
    return result;
  }
  if (use == FileUse::find || use == FileUse::take) note_file_found(folder, path);
  if (use == FileUse::make) note_file_gone(folder, path);
  if (use != FileUse::find) forget_check();
  return result;
}

int opened_with(int flags, int folder, const char* path, int file) {
  if ((flags & O_CREAT) == 0) return used<FileUse::find>(folder, path, file);
  return (flags & O_EXCL) != 0 ? used<FileUse::make>(folder, path, file)
                               : used<FileUse::open>(folder, path, file);
}

// A call that lists what is in a folder.
template <typename Result>
Result listed(const char* path, Result result) {
  if (result < 0) {
    note_failed(AT_FDCWD, path);
  } else {
    note_folder_check(path);
  }
  return result;
}

template <typename Object>
Object* opened(const char* path, Object* result) {
  used<FileUse::find>(AT_FDCWD, path, is_null(result) ? -1 : 0);
  return result;
}

FILE* opened_as(const char* path, const char* mode, FILE* result) {
  if (result == nullptr || mode[0] == 'r') return opened(path, result);
  forget_check();
  return result;
}

// A check of a file without opening it, which may also wait for its end.
int asked_for(int folder, const char* path, int result) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) note_file_check(folder, path, Presence::there, 0);
  return result;
}

template <typename Status>
int checked_status(int folder, const char* path, int result, const Status* status) {
  if (result < 0) note_failed(folder, path);
  if (result == 0) note_file_check(folder, path, Presence::there, state_of(*status));
  return result;
}

template <typename Result>
Result named(const char* name, Result result, bool is_found) {
  note_object_check(name, is_found);
  return result;
}

int keyed(key_t key, int result) {
  const auto subject = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) + 1;
  if (result >= 0) {
    note_found(OutsideCause::object, subject);
  } else if (errno == ENOENT || errno == EEXIST) {
    note_check(OutsideCause::object, subject);
  }
  return result;
}

}  // namespace

// Files. The names without declarations are those of older C libraries, of files of 64 bits, and of programs
// built with _FORTIFY_SOURCE.
APENET_CHECK(int, access, (const char* path, int mode), noexcept, (path, mode),
             asked_for(AT_FDCWD, path, done))
APENET_CHECK(int, euidaccess, (const char* path, int mode), noexcept, (path, mode),
             asked_for(AT_FDCWD, path, done))
APENET_CHECK(int, eaccess, (const char* path, int mode), noexcept, (path, mode),
             asked_for(AT_FDCWD, path, done))
APENET_CHECK(int, faccessat, (int folder, const char* path, int mode, int flags), noexcept,
             (folder, path, mode, flags), asked_for(folder, path, done))
#define APENET_STATUS_CHECKS(suffix)                                                                         \
  APENET_CHECK(int, stat##suffix, (const char* path, struct stat##suffix* status), noexcept, (path, status), \
               checked_status(AT_FDCWD, path, done, status))                                                 \
  APENET_CHECK(int, lstat##suffix, (const char* path, struct stat##suffix* status), noexcept,                \
               (path, status), checked_status(AT_FDCWD, path, done, status))                                 \
  APENET_CHECK(int, fstatat##suffix, (int folder, const char* path, struct stat##suffix* status, int flags), \
               noexcept, (folder, path, status, flags), checked_status(folder, path, done, status))          \
  APENET_CHECK(int, __xstat##suffix, (int version, const char* path, struct stat##suffix* status), ,         \
               (version, path, status), checked_status(AT_FDCWD, path, done, status))                        \
  APENET_CHECK(int, __lxstat##suffix, (int version, const char* path, struct stat##suffix* status), ,        \
               (version, path, status), checked_status(AT_FDCWD, path, done, status))                        \
  APENET_CHECK(int, __fxstatat##suffix,                                                                      \
               (int version, int folder, const char* path, struct stat##suffix* status, int flags), ,        \
               (version, folder, path, status, flags), checked_status(folder, path, done, status))
APENET_STATUS_CHECKS()
APENET_STATUS_CHECKS(64)
APENET_CHECK(int, statx, (int folder, const char* path, int flags, unsigned mask, struct statx* status),
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
#define APENET_OPEN_CHECKS(suffix)                                                        \
  APENET_EXPORT int open##suffix(const char* path, int flags, ...) {                      \
    static const auto real = next<int (*)(const char*, int, ...)>("open" #suffix);        \
    APENET_MODE(flags)                                                                    \
    const HostPace pace(pacing_opener(AT_FDCWD, path));                                   \
    const int file = real(path, flags, mode);                                             \
    return opened_with(flags, AT_FDCWD, path, file);                                      \
  }                                                                                       \
  APENET_EXPORT int openat##suffix(int folder, const char* path, int flags, ...) {        \
    static const auto real = next<int (*)(int, const char*, int, ...)>("openat" #suffix); \
    APENET_MODE(flags)                                                                    \
    const HostPace pace(pacing_opener(folder, path));                                     \
    const int file = real(folder, path, flags, mode);                                     \
    return opened_with(flags, folder, path, file);                                        \
  }                                                                                       \
  APENET_CHECK(int, __open##suffix##_2, (const char* path, int flags), , (path, flags),   \
               used<FileUse::find>(AT_FDCWD, path, done))                                 \
  APENET_CHECK(int, __openat##suffix##_2, (int folder, const char* path, int flags), ,    \
               (folder, path, flags), used<FileUse::find>(folder, path, done))            \
  APENET_EXPORT FILE* fopen##suffix(const char* path, const char* mode) {                 \
    static const auto real = next<FILE* (*)(const char*, const char*)>("fopen" #suffix);  \
    APENET_HOST_CALLER;                                                                   \
    const HostPace pace(pacing_opener(AT_FDCWD, path));                                   \
    return opened_as(path, mode, real(path, mode));                                       \
  }
APENET_OPEN_CHECKS()
APENET_OPEN_CHECKS(64)
APENET_CHECK(int, creat, (const char* path, mode_t mode), , (path, mode),
             used<FileUse::open>(AT_FDCWD, path, done))
APENET_CHECK(int, creat64, (const char* path, mode_t mode), , (path, mode),
             used<FileUse::open>(AT_FDCWD, path, done))
APENET_CHECK(int, mkdir, (const char* path, mode_t mode), noexcept, (path, mode),
             used<FileUse::make>(AT_FDCWD, path, done))
APENET_CHECK(int, mkdirat, (int folder, const char* path, mode_t mode), noexcept, (folder, path, mode),
             used<FileUse::make>(folder, path, done))
APENET_CHECK(int, mkfifo, (const char* path, mode_t mode), noexcept, (path, mode),
             used<FileUse::make>(AT_FDCWD, path, done))
APENET_CHECK(int, link, (const char* path, const char* name), noexcept, (path, name),
             used<FileUse::make>(AT_FDCWD, name, done))
APENET_CHECK(int, linkat, (int folder, const char* path, int to, const char* name, int flags), noexcept,
             (folder, path, to, name, flags), used<FileUse::make>(to, name, done))
APENET_CHECK(int, symlink, (const char* path, const char* name), noexcept, (path, name),
             used<FileUse::make>(AT_FDCWD, name, done))
APENET_CHECK(int, symlinkat, (const char* path, int folder, const char* name), noexcept, (path, folder, name),
             used<FileUse::make>(folder, name, done))
APENET_CHECK(int, rename, (const char* path, const char* name), noexcept, (path, name),
             used<FileUse::take>(AT_FDCWD, path, done))
APENET_CHECK(int, renameat, (int folder, const char* path, int to, const char* name), noexcept,
             (folder, path, to, name), used<FileUse::take>(folder, path, done))
APENET_CHECK(int, unlink, (const char* path), noexcept, (path), used<FileUse::take>(AT_FDCWD, path, done))
APENET_CHECK(int, unlinkat, (int folder, const char* path, int flags), noexcept, (folder, path, flags),
             used<FileUse::take>(folder, path, done))
APENET_CHECK(int, remove, (const char* path), noexcept, (path), used<FileUse::take>(AT_FDCWD, path, done))
APENET_CHECK(int, rmdir, (const char* path), noexcept, (path), used<FileUse::take>(AT_FDCWD, path, done))
APENET_CHECK(int, chdir, (const char* path), noexcept, (path), used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(ssize_t, readlink, (const char* path, char* target, std::size_t bytes), noexcept,
             (path, target, bytes), used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(ssize_t, readlinkat, (int folder, const char* path, char* target, std::size_t bytes), noexcept,
             (folder, path, target, bytes), used<FileUse::find>(folder, path, done))
APENET_CHECK(ssize_t, __readlink_chk, (const char* path, char* target, std::size_t bytes, std::size_t room), ,
             (path, target, bytes, room), used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(char*, realpath, (const char* path, char* resolved), noexcept, (path, resolved),
             opened(path, done))

// Names that fit a pattern.
#define APENET_GLOB(suffix)                                                                            \
  APENET_EXPORT int glob##suffix(const char* pattern, int flags, int (*failed)(const char*, int),      \
                                 glob##suffix##_t* found) {                                            \
    static const auto real =                                                                           \
        next<int (*)(const char*, int, int (*)(const char*, int), glob##suffix##_t*)>("glob" #suffix); \
    const int result = real(pattern, flags, failed, found);                                            \
    if (result == GLOB_NOMATCH) {                                                                      \
      note_file_check(AT_FDCWD, pattern, Presence::refused, 0);                                        \
    } else {                                                                                           \
      note_file_found(AT_FDCWD, pattern);                                                              \
    }                                                                                                  \
    return result;                                                                                     \
  }
APENET_GLOB()
APENET_GLOB(64)

// A folder whose entries may change.
APENET_EXPORT DIR* opendir(const char* path) {
  static const auto real = next<DIR* (*)(const char*)>("opendir");
  DIR* folder = opened(path, real(path));
  if (folder != nullptr) note_folder_check(path);
  return folder;
}

// Calls that need a file which another process makes.
APENET_CHECK(int, truncate, (const char* path, off_t bytes), noexcept, (path, bytes),
             used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(int, chmod, (const char* path, mode_t mode), noexcept, (path, mode),
             used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(int, utimensat, (int folder, const char* path, const timespec* times, int flags), noexcept,
             (folder, path, times, flags), used<FileUse::find>(folder, path, done))
APENET_CHECK(int, statvfs, (const char* path, struct statvfs* status), noexcept, (path, status),
             used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(int, statvfs64, (const char* path, struct statvfs64* status), noexcept, (path, status),
             used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(FILE*, freopen, (const char* path, const char* mode, FILE* stream), , (path, mode, stream),
             opened_as(path, mode, done))
APENET_CHECK(FILE*, freopen64, (const char* path, const char* mode, FILE* stream), , (path, mode, stream),
             opened_as(path, mode, done))

// Trees of folders, each in one call.
#define APENET_TREE_CHECKS(suffix)                                                                         \
  APENET_CHECK(int, ftw##suffix, (const char* path, __ftw##suffix##_func_t visit, int files), ,            \
               (path, visit, files), listed(path, done))                                                   \
  APENET_CHECK(int, nftw##suffix, (const char* path, __nftw##suffix##_func_t visit, int files, int how), , \
               (path, visit, files, how), listed(path, done))                                              \
  APENET_EXPORT int scandir##suffix(const char* path, dirent##suffix*** names,                             \
                                    int (*takes)(const dirent##suffix*),                                   \
                                    int (*compares)(const dirent##suffix**, const dirent##suffix**)) {     \
    static const auto real = next<decltype(&scandir##suffix)>("scandir" #suffix);                          \
    return listed(path, real(path, names, takes, compares));                                               \
  }
APENET_TREE_CHECKS()
APENET_TREE_CHECKS(64)
APENET_EXPORT FTS* fts_open(char* const* paths, int options,
                            int (*compares)(const FTSENT**, const FTSENT**)) {
  static const auto real = next<decltype(&fts_open)>("fts_open");
  FTS* const trees = real(paths, options, compares);
  if (trees != nullptr) listed(paths[0], 0);
  return trees;
}

// Attributes that another process sets.
APENET_CHECK(ssize_t, getxattr, (const char* path, const char* name, void* value, std::size_t bytes),
             noexcept, (path, name, value, bytes), used<FileUse::find>(AT_FDCWD, path, done))
APENET_CHECK(ssize_t, lgetxattr, (const char* path, const char* name, void* value, std::size_t bytes),
             noexcept, (path, name, value, bytes), used<FileUse::find>(AT_FDCWD, path, done))

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
  sem_t* const made = real(name, flags, mode, value);
  if ((flags & O_EXCL) != 0 && made != SEM_FAILED) note_made(NamedObject::semaphore, name);
  return made;
}
APENET_EXPORT int sem_unlink(const char* name) noexcept {
  static const auto real = next<int (*)(const char*)>("sem_unlink");
  const int result = real(name);
  if (result == 0) note_removed(NamedObject::semaphore, name);
  return result;
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
APENET_CHECK(mqd_t, __mq_open_2, (const char* name, int flags), , (name, flags), named(name, done, done >= 0))
APENET_CHECK(int, shmget, (key_t key, std::size_t bytes, int flags), noexcept, (key, bytes, flags),
             keyed(key, done))
APENET_CHECK(int, semget, (key_t key, int count, int flags), noexcept, (key, count, flags), keyed(key, done))
APENET_CHECK(int, msgget, (key_t key, int flags), noexcept, (key, flags), keyed(key, done))

}  // namespace apenet::shim
