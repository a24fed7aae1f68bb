#include "runtime/scheduler/process_tree.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace apenet {
namespace {

struct Status {
  int leading_thread = 0;  // first thread of the process to which the id belongs
  int parent = 0;
};

// Returns zeros if there is no such process, or the host does not show it.
Status status_of(int process_id) {
  std::ifstream file("/proc/" + std::to_string(process_id) + "/status");
  Status status;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string key;
    fields >> key;
    if (key == "Tgid:") fields >> status.leading_thread;
    if (key == "PPid:") {
      fields >> status.parent;
      break;
    }
  }
  return status;
}

}  // namespace

ProcessTree::Kinship ProcessTree::place_of(std::size_t rank, int process_id) const {
  // A parent may end on the way: its child then belongs to the supervisor, which the next walk finds.
  constexpr int most_walks = 3;
  if (process_id <= 0) return Kinship::outside;
  for (int walk = 0; walk < most_walks; ++walk) {
    for (int id = process_id;;) {
      if (id == root_ && id != process_id) return Kinship::of_the_run;
      const Status status = status_of(id);
      if (status.leading_thread == 0 && id != process_id) break;
      if (status.leading_thread != id || id == root_) return Kinship::outside;
      const auto leader = std::find(leaders_.begin(), leaders_.end(), id);
      if (leader != leaders_.end()) {
        const bool is_this = static_cast<std::size_t>(leader - leaders_.begin()) == rank;
        return is_this ? Kinship::of_this_rank : Kinship::of_another_rank;
      }
      if (status.parent == 0) return Kinship::outside;
      id = status.parent;
    }
  }
  return Kinship::outside;
}

bool ProcessTree::holds(std::uint32_t rank, int process_id) const {
  const Kinship place = place_of(rank, process_id);
  return place == Kinship::of_this_rank || place == Kinship::of_the_run;
}

bool ProcessTree::is_orphan(int process_id) const {
  return std::find(leaders_.begin(), leaders_.end(), process_id) == leaders_.end() &&
         status_of(process_id).parent == root_;
}

bool ProcessTree::holds(int process_id) const {
  return place_of(leaders_.size(), process_id) != Kinship::outside;
}

}  // namespace apenet
