#include "runtime/scheduler/process_ids.hpp"

#include <unistd.h>

#include <fstream>
#include <string>

#include "runtime/scheduler/intake.hpp"

namespace apenet {
namespace {

constexpr std::uint32_t most_process_id = 1U << 22;  // PID_MAX_LIMIT of Linux

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

}  // namespace

bool has_ended(std::uint32_t process_id) {
  std::ifstream file("/proc/" + std::to_string(process_id) + "/stat");
  std::string status;
  if (!std::getline(file, status)) return true;
  const std::size_t state = status.rfind(')') + 2;  // skip the program name
  return state >= status.size() || status[state] == 'Z' || status[state] == 'X';
}

std::uint32_t ProcessIds::of(std::uint32_t rank) {
  Known& known = known_[rank];
  if (known.process_id != 0 || known.refused) return known.process_id;
  const std::uint32_t claimed = shared_.block(rank).identity.process_id;
  if (claimed == 0) return 0;
  const bool is_number =
      claimed > 1 && claimed <= most_process_id && claimed != static_cast<std::uint32_t>(getpid());
  const Mapped mapped = is_number ? has_mapped(claimed, shared_.inode()) : Mapped::no;
  // It may have been the rank's process, but nothing can be asked of it.
  if (mapped == Mapped::ends) return 0;
  if (mapped == Mapped::no) {
    known.refused = true;
    intake::refuse(rank, "identity", "process_id", claimed, "a process that runs under this simulation");
  }
  known.process_id = claimed;
  return claimed;
}

std::vector<int> ProcessIds::all() {
  std::vector<int> ids;
  for (std::uint32_t rank = 0; rank < known_.size(); ++rank) ids.push_back(static_cast<int>(of(rank)));
  return ids;
}

}  // namespace apenet
