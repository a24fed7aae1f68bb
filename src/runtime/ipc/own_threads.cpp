#include "runtime/ipc/own_threads.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/old_calls.hpp"
#include "runtime/ipc/system_call.hpp"

namespace apenet::ipc {
namespace {

// A read or write of a file waits for a disk, not for another thread.
bool is_of_disk(const SystemCall& call) {
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_fsync:
    case SYS_fdatasync: {
      struct stat status {};
      const bool is_known = fstat(static_cast<int>(call.arguments[0]), &status) == 0;
      return is_known && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
    }
    default:
      return false;
  }
}

// How often the other threads of the process have stopped to run, for whatever reason.
std::int64_t switches_of_others() {
  rusage all{};
  rusage own{};
  host_call(SYS_getrusage, RUSAGE_SELF, &all);
  host_call(SYS_getrusage, RUSAGE_THREAD, &own);
  return all.ru_nvcsw + all.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw;
}

// The first bytes of a file of /proc/PID/task/TID, or of /proc/PID if there is no thread.
using ShownText = std::array<char, 512>;
std::string_view shown_of(std::int32_t process, std::int32_t thread, std::string_view name, ShownText& text) {
  std::array<char, 64> path{};
  char* end = std::copy_n("/proc/", 6, path.data());
  end = std::to_chars(end, end + 12, process).ptr;
  if (thread != 0) {
    end = std::copy_n("/task/", 6, end);
    end = std::to_chars(end, end + 12, thread).ptr;
  }
  std::copy(name.begin(), name.end(), end);
  const int file = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const int length = host_call(SYS_read, file, text.data(), text.size());
  host_call(SYS_close, file, 0);
  return {text.data(), static_cast<std::size_t>(std::max(length, 0))};
}

// The field of a stat file behind the name, from 0. The name may contain any character.
std::string_view field_behind_name(std::string_view stat, int number) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  stat.remove_prefix(std::min(name_end + 2, stat.size()));
  for (; number > 0 && !stat.empty(); --number)
    stat.remove_prefix(std::min(stat.find(' '), stat.size() - 1) + 1);
  return stat.substr(0, stat.find(' '));
}

// Calls use(id) for each thread of the process until it returns false.
template <typename Use>
void for_each_thread(std::int32_t process, Use use) {
  std::array<char, 64> path{};
  char* const end = std::to_chars(std::copy_n("/proc/", 6, path.data()), path.data() + 40, process).ptr;
  std::copy_n("/task", 5, end);
  const int folder = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(dirent64) std::array<char, 2048> entries{};
  bool goes_on = true;
  for (int bytes = 1; goes_on && bytes > 0;) {
    bytes = host_call(SYS_getdents64, folder, entries.data(), entries.size());
    for (int at = 0; goes_on && at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries.data() + at);
      at += entry->d_reclen;
      std::int32_t id = 0;
      const char* const name = entry->d_name;
      if (std::from_chars(name, name + std::strlen(name), id).ec == std::errc()) goes_on = use(id);
    }
  }
  host_call(SYS_close, folder, 0);
}

bool is_end(char state) {
  return state == 'Z' || state == 'X';
}

std::int32_t process_of_caller() {
  return host_call(SYS_getpid, 0, 0);
}

// The clock's number is the inverted id, shifted left, with the bits of a scheduler clock.
std::int64_t scheduled_ns_of(std::int32_t id, std::uint32_t bits) {
  const auto clock = static_cast<clockid_t>((~static_cast<std::uint32_t>(id) << 3U) | bits);
  timespec used{};
  host_call(SYS_clock_gettime, clock, &used);
  return used.tv_sec * std::int64_t{1'000'000'000} + used.tv_nsec;
}

// Without the CPU time.
SeenThread see_state(std::int32_t process, std::int32_t id) {
  ShownText text{};
  const std::string_view state = field_behind_name(shown_of(process, id, "/stat", text), 0);
  if (state.empty() || is_end(state.front())) return {};
  const char letter = state.front();
  if (letter == 'T' || letter == 't') return {.state = ThreadState::blocked, .is_stopped = true};
  const bool is_own = process == process_of_caller();
  // A vfork() waits for what its child executes, in the state of those that wait for a disk.
  if (letter != 'S' && (!is_own || letter != 'D')) return {.state = ThreadState::runs};
  const std::string_view shown = shown_of(process, id, "/syscall", text);
  if (shown.empty()) return {.state = ThreadState::limited};
  const SystemCall call = parse_system_call(shown);
  const bool is_of_vfork =
      call.number == old_call::vfork || call.number == SYS_clone || call.number == SYS_clone3;
  if (call.number < 0 || (letter == 'D' && !is_of_vfork) || (is_own && is_of_disk(call)))
    return {.state = ThreadState::runs};
  return {.state = has_time_limit(call) ? ThreadState::limited : ThreadState::blocked,
          .is_in_futex = call.number == SYS_futex};
}

}  // namespace

SeenThread see_thread(std::int32_t process, std::int32_t id) {
  SeenThread seen = see_state(process, id);
  if (seen.state == ThreadState::ended) return seen;
  constexpr std::uint32_t of_thread = 6;
  if (process == process_of_caller()) {
    seen.cpu_ns = scheduled_ns_of(id, of_thread);
  } else {
    ShownText text{};
    const std::string_view used = shown_of(process, id, "/schedstat", text);
    std::from_chars(used.data(), used.data() + used.size(), seen.cpu_ns);
  }
  return seen;
}

std::int64_t process_cpu_ns_of(std::int32_t process) {
  constexpr std::uint32_t of_process = 2;
  return scheduled_ns_of(process, of_process);
}

ThreadState liveliest_of(std::int32_t process, ThreadChoice& chosen) {
  ThreadState liveliest = ThreadState::blocked;
  for_each_thread(process, [&](std::int32_t id) {
    if (!chosen.has(id)) return true;
    const ThreadState state = see_state(process, id).state;
    if (state != ThreadState::ended) liveliest = std::min(liveliest, state);
    return liveliest != ThreadState::runs;
  });
  return liveliest;
}

// The first thread is shown as ended before the others are.
bool has_process_ended(std::uint32_t process) {
  ShownText text{};
  const std::string_view stat = shown_of(static_cast<std::int32_t>(process), 0, "/stat", text);
  const std::string_view state = field_behind_name(stat, 0);
  if (state.empty()) return host_call(SYS_kill, process, 0) != 0 && errno == ESRCH;
  const std::string_view threads = field_behind_name(stat, 17);
  return is_end(state.front()) && (threads == "1" || threads == "0");
}

// A thread that was found blocked may have been woken since by one that was not yet checked. Then that one
// has stopped to run meanwhile, which the host counts.
bool are_others_blocked() {
  const std::int32_t own = own_thread_id();
  const std::int64_t switches = switches_of_others();
  bool are_blocked = true;
  const std::int32_t process = process_of_caller();
  for_each_thread(process, [&](std::int32_t id) {
    if (id != own && see_state(process, id).state == ThreadState::runs) are_blocked = false;
    return are_blocked;
  });
  return are_blocked && switches == switches_of_others();
}

std::int32_t own_thread_id() {
  return host_call(SYS_gettid, 0, 0);
}

std::int64_t host_now_ns() {
  timespec now{};
  host_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace apenet::ipc
