#include "runtime/launch/host_waits.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/ipc/code_files.hpp"
#include "runtime/ipc/old_calls.hpp"
#include "runtime/launch/code_places.hpp"
#include "runtime/launch/host_timers.hpp"
#include "runtime/launch/remote_memory.hpp"
#include "runtime/launch/system_v.hpp"

namespace apenet {
namespace {

// The libraries that a thread of an MPI library runs: the C library, those of MPICH, Open MPI and Intel MPI,
// and what they use.
constexpr std::size_t most_polled = 1024;

// Whether the process gets a signal when one of its files is ready. The pipe of the shim's lifeline does not
// count: its other end is the simulator's.
bool has_signalling_file(int process_id) {
  std::set<std::string> own;
  for (const int fd : open_descriptors(getpid()))
    own.insert(descriptor_link(getpid(), static_cast<std::uint64_t>(fd)));
  const std::vector<int> fds = open_descriptors(process_id);
  return std::any_of(fds.begin(), fds.end(), [&](int fd) {
    const auto number = static_cast<std::uint64_t>(fd);
    const std::string flags = descriptor_field(process_id, number, "flags");
    const bool signals = (std::strtoul(flags.c_str(), nullptr, 8) & O_ASYNC) != 0;
    return signals && !own.contains(descriptor_link(process_id, number));
  });
}

// The path that a call of open() gives, as the simulator reaches it; empty if it is not known.
std::string opened_path(int process_id, std::uint64_t folder, const std::string& path) {
  if (path.empty()) return {};
  const std::string process = "/proc/" + std::to_string(process_id);
  if (path.starts_with('/')) return process + "/root" + path;
  const auto fd = static_cast<std::int32_t>(folder);
  return process + (fd == AT_FDCWD ? "/cwd" : "/fd/" + std::to_string(fd)) + "/" + path;
}

std::set<int> processes_of(const std::map<int, std::uint32_t>& family, std::size_t rank_count,
                           bool of_ranks) {
  std::set<int> processes;
  for (const auto& [process_id, rank] : family) {
    if ((rank < rank_count) == of_ranks) processes.insert(process_id);
  }
  return processes;
}

std::set<int> run_of(const std::map<int, std::uint32_t>& family, std::size_t rank_count,
                     const HostWaits::Queries& queries) {
  std::set<int> run = processes_of(family, rank_count, true);
  run.merge(queries.waiting_parents());
  return run;
}

}  // namespace

bool is_c_library(const std::string& file) {
  const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
  return name.starts_with("libc.so") || name.starts_with("libc-") || name.starts_with("libpthread") ||
         name.starts_with("ld-");
}

std::optional<bool> is_library_thread(int process_id, int thread_id) {
  constexpr std::size_t examined_bytes = 64 << 10;
  if (process_id == thread_id) return false;  // it runs main()
  const SystemCall call = system_call(process_id, thread_id);
  if (call.stack == 0) return std::nullopt;
  const CodePlaces places(process_id);
  const std::vector<std::uint64_t> calls = places.calls_on_stack(call.stack, examined_bytes);
  bool any_mpi = false;
  for (const std::uint64_t address : calls) {
    const std::string file = places.file_of(address);
    if (!ipc::is_mpi_library(file)) return false;
    any_mpi = any_mpi || !is_c_library(file);
  }
  return any_mpi ? std::optional(true) : std::nullopt;
}

bool LibraryThreads::contains(int process_id, int thread_id) {
  const std::pair thread(process_id, thread_id);
  if (const auto known = known_.find(thread); known != known_.end()) return known->second;
  const std::optional<bool> is_library = is_library_thread(process_id, thread_id);
  if (is_library) known_.emplace(thread, *is_library);
  return is_library.value_or(false);
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

std::uint64_t awaited_signals(int process_id, const SystemCall& call) {
  if (call.number != SYS_rt_sigtimedwait) return 0;
  return read_value<std::uint64_t>(process_id, call.arguments[0]).value_or(0);
}

std::uint64_t awaited_signals(int process_id, std::uint64_t signalfd) {
  return std::strtoull(descriptor_field(process_id, signalfd, "sigmask").c_str(), nullptr, 16);
}

HostWaits::HostWaits(std::vector<int> rank_processes, std::map<int, std::uint32_t> family, Queries queries)
    : rank_processes_(std::move(rank_processes)),
      family_(std::move(family)),
      queries_(std::move(queries)),
      files_(rank_processes_, run_of(family_, rank_processes_.size(), queries_),
             processes_of(family_, rank_processes_.size(), false)) {}

WaitEnd HostWaits::end_of(int process_id, int thread_id) {
  if (has_time_limit(system_call(process_id, thread_id))) {
    const auto state = thread_state(process_id, thread_id);
    if (state && state->state == 'S') return WaitEnd::by_time;
  }
  return end_by_others(process_id, thread_id);
}

WaitEnd HostWaits::end_by_others(int process_id, int thread_id) {
  const auto state = thread_state(process_id, thread_id);
  if (!state) return WaitEnd::outside;
  if (state->state != 'S') return end_of_stop(process_id, state->state);
  return end_of_call(process_id, system_call(process_id, thread_id));
}

bool HostWaits::has_timer(int process_id) const {
  return apenet::has_timer(process_id, queries_.alarm_ns(process_id, rank_of(process_id)));
}

std::optional<std::uint32_t> HostWaits::rank_of(int process_id) const {
  const auto rank = std::find(rank_processes_.begin(), rank_processes_.end(), process_id);
  if (rank == rank_processes_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(rank - rank_processes_.begin());
}

// A user stops a rank; a process that a rank has started mostly stops itself.
WaitEnd HostWaits::end_of_stop(int process_id, char state) const {
  if (state == 't') return family_.contains(tracer_of(process_id)) ? WaitEnd::inside : WaitEnd::outside;
  return state == 'T' && !rank_of(process_id) ? WaitEnd::unlikely : WaitEnd::outside;
}

WaitEnd HostWaits::end_of_call(int process_id, const SystemCall& call) {
  const auto& arguments = call.arguments;
  const auto is_of_run = [this](int process) { return family_.contains(process); };
  switch (call.number) {
    case SYS_futex:
      return end_of_futex(process_id, call);
    case SYS_futex_waitv:
      return end_of_futexes(process_id, call);
    case SYS_read:
    case SYS_readv:
    case SYS_preadv2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
      return end_of_read(process_id, arguments[0]);
    case SYS_write:
    case SYS_writev:
    case SYS_pwritev2:
    case SYS_vmsplice:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
      return files_.end_of_transfer(process_id, arguments[0], false);
    case SYS_splice:
      return end_of_copy(process_id, arguments[0], arguments[2]);
    case SYS_tee:
      return end_of_copy(process_id, arguments[0], arguments[1]);
    case ipc::old_call::poll:
    case SYS_ppoll:
      return end_of_poll(process_id, arguments[0], arguments[1]);
    case ipc::old_call::select:
    case SYS_pselect6:
      return end_of_select(process_id, call);
    case ipc::old_call::epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
      return end_of_epoll(process_id, arguments[0]);
    case SYS_wait4:
    case SYS_waitid:
      return end_of_child(process_id);
    case SYS_flock:
    case SYS_fcntl:
      return files_.end_of_lock(process_id, arguments[0]);
    case SYS_semop:
    case SYS_semtimedop:
      return end_of_semaphores(process_id, static_cast<int>(arguments[0]), is_of_run);
    case SYS_msgrcv:
    case SYS_msgsnd:
      return end_of_messages(process_id, static_cast<int>(arguments[0]), is_of_run);
    case SYS_mq_timedreceive:
    case SYS_mq_timedsend:
      return files_.end_of_queue(process_id, arguments[0]);
    case ipc::old_call::pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
      return end_of_signal(process_id, awaited_signals(process_id, call));
    case ipc::old_call::open:
      return end_of_open(process_id, static_cast<std::uint64_t>(AT_FDCWD), arguments[0]);
    case SYS_openat:
      return end_of_open(process_id, arguments[0], arguments[1]);
    case SYS_connect:
      return end_of_connect(process_id, call);
    default:
      return WaitEnd::outside;
  }
}

// Any process may send a signal, but one that does not belong to the run does not know the number of this
// one, unless it has been told.
WaitEnd HostWaits::end_of_signal(int process_id, std::uint64_t awaited) const {
  const auto rank = rank_of(process_id);
  if (apenet::has_timer(process_id, queries_.alarm_ns(process_id, rank), awaited)) return WaitEnd::by_time;
  const std::uint64_t effective = handled_signals(process_id) | awaited;
  if (effective == 0) return WaitEnd::inside;
  // A timer of alarm() of a program without the shim is not known.
  const bool may_be_timer = !rank && (effective >> (SIGALRM - 1) & 1) != 0;
  return may_be_timer || has_signalling_file(process_id) ? WaitEnd::outside : WaitEnd::unlikely;
}

// Waits for whichever of both files is not ready, which the host does not tell.
WaitEnd HostWaits::end_of_copy(int process_id, std::uint64_t from, std::uint64_t to) {
  return std::max(end_of_read(process_id, from), files_.end_of_transfer(process_id, to, false));
}

// A fifo waits for somebody who opens its other end, mostly one who comes from outside. Processes of the run
// that all wait for the same end meet nobody.
WaitEnd HostWaits::end_of_open(int process_id, std::uint64_t folder, std::uint64_t path) const {
  const std::string own = opened_path(process_id, folder, read_text(process_id, path));
  struct stat fifo {};
  if (own.empty()) return WaitEnd::outside;
  if (stat(own.c_str(), &fifo) != 0) return errno == ENOENT ? WaitEnd::inside : WaitEnd::outside;
  if (!S_ISFIFO(fifo.st_mode)) return WaitEnd::outside;
  for (const auto& [other, rank] : family_) {
    if (other == process_id) continue;
    for (const int thread_id : threads_of(other)) {
      const SystemCall call = system_call(other, thread_id);
      if (call.number != ipc::old_call::open && call.number != SYS_openat) continue;
      const bool is_at = call.number == SYS_openat;
      const std::string name =
          opened_path(other, is_at ? call.arguments[0] : static_cast<std::uint64_t>(AT_FDCWD),
                      read_text(other, call.arguments[is_at ? 1 : 0]));
      struct stat status {};
      const bool is_same =
          stat(name.c_str(), &status) == 0 && status.st_dev == fifo.st_dev && status.st_ino == fifo.st_ino;
      if (is_same) return WaitEnd::unlikely;
    }
  }
  return WaitEnd::outside;
}

WaitEnd HostWaits::end_of_connect(int process_id, const SystemCall& call) {
  sockaddr_un address{};
  const std::size_t bytes = std::min<std::size_t>(call.arguments[2], sizeof address);
  const bool is_read = read_values(process_id, call.arguments[1], reinterpret_cast<char*>(&address), bytes);
  if (!is_read || address.sun_family != AF_UNIX) return WaitEnd::outside;
  const std::string_view path(&address.sun_path[0], sizeof address.sun_path);
  return files_.end_of_connect(process_id, std::string(path.substr(0, path.find('\0'))));
}

WaitEnd HostWaits::end_of_futex(int process_id, const SystemCall& call) const {
  if (!waits_for_thread(call)) return WaitEnd::outside;
  return end_of_word(process_id, call.arguments[0], (call.arguments[1] & FUTEX_PRIVATE_FLAG) != 0);
}

// A word in memory that the process shares with one outside the run may be changed there.
WaitEnd HostWaits::end_of_word(int process_id, std::uint64_t word, bool is_private) const {
  if (is_private) return WaitEnd::inside;
  const std::string file = shared_file_at(process_id, word);
  if (file.empty() || file.ends_with(" (deleted)")) return WaitEnd::inside;
  for (const HostProcess& process : host_processes()) {
    if (!family_.contains(process.process_id) && !mapped_ranges(process.process_id, file).empty())
      return WaitEnd::outside;
  }
  return WaitEnd::inside;
}

WaitEnd HostWaits::end_of_futexes(int process_id, const SystemCall& call) const {
  std::vector<futex_waitv> words(std::min<std::uint64_t>(call.arguments[1], FUTEX_WAITV_MAX));
  if (words.empty() || !read_values(process_id, call.arguments[0], words.data(), words.size()))
    return WaitEnd::outside;
  WaitEnd end = WaitEnd::inside;
  for (const futex_waitv& one : words)
    end = std::max(end, end_of_word(process_id, one.uaddr, (one.flags & FUTEX_PRIVATE_FLAG) != 0));
  return end;
}

WaitEnd HostWaits::end_of_read(int process_id, std::uint64_t fd) {
  const std::string link = descriptor_link(process_id, fd);
  if (link == "anon_inode:[eventpoll]") return end_of_epoll(process_id, fd);
  if (link == "anon_inode:[signalfd]") return end_of_signal(process_id, awaited_signals(process_id, fd));
  const WaitEnd end = files_.end_of_transfer(process_id, fd, true);
  const auto member = family_.find(process_id);
  const bool waits_for_others = member != family_.end() && member->second < rank_processes_.size() &&
                                queries_.waits_for_others(member->second);
  // The simulator holds the other end of the connection to its process manager.
  return waits_for_others && fd > STDERR_FILENO ? WaitEnd::inside : end;
}

WaitEnd HostWaits::end_of_poll(int process_id, std::uint64_t address, std::uint64_t count) {
  std::array<pollfd, most_polled> polled{};
  if (count > polled.size() || (count > 0 && !read_values(process_id, address, polled.data(), count)))
    return WaitEnd::outside;
  WaitEnd end = WaitEnd::inside;
  bool any = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (polled[i].fd < 0) continue;
    any = true;
    const auto fd = static_cast<std::uint64_t>(polled[i].fd);
    if ((polled[i].events & POLLIN) != 0) end = std::max(end, end_of_read(process_id, fd));
    if ((polled[i].events & POLLOUT) != 0) end = std::max(end, files_.end_of_transfer(process_id, fd, false));
  }
  return any ? end : end_of_signal(process_id, 0);
}

WaitEnd HostWaits::end_of_select(int process_id, const SystemCall& call) {
  const std::uint64_t count = call.arguments[0];
  if (count > FD_SETSIZE) return WaitEnd::outside;
  WaitEnd end = WaitEnd::inside;
  bool any = false;
  for (const bool reads : {true, false}) {
    const std::uint64_t address = call.arguments[reads ? 1 : 2];
    std::array<std::uint64_t, FD_SETSIZE / 64> set{};
    const std::size_t words = (count + 63) / 64;
    if (address == 0) continue;
    if (!read_values(process_id, address, set.data(), words)) return WaitEnd::outside;
    for (std::uint64_t fd = 0; fd < count; ++fd) {
      if ((set[fd / 64] >> fd % 64 & 1) == 0) continue;
      any = true;
      end =
          std::max(end, reads ? end_of_read(process_id, fd) : files_.end_of_transfer(process_id, fd, false));
    }
  }
  return any ? end : end_of_signal(process_id, 0);
}

WaitEnd HostWaits::end_of_epoll(int process_id, std::uint64_t epoll) {
  const std::vector<int> watched = watched_by_epoll(process_id, epoll);
  if (watched.empty()) return end_of_signal(process_id, 0);
  WaitEnd end = WaitEnd::inside;
  for (const int fd : watched) end = std::max(end, end_of_read(process_id, static_cast<std::uint64_t>(fd)));
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
