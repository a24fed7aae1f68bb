#include "runtime/supervisor/start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

namespace apenet::supervisor {
namespace {

constexpr std::size_t streams = 3;
constexpr int beyond_streams = 10;

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> found;
  found.reserve(texts.size() + 1);
  for (const std::string& text : texts) found.push_back(const_cast<char*>(text.c_str()));
  return found;
}

// Runs in the child of vfork(), which shares the caller's memory until execve(): makes only system calls.
int become(const char* program, char* const* arguments, char* const* environment,
           const PlannedProcess& process, pid_t supervisor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != supervisor) return ESRCH;
  setpgid(0, 0);
  std::array<int, streams> sources{};
  for (std::size_t i = 0; i < streams; ++i) {
    sources[i] = process.descriptors[i];
    // Move a source out of the range 0 to 2, because an earlier dup2() could overwrite it.
    if (sources[i] < beyond_streams) sources[i] = fcntl(sources[i], F_DUPFD_CLOEXEC, beyond_streams);
    if (sources[i] < 0) return errno;
  }
  for (std::size_t i = 0; i < streams; ++i) {
    if (dup2(sources[i], static_cast<int>(i)) < 0) return errno;
  }
  for (std::size_t i = streams; i < process.descriptors.size(); ++i) {
    const int number = process.numbers[i];
    const bool stays = number == process.descriptors[i];
    if ((stays ? fcntl(number, F_SETFD, 0) : dup2(process.descriptors[i], number)) < 0) return errno;
  }
  // The simulator runs in Python, which ignores these signals; a program expects the default.
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(program, arguments, environment);
  return errno;
}

}  // namespace

int start(const Plan& plan, const PlannedProcess& process, const std::vector<std::string>& extra) {
  std::vector<char*> arguments = pointers(plan.arguments);
  arguments.push_back(nullptr);
  std::vector<char*> environment = pointers(plan.environment);
  for (const auto* more : {&process.environment, &extra}) {
    for (char* variable : pointers(*more)) environment.push_back(variable);
  }
  environment.push_back(nullptr);
  const pid_t supervisor = getpid();
  volatile int error = 0;
  const pid_t child = vfork();  // NOLINT(bugprone-unsafe-functions): posix_spawn cannot do what become() does
  if (child < 0) return -errno;
  if (child == 0) {
    error = become(plan.program.c_str(), arguments.data(), environment.data(), process, supervisor);
    _exit(127);
  }
  if (error != 0) {
    waitpid(child, nullptr, 0);
    return -error;
  }
  return child;
}

}  // namespace apenet::supervisor
