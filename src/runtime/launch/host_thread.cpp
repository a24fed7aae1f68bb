#include "runtime/launch/host_thread.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

namespace apenet {
namespace {

namespace fs = std::filesystem;

std::string process_path(int process_id) {
  return "/proc/" + std::to_string(process_id);
}

std::string task_path(int process_id, int thread_id) {
  return process_path(process_id) + "/task/" + std::to_string(thread_id);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
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

std::string link_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string{} : target.string();
}

std::string link_of(int process_id, std::uint64_t fd) {
  return link_of(process_path(process_id) + "/fd/" + std::to_string(fd));
}

// Returns for example ", which ranks 1, 2 have open". Excludes the process itself.
std::string holders(const std::string& link, int process_id, const std::vector<int>& rank_processes) {
  std::string ranks;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < rank_processes.size(); ++rank) {
    const int other = rank_processes[rank];
    if (other == 0 || other == process_id) continue;
    const std::vector<int> fds = numbers_in(process_path(other) + "/fd");
    const bool holds = std::any_of(fds.begin(), fds.end(), [&](int fd) {
      return link_of(other, static_cast<std::uint64_t>(fd)) == link;
    });
    if (!holds) continue;
    ranks += (count++ > 0 ? ", " : "") + std::to_string(rank);
  }
  if (count == 0) return {};
  return count == 1 ? ", which rank " + ranks + " has open" : ", which ranks " + ranks + " have open";
}

// Converts an address of /proc/net/tcp such as "0100007F:1F90" to 127.0.0.1:8080. For IPv6 returns only the
// port.
std::string address_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return text;
  const std::string port = std::to_string(std::stoul("0" + text.substr(colon + 1), nullptr, 16));
  if (colon != 8) return "port " + port;
  const auto bits = static_cast<std::uint32_t>(std::stoul(text.substr(0, 8), nullptr, 16));
  std::string address;
  for (int byte = 0; byte < 4; ++byte)
    address += (byte > 0 ? "." : "") + std::to_string(bits >> 8 * byte & 0xff);
  return address + ":" + port;
}

// Describes a TCP connection and names the rank that holds the other end.
std::string describe_tcp(const std::string& file, const std::string& inode, int process_id,
                         const std::vector<int>& rank_processes) {
  struct Connection {
    std::string local;
    std::string remote;
    std::string inode;
  };
  std::vector<Connection> connections;
  std::ifstream lines(process_path(process_id) + "/net/" + file);
  std::string line;
  std::getline(lines, line);  // skip the column headings
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string skipped;
    Connection connection;
    fields >> skipped >> connection.local >> connection.remote;
    for (int i = 0; i < 6; ++i) fields >> skipped;
    if (fields >> connection.inode) connections.push_back(std::move(connection));
  }
  const auto own = std::find_if(connections.begin(), connections.end(),
                                [&](const Connection& connection) { return connection.inode == inode; });
  if (own == connections.end()) return {};
  const auto other = std::find_if(connections.begin(), connections.end(), [&](const Connection& connection) {
    return connection.local == own->remote && connection.remote == own->local;
  });
  if (own->remote.ends_with(":0000")) return "a TCP socket that listens at " + address_of(own->local);
  std::string text = "a TCP socket, " + address_of(own->local) + " to " + address_of(own->remote);
  if (other != connections.end())
    text += holders("socket:[" + other->inode + "]", process_id, rank_processes);
  return text;
}

std::string describe_socket(const std::string& link, int process_id, const std::vector<int>& rank_processes) {
  const std::string inode = link.substr(8, link.size() - 9);  // the link reads "socket:[N]"
  for (const char* file : {"tcp", "tcp6"}) {
    if (std::string text = describe_tcp(file, inode, process_id, rank_processes); !text.empty()) return text;
  }
  std::ifstream lines(process_path(process_id) + "/net/unix");
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 7; ++i) fields >> field;
    std::string path;
    if (field == inode) return fields >> path ? "the Unix socket " + path : "a Unix socket";
  }
  return "a socket";
}

std::string describe_file(std::uint64_t fd, int process_id, const std::vector<int>& rank_processes) {
  const std::string path = process_path(process_id) + "/fd/" + std::to_string(fd);
  const std::string link = link_of(path);
  if (link.starts_with("socket:[")) return describe_socket(link, process_id, rank_processes);
  if (link.starts_with("pipe:[")) return "a pipe" + holders(link, process_id, rank_processes);
  struct stat status {};
  const bool is_fifo = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (link.empty()) return "a file";
  return (is_fifo ? "the fifo " : "the file ") + link + holders(link, process_id, rank_processes);
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

// Describes the files that an epoll descriptor watches.
std::string describe_epoll(std::uint64_t epoll, int process_id, const std::vector<int>& rank_processes) {
  constexpr int most_named = 3;
  std::ifstream lines(process_path(process_id) + "/fdinfo/" + std::to_string(epoll));
  std::string text;
  std::string line;
  int count = 0;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string key;
    std::uint64_t fd = 0;
    if (!(fields >> key >> fd) || key != "tfd:") continue;
    const std::string link = link_of(process_id, fd);
    // A library uses eventfds and timerfds to wake itself.
    if (link.starts_with("anon_inode:")) continue;
    if (count++ < most_named)
      text += (text.empty() ? "" : "; ") + describe_file(fd, process_id, rank_processes);
  }
  if (count > most_named) text += "; and " + std::to_string(count - most_named) + " more";
  return "waits in epoll_wait" + (text.empty() ? "" : " for " + text);
}

