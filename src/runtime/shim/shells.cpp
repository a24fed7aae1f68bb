// system() and popen(). The C library's start their shell past the shim: in a process whose children act in
// its order, these start it by posix_spawn(), which the shim replaces, and wait for it by waitpid().
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/shim/call_notes.hpp"
#include "runtime/shim/child_processes.hpp"
#include "runtime/shim/clocks.hpp"
#include "runtime/shim/real.hpp"
#include "runtime/shim/virtual_timers.hpp"

namespace apenet::shim {
namespace {

constexpr const char* shell = "/bin/sh";

// Whether a shell would act in the order.
bool orders_shells() {
  return clock_client() != nullptr && !is_in_call() && !is_leaving;
}

class SpawnAttributes {
 public:
  SpawnAttributes() { posix_spawnattr_init(&value_); }
  ~SpawnAttributes() { posix_spawnattr_destroy(&value_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  void set_signals(const sigset_t& of_default, const sigset_t& mask) {
    posix_spawnattr_setsigdefault(&value_, &of_default);
    posix_spawnattr_setsigmask(&value_, &mask);
    posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  [[nodiscard]] const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_{};
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&value_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&value_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  void duplicate(int from, int to) { posix_spawn_file_actions_adddup2(&value_, from, to); }
  void close(int file) { posix_spawn_file_actions_addclose(&value_, file); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &value_; }

 private:
  posix_spawn_file_actions_t value_{};
};

// Returns an error number.
int start_shell(pid_t& child, const char* command, const SpawnActions& actions,
                const SpawnAttributes& attributes) {
  const std::array<const char*, 4> arguments = {"sh", "-c", command, nullptr};
  return posix_spawn(&child, shell, actions.get(), attributes.get(),
                     const_cast<char* const*>(arguments.data()), environ);
}

// Its status; -1: another part of the program has waited for it.
int await_shell(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

// While a shell runs, the signals of the terminal are the shell's, and that of its end waits.
class ShellSignals {
 public:
  explicit ShellSignals(SpawnAttributes& attributes) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignored, &interrupt_);
    sigaction(SIGQUIT, &ignored, &quit_);
    sigset_t end;
    sigemptyset(&end);
    sigaddset(&end, SIGCHLD);
    sigprocmask(SIG_BLOCK, &end, &mask_);
    sigset_t of_default;
    sigemptyset(&of_default);
    if (interrupt_.sa_handler != SIG_IGN) sigaddset(&of_default, SIGINT);
    if (quit_.sa_handler != SIG_IGN) sigaddset(&of_default, SIGQUIT);
    attributes.set_signals(of_default, mask_);
  }
  ~ShellSignals() {
    const int error = errno;
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGQUIT, &quit_, nullptr);
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    errno = error;
  }
  ShellSignals(const ShellSignals&) = delete;
  ShellSignals& operator=(const ShellSignals&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction quit_ {};
  sigset_t mask_{};
};

int run_shell(const char* command) {
  SpawnAttributes attributes;
  const SpawnActions actions;
  const ShellSignals signals(attributes);
  pid_t child = 0;
  constexpr int no_shell = 127 << 8;
  if (start_shell(child, command, actions, attributes) != 0) return no_shell;
  return await_shell(child);
}

// The open streams of popen(). Further ones are the C library's.
struct ShellStream {
  std::atomic<FILE*> stream{nullptr};
  std::atomic<pid_t> shell{0};
};

std::array<ShellStream, 64>& shell_streams() {
  static constinit std::array<ShellStream, 64> value{};
  return value;
}

ShellStream* take_free_stream() {
  for (ShellStream& one : shell_streams()) {
    pid_t none = 0;
    if (one.shell.compare_exchange_strong(none, -1)) return &one;
  }
  return nullptr;
}

struct StreamMode {
  bool is_valid = true;
  bool reads = false;
  bool closes = false;  // in programs that the process executes
};

StreamMode parse_mode(const char* text) {
  StreamMode mode;
  bool writes = false;
  for (; *text != '\0'; ++text) {
    mode.reads = mode.reads || *text == 'r';
    writes = writes || *text == 'w';
    mode.closes = mode.closes || *text == 'e';
    mode.is_valid = mode.is_valid && std::strchr("rwe", *text) != nullptr;
  }
  mode.is_valid = mode.is_valid && mode.reads != writes;
  return mode;
}

FILE* open_shell(const char* command, const StreamMode& mode, ShellStream& place) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return nullptr;
  const int own = mode.reads ? ends[0] : ends[1];
  const int other = mode.reads ? ends[1] : ends[0];
  SpawnActions actions;
  for (const ShellStream& one : shell_streams()) {
    FILE* const stream = one.stream.load();
    if (stream != nullptr) actions.close(fileno(stream));
  }
  actions.duplicate(other, mode.reads ? STDOUT_FILENO : STDIN_FILENO);
  const SpawnAttributes attributes;
  pid_t child = 0;
  const int error = start_shell(child, command, actions, attributes);
  close(other);
  FILE* const stream = error == 0 ? fdopen(own, mode.reads ? "r" : "w") : nullptr;
  if (stream == nullptr) {
    const int why = error == 0 ? errno : error;
    close(own);
    errno = why;
    return nullptr;
  }
  if (!mode.closes) fcntl(own, F_SETFD, 0);
  place.shell = child;
  place.stream = stream;
  return stream;
}

}  // namespace

APENET_EXPORT int system(const char* command) {
  if (command == nullptr || !orders_shells()) return host_system(command);
  return run_shell(command);
}

APENET_EXPORT FILE* popen(const char* command, const char* mode) {
  const StreamMode parsed = parse_mode(mode);
  ShellStream* const place = parsed.is_valid && orders_shells() ? take_free_stream() : nullptr;
  if (place == nullptr) return host_popen(command, mode);
  FILE* const stream = open_shell(command, parsed, *place);
  if (stream == nullptr) place->shell = 0;
  return stream;
}

APENET_EXPORT int pclose(FILE* stream) {
  for (ShellStream& one : shell_streams()) {
    FILE* open = stream;
    if (is_null(stream) || !one.stream.compare_exchange_strong(open, nullptr)) continue;
    const pid_t process = one.shell.exchange(0);
    fclose(stream);
    return await_shell(process);
  }
  const HostPace pace(pacing_client());
  return next<int (*)(FILE*)>("pclose")(stream);
}

}  // namespace apenet::shim
