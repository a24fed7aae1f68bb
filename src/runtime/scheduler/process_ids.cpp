#include "runtime/scheduler/process_ids.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "runtime/scheduler/request_validation.hpp"

namespace apenet {
namespace {

constexpr std::uint32_t most_process_id = 1U << 22;  // PID_MAX_LIMIT of Linux

// The fields of /proc/PID/stat after the program name, the first of which is the state; empty if there is no
// such process.
std::string stat_after_name(std::uint32_t process_id) {
  // Not by line: the name may have an end of line in it.
  const std::string status = text_of_file("/proc/" + std::to_string(process_id) + "/stat");
  const std::size_t name_end = status.rfind(')');
  return name_end + 2 < status.size() ? status.substr(name_end + 2) : "";
}

// In clock ticks since the host was started; empty if there is no such process.
std::string start_time(std::uint32_t process_id) {
  constexpr int fields_from_state = 20;  // the state is the 3rd field of proc(5), the start time the 22nd
  std::istringstream fields(stat_after_name(process_id));
  std::string field;
  for (int i = 0; i < fields_from_state && fields >> field; ++i) continue;
  return fields ? field : "";
}

enum class Mapped { yes, no, ends };

// Returns yes if the host forbids access. A process without any mappings is about to end, or is a kernel
// thread.
Mapped has_mapped(std::uint32_t process_id, std::uint64_t inode) {
  std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
  if (!maps) return has_ended(process_id) ? Mapped::ends : Mapped::yes;
  const std::string wanted = " " + std::to_string(inode) + " ";
  bool any = false;
  for (std::string line; std::getline(maps, line); any = true) {
    if (line.find("/memfd:apenet") != std::string::npos && line.find(wanted) != std::string::npos)
      return Mapped::yes;
  }
  // The process may have ended while its lines were read.
  std::ifstream again("/proc/" + std::to_string(process_id) + "/maps");
  return any && again.peek() != std::ifstream::traits_type::eof() ? Mapped::no : Mapped::ends;
}

// A process that has just executed another program has yet to map the simulation again.
Mapped await_mapped(std::uint32_t process_id, std::uint64_t inode) {
  constexpr int most_tries = 250;
  constexpr useconds_t pause_us = 2000;
  Mapped mapped = has_mapped(process_id, inode);
  for (int tries = 1; mapped == Mapped::no && tries < most_tries; ++tries) {
    usleep(pause_us);
    mapped = has_mapped(process_id, inode);
  }
  return mapped;
}

}  // namespace

std::string text_of_file(const std::string& path) {
  std::ostringstream text;
  // Unlike an iterator over the file, this throws nothing if the process ends between open() and read().
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

bool has_ended(std::uint32_t process_id) {
  const std::string stat = stat_after_name(process_id);
  return stat.empty() || stat[0] == 'Z' || stat[0] == 'X';
}

ProcessIds::ProcessIds(SharedMemory& shared)
    : shared_(shared), tree_(getpid(), {}), known_(shared.header().process_count) {}

ProcessIds::~ProcessIds() {
  discard();
}

void ProcessIds::discard() {
  for (Known& known : known_) {
    if (known.pidfd >= 0) close(known.pidfd);
    known.pidfd = -1;
  }
  for (const auto& [process, pidfd] : started_) close(pidfd);
  started_.clear();
}

bool ProcessIds::is_started_by(std::uint32_t rank, std::uint32_t process_id) {
  const auto runs = [](int pidfd) {
    pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
    return poll(&ended, 1, 0) == 0;
  };
  const auto known = started_.find({rank, process_id});
  if (known != started_.end()) {
    if (runs(known->second)) return true;
    close(known->second);
    started_.erase(known);
  }
  const int pidfd =
      process_id <= most_process_id ? static_cast<int>(syscall(SYS_pidfd_open, process_id, 0)) : -1;
  const bool is_held = tree_.holds(rank, static_cast<int>(process_id));
  if (pidfd < 0) return is_held;
  if (is_held && runs(pidfd)) {
    started_[{rank, process_id}] = pidfd;
    return true;
  }
  close(pidfd);
  return false;
}

std::uint32_t ProcessIds::of(std::uint32_t rank) {
  Known& known = known_[rank];
  if (known.process_id != 0 || known.refused) return known.process_id;
  const std::uint32_t claimed = shared_.block(rank).identity.process_id;
  if (claimed == 0) return 0;
  // First the handle, then the checks: if the handle's process still runs afterwards, it is the one that was
  // checked.
  const bool is_number = claimed > 1 && claimed <= most_process_id;
  known.pidfd = is_number ? static_cast<int>(syscall(SYS_pidfd_open, claimed, 0)) : -1;
  if (is_number && known.pidfd < 0) known.started_at = start_time(claimed);
  known.process_id = claimed;
  const Mapped mapped = is_number && tree_.holds(rank, static_cast<int>(claimed))
                            ? await_mapped(claimed, shared_.inode())
                            : Mapped::no;
  const bool has_gone =
      mapped == Mapped::ends || (is_number && has_ended(claimed)) || (is_number && !still_runs(rank));
  if (mapped == Mapped::yes && !has_gone) return claimed;
  if (known.pidfd >= 0) close(known.pidfd);
  known = {};
  // It may have been the rank's process, but nothing can be asked of it.
  if (has_gone) return 0;
  known.refused = true;
  validation::refuse(rank, "identity", "process_id", claimed,
                     "the process that was started for this rank, or one that it has started");
}

std::uint32_t ProcessIds::gone(std::uint32_t rank) const {
  const Known& known = known_[rank];
  return known.process_id != 0 || known.refused ? 0 : shared_.block(rank).identity.process_id.load();
}

std::uint32_t ProcessIds::running(std::uint32_t rank) {
  const std::uint32_t process_id = of(rank);
  return process_id != 0 && still_runs(rank) ? process_id : 0;
}

std::vector<int> ProcessIds::all_running() {
  std::vector<int> ids;
  for (std::uint32_t rank = 0; rank < known_.size(); ++rank) ids.push_back(static_cast<int>(running(rank)));
  return ids;
}

bool ProcessIds::still_runs(std::uint32_t rank) const {
  const Known& known = known_[rank];
  if (known.pidfd < 0) return !known.started_at.empty() && start_time(known.process_id) == known.started_at;
  pollfd ended{.fd = known.pidfd, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) == 0;
}

}  // namespace apenet
