#include "runtime/launch/stray_watch.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "runtime/ipc/unfollowed.hpp"
#include "runtime/launch/host_thread.hpp"

namespace apenet {
namespace {

// One part in so many of the time goes into looks: as long as a rank has no process that takes part, and
// afterwards, when a second program of a rank is what they may find.
constexpr int share_at_start = 10;
constexpr int share_afterwards = 200;
constexpr std::chrono::milliseconds least_interval_afterwards{100};

// The MPI library whose code a process has mapped; empty if it has none, or has the shim, too.
std::string stray_library(int process_id) {
  std::ifstream maps("/proc/" + std::to_string(process_id) + "/maps");
  std::string library;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string rights;
    std::string skipped;
    std::string file;
    fields >> skipped >> rights >> skipped >> skipped >> skipped >> std::ws;
    std::getline(fields, file);
    if (file.find("/libapenet-shim.so") != std::string::npos) return {};
    const std::string_view name = std::string_view(file).substr(file.rfind('/') + 1);
    if (rights.find('x') != std::string::npos && name.starts_with("libmpi")) library = file;
  }
  return library;
}

// Its command, fit for a message.
std::string command_of(int process_id) {
  constexpr std::size_t longest = 200;
  std::string text = process_file(process_id, "cmdline");
  for (char& letter : text) {
    if (std::iscntrl(static_cast<unsigned char>(letter)) != 0) letter = ' ';
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

// The variables of a program that refuses itself (ipc::Client::require_shim()), or belongs to no run on
// purpose.
bool is_known_otherwise(const std::string& variables) {
  return variables.find("APENET_MAPPING=") != std::string::npos ||
         variables.find("APENET_OUTSIDE=") != std::string::npos;
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
  std::string text = "'" + command_of(process.process_id) + "' uses " + library +
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

std::string StrayWatch::look() {
  const auto now = WallClock::now();
  if (now < next_look_) return {};
  const std::vector<int> taking_part = process_ids_.all_running();
  const bool is_start = std::find(taking_part.begin(), taking_part.end(), 0) != taking_part.end();
  const int root = process_ids_.tree().root();
  for (const Descendant& process : descendants(root)) {
    const int id = process.process_id;
    if (std::find(taking_part.begin(), taking_part.end(), id) != taking_part.end()) continue;
    // Twice: the table may change while it is read.
    if (stray_library(id).empty()) continue;
    const std::string library = stray_library(id);
    if (library.empty() || is_known_otherwise(process_file(id, "environ"))) continue;
    return describe(process, library, root);
  }
  const auto end = WallClock::now();
  const WallClock::duration pause = (is_start ? share_at_start : share_afterwards) * (end - now);
  next_look_ = end + (is_start ? pause : std::max<WallClock::duration>(pause, least_interval_afterwards));
  return {};
}

}  // namespace apenet
