#include "runtime/launch/host_thread.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "runtime/ipc/old_calls.hpp"
#include "runtime/scheduler/process_ids.hpp"
#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

namespace fs = std::filesystem;

std::string process_path(int process_id) {
  return "/proc/" + std::to_string(process_id);
}

std::string task_path(int process_id, int thread_id) {
  return process_path(process_id) + "/task/" + std::to_string(thread_id);
}

// Returns the numeric entries of a /proc folder, sorted.
std::vector<int> numbers_in(const std::string& path) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    int number = 0;
    const auto [stop, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure == std::errc() && stop == name.data() + name.size()) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Returns the fields of a stat file after the program name. Searches for the last ')', because the name may
// contain any character.
std::istringstream stat_fields(const std::string& text) {
  const std::size_t name_end = text.rfind(')');
  return std::istringstream(name_end == std::string::npos ? std::string{} : text.substr(name_end + 1));
}

// Skips the fields `first` to `end` - 1, numbered as in proc(5); 14 is utime.
void skip_fields(std::istringstream& fields, int first, int end) {
  std::string skipped;
  for (int field = first; field < end; ++field) fields >> skipped;
}

// Like meeting_point(), for one file descriptor.
std::string meeting_file(int process_id, std::uint64_t fd) {
  const std::string path = process_path(process_id) + "/fd/" + std::to_string(fd);
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  if (S_ISSOCK(status.st_mode)) return "a socket";
  return S_ISFIFO(status.st_mode) ? "a pipe or fifo" : "";
}

int first_polled(int process_id, std::uint64_t address) {
  pollfd polled{.fd = -1, .events = 0, .revents = 0};
  iovec here{&polled, sizeof polled};
  // The address belongs to the other process.
  iovec there{reinterpret_cast<void*>(address), sizeof polled};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(process_id, &here, 1, &there, 1, 0) == sizeof polled ? polled.fd : -1;
}

// A number in /proc/ID/status, of a process or thread; 0 if there is none.
int status_number(int id, std::string_view key) {
  std::ifstream lines(process_path(id) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return static_cast<int>(std::strtol(line.c_str() + key.size(), nullptr, 10));
  }
  return 0;
}

}  // namespace

std::optional<ThreadState> thread_state(int process_id, int thread_id) {
  const std::string path = task_path(process_id, thread_id);
  const std::string text = text_of_file(path + "/stat");
  ThreadState state;
  std::istringstream fields = stat_fields(text);
  if (!(fields >> state.state)) return std::nullopt;
  const std::size_t name = text.find('(');
  state.name = validation::printable(text.substr(name + 1, text.rfind(')') - name - 1));
  skip_fields(fields, 4, 14);
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  std::istringstream precise(text_of_file(path + "/schedstat"));
  if (!(precise >> state.used_ns)) {
    state.used_ns = (user + system) * (1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
  }
  return state;
}

std::chrono::nanoseconds runnable_time(int process_id, int thread_id) {
  std::istringstream fields(text_of_file(task_path(process_id, thread_id) + "/schedstat"));
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;
  fields >> ran_ns >> waited_ns;
  return std::chrono::nanoseconds(ran_ns + waited_ns);
}

SystemCall system_call(int process_id, int thread_id) {
  return ipc::parse_system_call(text_of_file(task_path(process_id, thread_id) + "/syscall"));
}

int tracer_of(int process_id) {
  return status_number(process_id, "TracerPid:");
}

int process_of(int thread_id) {
  return status_number(thread_id, "Tgid:");
}

std::optional<Pulse> pulse_of(int process_id, int thread_id) {
  std::ifstream file(task_path(process_id, thread_id) + "/status");
  Pulse pulse;
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string key;
    fields >> key;
    if (key == "State:") found += fields >> pulse.state ? 1 : 0;
    if (key == "voluntary_ctxt_switches:") found += fields >> pulse.waits ? 1 : 0;
    if (key == "nonvoluntary_ctxt_switches:") found += fields >> pulse.preemptions ? 1 : 0;
  }
  if (found != 3) return std::nullopt;
  return pulse;
}

