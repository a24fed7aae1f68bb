#include "runtime/launch/host_waits.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/launch/code_places.hpp"

namespace apenet {
namespace {

// The libraries that a thread of an MPI library runs: the C library, those of MPICH, Open MPI and Intel MPI,
// and what they use.
constexpr std::array<std::string_view, 16> mpi_libraries = {
    "libc.so",  "libc-",    "ld-",      "libpthread", "libmpi", "libopen-pal", "libopen-rte", "libpmix",
    "libprrte", "libevent", "libhwloc", "libfabric",  "libpmi", "libucp",      "libuc",       "libapenet"};

constexpr std::size_t most_polled = 1024;

template <typename T>
bool read_values(int process_id, std::uint64_t address, T* values, std::size_t count) {
  iovec here{values, count * sizeof(T)};
  // The address belongs to the other process.
  iovec there{reinterpret_cast<void*>(address), count * sizeof(T)};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(process_id, &here, 1, &there, 1, 0) == static_cast<ssize_t>(count * sizeof(T));
}

std::set<int> processes_of(const std::map<int, std::uint32_t>& family, std::uint32_t rank_count,
                           bool of_ranks) {
  std::set<int> processes;
  for (const auto& [process_id, rank] : family) {
    if ((rank < rank_count) == of_ranks) processes.insert(process_id);
  }
  return processes;
}

}  // namespace

bool is_c_library(const std::string& file) {
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("libpthread") ||
         name.starts_with("ld-");
}

bool is_mpi_library(const std::string& file) {
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  return std::any_of(mpi_libraries.begin(), mpi_libraries.end(),
                     [name](std::string_view library) { return name.starts_with(library); });
}

bool is_library_thread(int process_id, int thread_id) {
  constexpr std::size_t examined_bytes = 64 << 10;
  if (process_id == thread_id) return false;  // it runs main()
  const SystemCall call = system_call(process_id, thread_id);
  if (call.stack == 0) return false;
  const CodePlaces places(process_id);
  const std::vector<std::uint64_t> calls = places.calls_on_stack(call.stack, examined_bytes);
  bool any_mpi = false;
  for (const std::uint64_t address : calls) {
    const std::string file = places.file_of(address);
    if (!is_mpi_library(file)) return false;
    any_mpi = any_mpi || !is_c_library(file);
  }
  return any_mpi;
}

std::vector<int> watched_by_epoll(int process_id, std::uint64_t epoll) {
  std::ifstream lines("/proc/" + std::to_string(process_id) + "/fdinfo/" + std::to_string(epoll));
  std::vector<int> watched;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string key;
    int fd = 0;
    if (fields >> key >> fd && key == "tfd:") watched.push_back(fd);
  }
  return watched;
}

HostWaits::HostWaits(const std::vector<int>& rank_processes, std::map<int, std::uint32_t> family,
                     std::function<bool(std::uint32_t rank)> in_barrier)
    : family_(std::move(family)),
      rank_count_(static_cast<std::uint32_t>(rank_processes.size())),
      in_barrier_(std::move(in_barrier)),
      files_(rank_processes, processes_of(family_, rank_count_, true),
             processes_of(family_, rank_count_, false)) {}

