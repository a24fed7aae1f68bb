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

}  // namespace

bool reap(const Ended& ended) {
  for (;;) {
    int status = 0;
    const pid_t process_id = waitpid(-1, &status, WNOHANG | __WALL);
    if (process_id == 0) return true;
    if (process_id < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    ended(process_id, status);
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