std::string describe_children(int process_id) {
  std::string text;
  for (const HostProcess& process : host_processes()) {
    if (process.parent_id != process_id) continue;
    const auto state = thread_state(process.process_id, process.process_id);
    if (!state || state->state == 'Z') continue;
    text += (text.empty() ? "" : ", ") + state->name;
  }
  return "waits for a process that it has started" + (text.empty() ? "" : ": " + text);
}

}  // namespace

std::optional<ThreadState> thread_state(int process_id, int thread_id) {
  const std::string path = task_path(process_id, thread_id);
  const std::string text = first_line(path + "/stat");
  ThreadState state;
  std::istringstream fields = stat_fields(text);
  if (!(fields >> state.state)) return std::nullopt;
  const std::size_t name = text.find('(');
  state.name = text.substr(name + 1, text.rfind(')') - name - 1);
  skip_fields(fields, 4, 14);
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  fields >> user >> system;
  std::istringstream precise(first_line(path + "/schedstat"));
  if (!(precise >> state.used_ns)) {
    state.used_ns = (user + system) * (1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
  }
  return state;
}

std::chrono::nanoseconds runnable_time(int process_id, int thread_id) {
  std::istringstream fields(first_line(task_path(process_id, thread_id) + "/schedstat"));
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;
  fields >> ran_ns >> waited_ns;
  return std::chrono::nanoseconds(ran_ns + waited_ns);
}

SystemCall system_call(int process_id, int thread_id) {
  return ipc::parse_system_call(first_line(task_path(process_id, thread_id) + "/syscall"));
}

std::optional<Pulse> pulse_of(int process_id, int thread_id) {
  std::ifstream file(task_path(process_id, thread_id) + "/status");
  Pulse pulse;
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string key;
    fields >> key;
    std::uint64_t count = 0;
    if (key == "State:") found += fields >> pulse.state ? 1 : 0;
    if (key != "voluntary_ctxt_switches:" && key != "nonvoluntary_ctxt_switches:") continue;
    found += fields >> count ? 1 : 0;
    pulse.switches += count;
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
    case SYS_open:
    case SYS_openat:
      return first_line(task_path(process_id, thread_id) + "/wchan") == "wait_for_partner" ? "a pipe or fifo"
                                                                                           : "";
    case SYS_poll:
    case SYS_ppoll:
      return call.arguments[1] == 1 && first_polled(process_id, call.arguments[0]) == STDIN_FILENO ? ""
                                                                                                   : many;
    case SYS_select:
    case SYS_pselect6:
      return call.arguments[0] == STDIN_FILENO + 1 ? "" : many;
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return many;
    case SYS_futex:
      return memory;
    case SYS_restart_syscall: {  // the kernel restarted a timed wait after a signal
      const std::string where = first_line(task_path(process_id, thread_id) + "/wchan");
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

std::vector<HostProcess> host_processes() {
  std::vector<HostProcess> processes;
  for (const int process_id : numbers_in("/proc")) {
    std::istringstream fields = stat_fields(first_line(process_path(process_id) + "/stat"));
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

std::string describe_wait(int process_id, int thread_id, const std::vector<int>& rank_processes) {
  const SystemCall call = system_call(process_id, thread_id);
  const auto file = [&](std::uint64_t fd) { return describe_file(fd, process_id, rank_processes); };
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
      return "reads from " + file(call.arguments[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
      return "writes to " + file(call.arguments[0]);
    case SYS_accept:
    case SYS_accept4:
      return "waits for a connection to " + file(call.arguments[0]);
    case SYS_connect:
      return "connects " + file(call.arguments[0]);
    case SYS_flock:
    case SYS_fcntl:
      return "waits for a lock on " + file(call.arguments[0]);
    case SYS_open:
    case SYS_openat:
      return "is blocked in opening a file, such as a fifo whose other end is not open";
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return describe_epoll(call.arguments[0], process_id, rank_processes);
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
      return "waits for files or sockets, in poll or select";
    case SYS_wait4:
    case SYS_waitid:
      return describe_children(process_id);
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
      return "sleeps";
    case SYS_futex:
      return call.arguments[3] == 0 ? "waits for another thread or process, in a futex"
                                    : "waits for another thread or process for a limited time, in a futex";
    default:
      return call.number < 0 ? "is blocked in the host (a read, a lock, another process)"
                             : "is blocked in system call " + std::to_string(call.number);
  }
}

std::string describe_work(const std::vector<int>& rank_processes, std::uint32_t rank) {
  const int process_id = rank_processes[rank];
  const std::vector<int> threads = threads_of(process_id);
  const bool computes = std::any_of(threads.begin(), threads.end(), [process_id](int thread) {
    const auto state = thread_state(process_id, thread);
    return state && state->state == 'R';
  });
  // The process's first thread runs the program's main().
  return computes ? "computes" : describe_wait(process_id, process_id, rank_processes);
}

}  // namespace apenet
