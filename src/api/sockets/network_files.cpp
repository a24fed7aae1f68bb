// Files of the kernel that list the host's interfaces. The nodes have no IPv6, so the list of its addresses
// does not exist there: Open MPI and Java would take those of the host for theirs.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "api/sockets/simulated_socket.hpp"

namespace apenet::sockets {
namespace {

// The host has read the path.
bool is_missing(const char* path) {
  constexpr auto missing = std::to_array<std::string_view>({"/proc/net/if_inet6", "/proc/self/net/if_inet6"});
  if (std::find(missing.begin(), missing.end(), path) == missing.end()) return false;
  const ipc::Header* const machine = ipc::Client::header_of_run();
  return machine != nullptr && machine->has_sockets != 0;
}

FILE* opened(FILE* stream, const char* path) {
  if (stream == nullptr || !is_missing(path)) return stream;
  std::fclose(stream);
  errno = ENOENT;
  return nullptr;
}

int opened(int file, const char* path) {
  if (file < 0 || !is_missing(path)) return file;
  ::close(file);
  errno = ENOENT;
  return -1;
}

mode_t mode_of(int flags, std::va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

#define APENET_REAL(name) static const auto real = next<decltype(&::name)>(#name)
#define APENET_MODE(flags)                       \
  std::va_list arguments;                        \
  va_start(arguments, flags);                    \
  const mode_t mode = mode_of(flags, arguments); \
  va_end(arguments)

APENET_SOCKETS_EXPORT FILE* fopen(const char* path, const char* mode) {
  APENET_REAL(fopen);
  return opened(real(path, mode), path);
}

APENET_SOCKETS_EXPORT FILE* fopen64(const char* path, const char* mode) {
  APENET_REAL(fopen64);
  return opened(real(path, mode), path);
}

APENET_SOCKETS_EXPORT int open(const char* path, int flags, ...) {
  APENET_REAL(open);
  APENET_MODE(flags);
  return opened(real(path, flags, mode), path);
}

APENET_SOCKETS_EXPORT int open64(const char* path, int flags, ...) {
  APENET_REAL(open64);
  APENET_MODE(flags);
  return opened(real(path, flags, mode), path);
}

APENET_SOCKETS_EXPORT int openat(int folder, const char* path, int flags, ...) {
  APENET_REAL(openat);
  APENET_MODE(flags);
  return opened(real(folder, path, flags, mode), path);
}

APENET_SOCKETS_EXPORT int openat64(int folder, const char* path, int flags, ...) {
  APENET_REAL(openat64);
  APENET_MODE(flags);
  return opened(real(folder, path, flags, mode), path);
}

}  // namespace apenet::sockets