WaitEnd HostWaits::end_of(int process_id, int thread_id) {
  const SystemCall call = system_call(process_id, thread_id);
  if (has_time_limit(call)) return WaitEnd::by_time;
  switch (call.number) {
    case SYS_futex:
      return end_of_futex(process_id, call);
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
      return end_of_read(process_id, call.arguments[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
      return files_.end_of_transfer(process_id, call.arguments[0], false);
    case SYS_poll:
    case SYS_ppoll:
      return end_of_poll(process_id, call.arguments[0], call.arguments[1]);
    case SYS_select:
    case SYS_pselect6:
      return end_of_select(process_id, call);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return end_of_epoll(process_id, call.arguments[0]);
    case SYS_wait4:
    case SYS_waitid:
      return end_of_child(process_id);
    case SYS_flock:
    case SYS_fcntl:
      return files_.end_of_lock(process_id, call.arguments[0]);
    default:
      return WaitEnd::outside;
  }
}

// A word in memory that the process shares with one outside the run may be changed there.
WaitEnd HostWaits::end_of_futex(int process_id, const SystemCall& call) const {
  if (!waits_for_thread(call)) return WaitEnd::outside;
  if ((call.arguments[1] & FUTEX_PRIVATE_FLAG) != 0) return WaitEnd::inside;
  const std::string file = shared_file_at(process_id, call.arguments[0]);
  if (file.empty() || file.ends_with(" (deleted)")) return WaitEnd::inside;
  for (const HostProcess& process : host_processes()) {
    if (!family_.contains(process.process_id) && !mapped_ranges(process.process_id, file).empty())
      return WaitEnd::outside;
  }
  return WaitEnd::inside;
}

WaitEnd HostWaits::end_of_read(int process_id, std::uint64_t fd) {
  const WaitEnd end = files_.end_of_transfer(process_id, fd, true);
  const auto member = family_.find(process_id);
  const bool in_barrier =
      member != family_.end() && member->second < rank_count_ && in_barrier_(member->second);
  // The simulator holds the other end of the connection to its process manager.
  return in_barrier && fd > STDERR_FILENO ? WaitEnd::inside : end;
}

WaitEnd HostWaits::end_of_poll(int process_id, std::uint64_t address, std::uint64_t count) {
  std::array<pollfd, most_polled> polled{};
  if (count == 0 || count > polled.size() || !read_values(process_id, address, polled.data(), count))
    return WaitEnd::outside;
  WaitEnd end = WaitEnd::inside;
  for (std::size_t i = 0; i < count; ++i) {
    if (polled[i].fd < 0) continue;
    const auto fd = static_cast<std::uint64_t>(polled[i].fd);
    if ((polled[i].events & POLLIN) != 0) end = std::max(end, end_of_read(process_id, fd));
    if ((polled[i].events & POLLOUT) != 0) end = std::max(end, files_.end_of_transfer(process_id, fd, false));
  }
  return end;
}

WaitEnd HostWaits::end_of_select(int process_id, const SystemCall& call) {
  const std::uint64_t count = call.arguments[0];
  if (count == 0 || count > FD_SETSIZE) return WaitEnd::outside;
  WaitEnd end = WaitEnd::inside;
  for (const bool reads : {true, false}) {
    const std::uint64_t address = call.arguments[reads ? 1 : 2];
    std::array<std::uint64_t, FD_SETSIZE / 64> set{};
    const std::size_t words = (count + 63) / 64;
    if (address == 0) continue;
    if (!read_values(process_id, address, set.data(), words)) return WaitEnd::outside;
    for (std::uint64_t fd = 0; fd < count; ++fd) {
      if ((set[fd / 64] >> fd % 64 & 1) == 0) continue;
      end =
          std::max(end, reads ? end_of_read(process_id, fd) : files_.end_of_transfer(process_id, fd, false));
    }
  }
  return end;
}

WaitEnd HostWaits::end_of_epoll(int process_id, std::uint64_t epoll) {
  WaitEnd end = WaitEnd::inside;
  for (const int fd : watched_by_epoll(process_id, epoll))
    end = std::max(end, end_of_read(process_id, static_cast<std::uint64_t>(fd)));
  return end;
}

// The threads of the child decide.
WaitEnd HostWaits::end_of_child(int process_id) const {
  const std::vector<HostProcess> processes = host_processes();
  const bool any = std::any_of(processes.begin(), processes.end(), [&](const HostProcess& process) {
    return process.parent_id == process_id && family_.contains(process.process_id);
  });
  return any ? WaitEnd::inside : WaitEnd::outside;
}

}  // namespace apenet
