#include "runtime/ipc/recording.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace apenet::ipc {

int open_recording(const char* path) {
  const int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) fail_recording(path);
  return fd;
}

void fail_recording(const char* what) {
  std::fprintf(stderr, "apenet: the recording of this run cannot be written: %s: %s\n", what,
               std::strerror(errno));
  std::_Exit(1);
}

}  // namespace apenet::ipc
