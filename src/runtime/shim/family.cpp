#include "runtime/shim/family.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "runtime/ipc/host_call.hpp"
#include "runtime/ipc/system_call.hpp"
#include "runtime/shim/ordered_threads.hpp"
#include "runtime/shim/process_files.hpp"

namespace apenet::shim {
namespace {

using ipc::host_call;

// Further descendants are not checked, and count as unknown.
constexpr std::size_t most_members = 64;

int number_in(std::string_view stat, int field) {
  const std::string_view text = stat_field(stat, field);
  return number_at<int>(text.data(), text.data() + text.size());
}

// What /proc says of the job control of a process; zeros: it is not there.
struct JobPlace {
  int parent = 0;
  int group = 0;
  int session = 0;
};

JobPlace job_place_of(int process) {
  ProcessText buffer;
  const std::string_view stat = read_of(process, process, "stat", buffer);
  if (stat.empty() || stat_field(stat, 3) == "Z") return {};
  return {.parent = number_in(stat, 4), .group = number_in(stat, 5), .session = number_in(stat, 6)};
}

// Calls visit(thread id) for each thread of the process.
template <typename Visit>
void for_threads(int process, Visit visit) {
  ProcessPath path;
  std::snprintf(path.data(), path.size(), "/proc/%d/task", process);
  for_numbers(path, visit);
}

char state_in(std::string_view stat) {
  const std::string_view field = stat_field(stat, 3);
  return field.empty() ? 'X' : field.front();
}

// An anonymous pipe belongs to the family, unless it is a standard stream that the rank has been given.
bool is_family_pipe(int process, std::uint64_t fd) {
  ProcessText buffer;
  const std::string_view link = link_of(process, fd, buffer);
  if (!link.starts_with("pipe:")) return false;
  for (std::uint64_t stream = 0; stream <= STDERR_FILENO; ++stream) {
    ProcessText own;
    if (link_of(host_call(SYS_getpid, 0, 0), stream, own) == link) return false;
  }
  return true;
}

Activity activity_of(int process, int thread, char state) {
  if (state == 'R' || state == 'D') return Activity::works;
  if (state != 'S') return Activity::none;  // stopped or ended
  ProcessText buffer;
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
      ProcessText buffer;
      std::string_view text = read_of(process, thread, "children", buffer);
      overflowed_ = overflowed_ || text.size() == buffer.size();
      while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size() - 1) + 1;
        if (const int child = number_at<int>(text.data(), text.data() + end); child > 0) add(child);
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
bool read_process(int process, Activity& activity) {
  ProcessText buffer;
  const std::string_view stat = read_of(process, process, "stat", buffer);
  const char state = state_in(stat);
  if (number_in(stat, 20) <= 1) {
    if (state == 'Z' || state == 'X') return true;
    activity = std::max(activity, activity_of(process, process, state));
    return false;
  }
  for_threads(process, [&](int thread) {
    if (activity == Activity::works) return;
    ProcessText own;
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

bool has_children_outside() {
  if (!has_children()) return false;
  Members members;
  members.add_children_of(host_call(SYS_getpid, 0, 0));
  bool has = members.count() == 0;  // the host does not list children (CONFIG_PROC_CHILDREN)
  for (std::size_t i = 0; i < members.count(); ++i)
    has = has || !thread_order().acts_in_order(static_cast<std::uint32_t>(members.at(i)));
  return has;
}

// Linux, will_become_orphaned_pgrp(): no member has a parent in another group of the same session.
bool is_group_orphaned(int process) {
  const int before = errno;
  const JobPlace own = job_place_of(process);
  bool has_parent = own.group == 0;
  ProcessPath processes{};
  std::snprintf(processes.data(), processes.size(), "/proc");
  for_numbers(processes, [&](int other) {
    if (has_parent) return;
    const JobPlace member = job_place_of(other);
    if (member.group != own.group || member.parent <= 1) return;
    const JobPlace parent = job_place_of(member.parent);
    has_parent = parent.group != own.group && parent.session == own.session;
  });
  errno = before;
  return !has_parent;
}

// Those that act in the order of this process are not counted: it waits for them there.
Family read_family() {
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
    if (thread_order().acts_in_order(static_cast<std::uint32_t>(process))) continue;
    const bool has_ended = read_process(process, family.activity);
    family.descendants =
        mixed(family.descendants, static_cast<std::uint64_t>(process) * 2 + (has_ended ? 1 : 0));
    if (!has_ended) members.add_children_of(process);
  }
  if (members.overflowed()) family.activity = std::max(family.activity, Activity::unknown);
  errno = before;
  return family;
}

}  // namespace apenet::shim
