#include "runtime/supervisor/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace apenet::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(10);

struct Process {
  int id = 0;
  int parent = 0;
};

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the parent of a running process; 0 if the process has ended.
int parent_of(const char* process_id) {
  const std::string path = std::string("/proc/") + process_id + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 512> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (count <= 0) return 0;
  std::string_view line(buffer.data(), static_cast<std::size_t>(count));
  const std::size_t name_end = line.rfind(')');  // the program name may contain any character
  if (name_end == std::string_view::npos || line.size() < name_end + 5) return 0;
  line.remove_prefix(name_end + 2);
  return line[0] == 'Z' || line[0] == 'X' ? 0 : number(line.substr(2));
}

std::vector<Process> running_processes() {
  std::vector<Process> found;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const int id = number(entry->d_name);
    if (id <= 0) continue;
    if (const int parent = parent_of(entry->d_name); parent > 0) found.push_back({id, parent});
  }
  closedir(folder);
  return found;
}

void kill_descendants() {
  const std::vector<Process> all = running_processes();
  std::vector<int> family{getpid()};
  for (std::size_t next = 0; next < family.size(); ++next) {
    for (const Process& process : all) {
      if (process.parent != family[next]) continue;
      kill(process.id, SIGKILL);
      family.push_back(process.id);
    }
  }
}

// Waits until a child ends, at most for `most`.
void wait_for_child(std::chrono::milliseconds most) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  const timespec limit{0, std::chrono::nanoseconds(most).count()};
  sigtimedwait(&child, nullptr, &limit);
}

// As waitpid() gives it.
int wait_status(const siginfo_t& child) {
  if (child.si_code == CLD_EXITED) return W_EXITCODE(child.si_status & 0xff, 0);
  return child.si_code == CLD_DUMPED ? child.si_status | WCOREFLAG : child.si_status;
}

}  // namespace

bool reap(const Ended& ended) {
  for (;;) {
    siginfo_t child{};
    // The process stays until it has been reported: whoever finds it gone also finds the report.
    if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0) {
      if (errno == EINTR) continue;
      return false;
    }
    if (child.si_pid == 0) return true;
    ended(child.si_pid, wait_status(child));
    waitpid(child.si_pid, nullptr, __WALL);
  }
}

void end_descendants(const Ended& ended) {
  const Clock::time_point give_up = Clock::now() + patience;
  while (reap(ended) && Clock::now() < give_up) {
    kill_descendants();
    wait_for_child(std::chrono::milliseconds(20));
  }
}

}  // namespace apenet::supervisor
