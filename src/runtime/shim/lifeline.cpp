// Ends every process of the run when the simulator is gone, even when the warden was killed with it.
//
// The simulator holds the only writing end of a pipe. Each process of the run opens the reading end and asks
// the system for SIGKILL when the pipe changes: nothing is ever written, so that is when the simulator ends.
// It costs nothing while the program runs, no process can be killed to prevent it, and neither a session of
// its own nor a lost parent takes a process out of it.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/ipc/host_call.hpp"

namespace {

using apenet::ipc::host_call;

constexpr const char* variable = "APENET_LIFELINE";  // path of the pipe, /proc/PID/fd/N
constexpr std::uint64_t first_number = 200;  // beyond the descriptors that shells and programs count on

struct Lifeline {
  std::array<char, 64> path{};  // a child of a threaded process may not ask for the environment
  int fd = -1;
};

Lifeline& lifeline() {
  static Lifeline value;
  return value;
}

// System calls alone: it also runs in the child of a fork.
void hold() {
  Lifeline& own = lifeline();
  const int opened = host_call(SYS_openat, AT_FDCWD, own.path.data(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return;
  const int moved = host_call(SYS_fcntl, opened, F_DUPFD_CLOEXEC, first_number);
  own.fd = moved < 0 ? opened : moved;
  if (moved >= 0) host_call(SYS_close, opened, 0);
  host_call(SYS_fcntl, own.fd, F_SETOWN, static_cast<std::uint64_t>(host_call(SYS_getpid, 0, 0)));
  host_call(SYS_fcntl, own.fd, F_SETSIG, std::uint64_t{SIGKILL});
  host_call(SYS_fcntl, own.fd, F_SETFL, O_RDONLY | O_NONBLOCK | O_ASYNC);
  // It may have been closed just before.
  pollfd gone{.fd = own.fd, .events = 0, .revents = 0};
  if (host_call(SYS_poll, &gone, 1, 0) > 0 && (gone.revents & POLLHUP) != 0)
    host_call(SYS_kill, host_call(SYS_getpid, 0, 0), SIGKILL);
}

// The inherited descriptor asks for its parent's end. The program may have used its number for another file.
void hold_in_child() {
  const int before = errno;
  const int fd = lifeline().fd;
  if (fd >= 0 && host_call(SYS_fcntl, fd, F_GETSIG) == SIGKILL) host_call(SYS_close, fd, 0);
  lifeline().fd = -1;
  hold();
  errno = before;
}

__attribute__((constructor)) void begin() {
  const char* path = std::getenv(variable);
  if (path == nullptr || std::strlen(path) >= lifeline().path.size()) return;
  std::strcpy(lifeline().path.data(), path);
  hold();
  pthread_atfork(nullptr, nullptr, hold_in_child);
}

}  // namespace
