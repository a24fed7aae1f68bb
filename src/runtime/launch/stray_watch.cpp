#include "runtime/launch/stray_watch.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/one_line.hpp"
#include "runtime/ipc/unfollowed.hpp"
#include "runtime/launch/host_thread.hpp"
#include "runtime/launch/open_files.hpp"

namespace apenet {
namespace {

// One part in so many of the time goes into checks: as long as a rank has no process that takes part, and
// afterwards, when a second program of a rank is what they may find.
constexpr int share_at_start = 10;
constexpr int share_afterwards = 200;
constexpr std::chrono::milliseconds least_interval_afterwards{100};

// How MPICH, Open MPI 4 and 5, UCX and Intel MPI begin the names of their segments.
constexpr std::array<std::string_view, 6> segment_names = {"mpich_shm_",     "vader_segment.", "sm_segment.",
                                                           "ucx_shm_posix_", "open_mpi.",      "Intel_MPI_"};

bool is_segment(std::string_view file) {
  constexpr std::string_view folder = "/dev/shm/";
  if (!file.starts_with(folder) || file.ends_with(" (deleted)")) return false;
  file.remove_prefix(folder.size());
  return std::any_of(segment_names.begin(), segment_names.end(),
                     [&](std::string_view begin) { return file.starts_with(begin); });
}

// What a process has mapped that tells whether it is a stray.
struct Mapped {
  std::string library;                // the MPI library whose code it has; empty if it has the shim, too
  std::vector<std::string> segments;  // segments of that library, with names in the host
};

Mapped mapped_by(int process_id) {
  std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
  Mapped found;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string rights;
    std::string skipped;
    std::string file;
    fields >> skipped >> rights >> skipped >> skipped >> skipped >> std::ws;
    std::getline(fields, file);
    if (file.find("/libapenet-shim.so") != std::string::npos) return {};
    const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
    if (rights.find('x') != std::string::npos && name.starts_with("libmpi")) found.library = file;
    if (is_segment(file)) found.segments.push_back(file);
  }
  return found;
}

// Its command, fit for a message.
std::string command_of(int process_id) {
  constexpr std::size_t longest = 200;
  std::string text = process_file(process_id, "cmdline");
  std::replace(text.begin(), text.end(), '\0', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return one_line(text.substr(0, longest)) + (text.size() > longest ? "..." : "");
}

// The variables of a program that refuses itself (ipc::Client::require_shim()), or belongs to no run on
// purpose.
bool is_known_otherwise(const std::string& variables) {
  return variables.find("APENET_MAPPING=") != std::string::npos ||
         variables.find("APENET_OUTSIDE=") != std::string::npos;
}

// Returns when no thread of it acts any more, or after a second.
void stop_process(int process_id) {
  constexpr int most_checks = 1000;
  kill(process_id, SIGSTOP);
  for (int check = 0; check < most_checks; ++check) {
    const std::vector<int> threads = threads_of(process_id);
    const bool any_acts = std::any_of(threads.begin(), threads.end(), [&](int thread) {
      const auto state = thread_state(process_id, thread);
      return state && std::string_view("TtZX").find(state->state) == std::string_view::npos;
    });
    if (!any_acts) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Descendant {
  int process_id = 0;
  int parent_id = 0;
};

// A list of all processes of the host would take too long on a busy one.
std::vector<Descendant> descendants(int root) {
  std::vector<Descendant> family{{.process_id = root}};
  for (std::size_t next = 0; next < family.size(); ++next) {
    const int parent = family[next].process_id;
    for (const int child : children_of(parent)) family.push_back({child, parent});
  }
  family.erase(family.begin());
  return family;
}

std::string describe(const Descendant& process, const std::string& library, int root) {
  std::string text = "'" + command_of(process.process_id) + "' uses " + one_line(library) +
                     " without libapenet-shim.so: it runs by itself, past the simulated network. ";
  if (process.parent_id == root) {
    text += "What has started it has become it, or has ended";
  } else {
    const std::string executable = "/proc/" + std::to_string(process.parent_id) + "/exe";
    const char* why = ipc::why_unfollowed(executable.c_str());
    text += "It was started by '" + command_of(process.parent_id) + "'";
    text += why != nullptr ? std::string(", which ") + why : ", by a system call of its own";
  }
  return text +
         "\n  expected: what starts it passes on the environment that it got, with LD_PRELOAD and all that "
         "APENET_KEPT names, or the program itself is named after apenet run --";
}

}  // namespace

std::string StrayWatch::check() {
  const auto now = WallClock::now();
  if (now < next_check_) return {};
  const std::vector<int> taking_part = process_ids_.all_running();
  const bool is_start = std::find(taking_part.begin(), taking_part.end(), 0) != taking_part.end();
  const int root = process_ids_.tree().root();
  for (const Descendant& process : descendants(root)) {
    const int id = process.process_id;
    if (std::find(taking_part.begin(), taking_part.end(), id) != taking_part.end()) continue;
    // Twice: the table may change while it is read.
    if (mapped_by(id).library.empty()) continue;
    const std::string library = mapped_by(id).library;
    if (library.empty() || is_known_otherwise(process_file(id, "environ"))) continue;
    return describe(process, library, root);
  }
  const auto end = WallClock::now();
  const WallClock::duration pause = (is_start ? share_at_start : share_afterwards) * (end - now);
  next_check_ = end + (is_start ? pause : std::max<WallClock::duration>(pause, least_interval_afterwards));
  return {};
}

std::set<std::string> StrayWatch::stop() const {
  std::set<std::string> segments;
  for (const Descendant& process : descendants(process_ids_.tree().root())) {
    const int id = process.process_id;
    if (mapped_by(id).library.empty() || is_known_otherwise(process_file(id, "environ"))) continue;
    stop_process(id);
    for (std::string& segment : mapped_by(id).segments) segments.insert(std::move(segment));
    for (const int fd : open_descriptors(id)) {
      std::string file = descriptor_link(id, static_cast<std::uint64_t>(fd));
      if (is_segment(file)) segments.insert(std::move(file));
    }
  }
  return segments;
}

}  // namespace apenet
