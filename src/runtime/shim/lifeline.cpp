// Ends every process of the run when the simulator is gone, even when the supervisor was killed with it.
//
// The simulator holds the only writing end of a pipe. Each process of the run opens the reading end and asks
// the system to send it SIGKILL when the state of the pipe changes. Nothing is ever written, so the only
// change is the end of the simulator. This costs nothing while the program runs, needs no helper process that
// could be killed, and also works for processes that start a session or lose their parent.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

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
constexpr std::uint64_t first_number = 200;          // above the descriptors that shells and programs use

struct Lifeline {
  std::array<char, 64> path{};  // kept: getenv() is unsafe in the child of a threaded process
  int fd = -1;
};

Lifeline& lifeline() {
  static Lifeline value;
  return value;
}

// Opens the pipe and asks for the signal. Uses system calls only, because it also runs in a forked child.
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
  // The simulator may have ended before the signal was set up.
  pollfd gone{.fd = own.fd, .events = 0, .revents = 0};
  if (apenet::ipc::poll_now(&gone, 1) > 0 && (gone.revents & POLLHUP) != 0)
    host_call(SYS_kill, host_call(SYS_getpid, 0, 0), SIGKILL);
}

// Replaces the inherited descriptor, whose signal would go to the parent process. Leaves the descriptor open
// if the program uses its number for another file.
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