std::string meeting_point(int process_id, int thread_id, const SystemCall& call) {
  constexpr const char* many = "sockets or pipes";
  constexpr const char* memory = "shared memory";
  constexpr auto last_standard = static_cast<std::uint64_t>(STDERR_FILENO);
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
      return call.arguments[0] <= last_standard ? "" : meeting_file(process_id, call.arguments[0]);
    case ipc::old_call::open:
    case SYS_openat:
      return text_of_file(task_path(process_id, thread_id) + "/wchan") == "wait_for_partner"
                 ? "a pipe or fifo"
                 : "";
    case ipc::old_call::poll:
    case SYS_ppoll:
      return call.arguments[1] == 1 && first_polled(process_id, call.arguments[0]) == STDIN_FILENO ? ""
                                                                                                   : many;
    case ipc::old_call::select:
    case SYS_pselect6:
      return call.arguments[0] == STDIN_FILENO + 1 ? "" : many;
    case ipc::old_call::epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return many;
    case SYS_futex:
      return memory;
    case SYS_restart_syscall: {  // the kernel restarted a timed wait after a signal
      const std::string where = text_of_file(task_path(process_id, thread_id) + "/wchan");
      const bool polls = where.find("poll") != std::string::npos || where.find("select") != std::string::npos;
      return polls ? many : where.starts_with("futex") ? memory : "";
    }
    default:
      return {};
  }
}

std::vector<int> threads_of(int process_id) {
  return numbers_in(process_path(process_id) + "/task");
}

std::vector<int> open_descriptors(int process_id) {
  return numbers_in(process_path(process_id) + "/fd");
}

std::vector<AddressRange> mapped_ranges(int process_id, std::string_view file) {
  std::ifstream maps(process_path(process_id) + "/maps");
  std::vector<AddressRange> ranges;
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(file)) continue;
    std::istringstream fields(line);
    AddressRange range;
    char dash = 0;
    if (fields >> std::hex >> range.begin >> dash >> range.end) ranges.push_back(range);
  }
  return ranges;
}

std::string shared_file_at(int process_id, std::uint64_t address) {
  std::ifstream maps(process_path(process_id) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    AddressRange range;
    char dash = 0;
    std::string access;
    std::string skipped;
    fields >> std::hex >> range.begin >> dash >> range.end >> access >> skipped >> skipped >> skipped >>
        std::ws;
    if (address < range.begin || range.end <= address) continue;
    std::string file;
    std::getline(fields, file);
    return access.size() == 4 && access[3] == 's' ? file : std::string{};
  }
  return {};
}

std::vector<int> children_of(int process_id) {
  std::vector<int> children;
  for (const int thread : threads_of(process_id)) {
    std::istringstream listed(process_file(process_id, "task/" + std::to_string(thread) + "/children"));
    for (int child = 0; listed >> child;) children.push_back(child);
  }
  return children;
}

std::string process_file(int process_id, const std::string& name) {
  return text_of_file(process_path(process_id) + "/" + name);
}

std::vector<HostProcess> host_processes() {
  std::vector<HostProcess> processes;
  for (const int process_id : numbers_in("/proc")) {
    std::istringstream fields = stat_fields(text_of_file(process_path(process_id) + "/stat"));
    HostProcess process{.process_id = process_id};
    if (!(fields >> process.state >> process.parent_id >> process.group_id)) continue;
    skip_fields(fields, 6, 14);
    std::int64_t user_ticks = 0;
    std::int64_t system_ticks = 0;
    fields >> user_ticks >> system_ticks;
    process.cpu_ticks = user_ticks + system_ticks;
    processes.push_back(process);
  }
  return processes;
}

std::map<int, std::uint32_t> families(const std::vector<int>& rank_processes) {
  std::map<int, std::uint32_t> family;
  for (std::uint32_t rank = 0; rank < rank_processes.size(); ++rank) {
    if (rank_processes[rank] != 0) family.emplace(rank_processes[rank], rank);
  }
  const std::map<int, std::uint32_t> leaders = family;
  const std::vector<HostProcess> others = host_processes();
  for (bool grows = true; grows;) {
    grows = false;
    for (const HostProcess& process : others) {
      const auto leader = leaders.find(process.group_id);
      const auto parent = family.find(process.parent_id);
      if (leader != leaders.end()) {
        grows = family.emplace(process.process_id, leader->second).second || grows;
      } else if (parent != family.end()) {
        grows = family.emplace(process.process_id, parent->second).second || grows;
      }
    }
  }
  return family;
}

std::set<int> waiting_parents(int root) {
  const std::vector<HostProcess> all = host_processes();
  std::set<int> descendants{root};
  for (std::size_t before = 0; before != descendants.size();) {
    before = descendants.size();
    for (const HostProcess& process : all) {
      if (descendants.contains(process.parent_id)) descendants.insert(process.process_id);
    }
  }
  descendants.erase(root);
  std::erase_if(descendants, [](int process_id) {
    const std::vector<int> threads = threads_of(process_id);
    return threads.empty() || !std::all_of(threads.begin(), threads.end(), [process_id](int thread_id) {
             const SystemCall call = system_call(process_id, thread_id);
             return call.number == SYS_wait4 || (call.number == SYS_waitid && !has_time_limit(call));
           });
  });
  return descendants;
}

}  // namespace apenet
