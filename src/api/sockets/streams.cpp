// The C library's streams on a simulated socket: its own reads and writes go past this library.
#include "api/sockets/streams.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "api/sockets/known_sockets.hpp"

namespace apenet::sockets {
namespace {

void* as_cookie(int file) {
  return reinterpret_cast<void*>(static_cast<std::intptr_t>(file));  // NOLINT(performance-no-int-to-ptr)
}

int file_of(void* cookie) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(cookie));
}

FILE* open_stream(int file, const char* mode) {
  const cookie_io_functions_t functions = {
      .read = [](void* cookie, char* data,
                 std::size_t bytes) { return ::read(file_of(cookie), data, bytes); },
      .write =
          [](void* cookie, const char* data, std::size_t bytes) {
            const ssize_t written = ::write(file_of(cookie), data, bytes);
            return written < 0 ? ssize_t{0} : written;
          },
      .seek = nullptr,
      .close = [](void* cookie) { return ::close(file_of(cookie)); },
  };
  FILE* const stream = fopencookie(as_cookie(file), mode, functions);
  if (stream != nullptr) stream->_fileno = file;  // for fileno()
  return stream;
}

}  // namespace

void take_over_standard_stream(int file) {
  if (!is_simulated(file)) return;
  if (file == STDIN_FILENO) {
    if (FILE* const stream = open_stream(file, "r")) stdin = stream;
  } else if (file == STDOUT_FILENO) {
    std::fflush(stdout);
    if (FILE* const stream = open_stream(file, "w")) stdout = stream;
  }
}

APENET_SOCKETS_EXPORT FILE* fdopen(int file, const char* mode) noexcept {
  static const auto real = next<decltype(&::fdopen)>("fdopen");
  return is_simulated(file) ? open_stream(file, mode) : real(file, mode);
}

}  // namespace apenet::sockets
