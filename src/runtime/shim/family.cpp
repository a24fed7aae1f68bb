#include "runtime/shim/family.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/system_call.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// Further descendants are not looked at, and count as unknown.
constexpr std::size_t most_members = 64;

using Path = std::array<char, 96>;
using Buffer = std::array<char, 1024>;  // small: the program may sleep in a signal handler, on a small stack

// Returns the first bytes of a file; empty if it cannot be read.
std::string_view bytes_of(const Path& path, Buffer& buffer) {
  const int fd = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const int bytes = host_call(SYS_read, fd, buffer.data(), buffer.size());
  host_call(SYS_close, fd, 0);
  return {buffer.data(), static_cast<std::size_t>(std::max(bytes, 0))};
}

std::string_view read_of(int process, int thread, const char* file, Buffer& buffer) {
  Path path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/%s", process, thread, file);
  return bytes_of(path, buffer);
}

std::string_view link_of(int process, std::uint64_t fd, Buffer& buffer) {
  Path path;
  std::snprintf(path.data(), path.size(), "/proc/%d/fd/%llu", process, static_cast<unsigned long long>(fd));
  const int bytes = host_call(SYS_readlink, path.data(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max(bytes, 0))};
}

int number_at(const char* begin, const char* end) {
  int number = 0;
  return std::from_chars(begin, end, number).ec == std::errc() ? number : 0;
}

// Calls visit(thread id) for each thread of the process.
template <typename Visit>
void for_threads(int process, Visit visit) {
  Path path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task", process);
  const int fd = host_call(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(dirent64) Buffer buffer;
  for (int bytes = 1; bytes > 0;) {
    bytes = host_call(SYS_getdents64, fd, buffer.data(), buffer.size());
    for (int at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(&buffer[static_cast<std::size_t>(at)]);
      at += entry->d_reclen;
      const char* const end = buffer.data() + at;
      if (const int thread = number_at(entry->d_name, end); thread > 0) visit(thread);
    }
  }
  host_call(SYS_close, fd, 0);
}

// Returns field `number` of a stat file, numbered as in proc(5), from 3. Searches for the last ')', because
// the program's name may contain any character.
std::string_view stat_field(std::string_view text, int number) {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return {};
  text.remove_prefix(std::min(name_end + 2, text.size()));
  for (int field = 3; field < number && !text.empty(); ++field)
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  return text.substr(0, text.find(' '));
}

char state_in(std::string_view stat) {
  const std::string_view field = stat_field(stat, 3);
  return field.empty() ? 'X' : field.front();
}

// An anonymous pipe belongs to the family, unless it is a standard stream that the rank has been given.
bool is_family_pipe(int process, std::uint64_t fd) {
  Buffer buffer;
  const std::string_view link = link_of(process, fd, buffer);
  if (!link.starts_with("pipe:")) return false;
  for (std::uint64_t stream = 0; stream <= STDERR_FILENO; ++stream) {
    Buffer own;
    if (link_of(host_call(SYS_getpid, 0, 0), stream, own) == link) return false;
  }
  return true;
}

Activity activity_of(int process, int thread, char state) {
  if (state == 'R' || state == 'D') return Activity::works;
  if (state != 'S') return Activity::none;  // stopped or ended
  Buffer buffer;
  const std::string_view text = read_of(process, thread, "syscall", buffer);
  if (text.empty()) return Activity::limited;
  if (text.starts_with("running")) return Activity::works;
  const ipc::SystemCall call = ipc::parse_system_call(text);
  if (ipc::has_time_limit(call)) return Activity::limited;
  if (ipc::waits_for_thread(call)) return Activity::none;
  switch (call.number) {
    case SYS_wait4:
    case SYS_waitid:
      return Activity::none;
    case SYS_read:
    case SYS_write:
      return is_family_pipe(process, call.arguments[0]) ? Activity::none : Activity::unknown;
    default:
      return Activity::unknown;
  }
}

class Members {
 public:
  // Adds the children of a process.
  void add_children_of(int process) {
    for_threads(process, [&](int thread) {
      Buffer buffer;
      std::string_view text = read_of(process, thread, "children", buffer);
      overflowed_ = overflowed_ || text.size() == buffer.size();
      while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size() - 1) + 1;
        if (const int child = number_at(text.data(), text.data() + end); child > 0) add(child);
        text.remove_prefix(end);
      }
    });
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] int at(std::size_t i) const { return ids_[i]; }
  [[nodiscard]] bool overflowed() const { return overflowed_; }

 private:
  void add(int process) {
    if (count_ < ids_.size()) {
      ids_[count_++] = process;
    } else {
      overflowed_ = true;
    }
  }

  std::array<int, most_members> ids_{};
  std::size_t count_ = 0;
  bool overflowed_ = false;
};

// Returns whether the process has ended.
bool look_at_process(int process, Activity& activity) {
  Buffer buffer;
  const std::string_view stat = read_of(process, process, "stat", buffer);
  const char state = state_in(stat);
  const std::string_view threads = stat_field(stat, 20);
  if (number_at(threads.data(), threads.data() + threads.size()) <= 1) {
    if (state == 'Z' || state == 'X') return true;
    activity = std::max(activity, activity_of(process, process, state));
    return false;
  }
  for_threads(process, [&](int thread) {
    if (activity == Activity::works) return;
    Buffer own;
    const char thread_state = state_in(read_of(process, thread, "stat", own));
    activity = std::max(activity, activity_of(process, thread, thread_state));
  });
  return false;
}

}  // namespace

bool has_children() {
  const int before = errno;
  // The fourth argument is a number here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const auto* options = reinterpret_cast<const void*>(std::uintptr_t{WEXITED | WNOHANG | WNOWAIT | __WALL});
  const bool has = host_call(SYS_waitid, P_ALL, 0, 0, options) == 0;
  errno = before;
  return has;
}

Family look_at_family() {
  const int before = errno;
  Family family;
  Members members;
  members.add_children_of(host_call(SYS_getpid, 0, 0));
  // The host does not list children (CONFIG_PROC_CHILDREN).
  if (members.count() == 0) family.activity = Activity::limited;
  for (std::size_t i = 0; i < members.count(); ++i)
    family.children = mixed(family.children, static_cast<std::uint64_t>(members.at(i)));
  for (std::size_t i = 0; i < members.count(); ++i) {
    const int process = members.at(i);
    const bool has_ended = look_at_process(process, family.activity);
    family.descendants =
        mixed(family.descendants, static_cast<std::uint64_t>(process) * 2 + (has_ended ? 1 : 0));
    if (!has_ended) members.add_children_of(process);
  }
  if (members.overflowed()) family.activity = std::max(family.activity, Activity::unknown);
  errno = before;
  return family;
}

}  // namespace apenet::shim
