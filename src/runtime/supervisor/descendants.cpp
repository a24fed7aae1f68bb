#include "runtime/supervisor/descendants.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

// What /proc says of a process.
struct Status {
  std::string name;
  std::string fields;  // behind the name; the first is the state
};

Status status_of(const char* process_id) {
  const std::string path = std::string("/proc/") + process_id + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 512> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  close(fd);
  if (count <= 0) return {};
  const std::string_view line(buffer.data(), static_cast<std::size_t>(count));
  const std::size_t name_begin = line.find('(');
  const std::size_t name_end = line.rfind(')');  // the program name may contain any character
  if (name_end == std::string_view::npos || line.size() < name_end + 5) return {};
  return {std::string(line.substr(name_begin + 1, name_end - name_begin - 1)),
          std::string(line.substr(name_end + 2))};
}

// Returns the parent of a running process; 0 if the process has ended.
int parent_of(const char* process_id) {
  const Status status = status_of(process_id);
  const std::string_view fields = status.fields;
  return fields.empty() || fields[0] == 'Z' || fields[0] == 'X' ? 0 : number(fields.substr(2));
}

// Field `wanted` of a stat file, numbered as in proc(5), from the state on, the 3rd.
int field_of(std::string_view fields, int wanted) {
  for (int field = 3; field < wanted && !fields.empty(); ++field)
    fields.remove_prefix(std::min(fields.find(' '), fields.size() - 1) + 1);
  return number(fields);
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

Notice notice_of(const siginfo_t& child) {
  constexpr int minor_faults_of_children = 11;
  constexpr int major_faults_of_children = 13;
  Notice notice{.what = Notice::What::ended, .process_id = child.si_pid, .status = wait_status(child)};
  const Status status = status_of(std::to_string(child.si_pid).c_str());
  status.name.copy(notice.name, sizeof notice.name - 1);
  notice.child_faults = static_cast<std::uint32_t>(field_of(status.fields, minor_faults_of_children) +
                                                   field_of(status.fields, major_faults_of_children));
  return notice;
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
    ended(notice_of(child));
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
