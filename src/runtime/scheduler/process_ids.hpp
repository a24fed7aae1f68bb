// ProcessIds: the host process of each rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/scheduler/process_tree.hpp"
#include "runtime/scheduler/shared_memory.hpp"

namespace apenet {

// The contents of a file that may vanish, as those in /proc do: empty if it has.
std::string text_of_file(const std::string& path);

// Returns true also for a zombie, which nobody has waited for yet.
bool has_ended(std::uint32_t process_id);

// A process writes its own id into its block, and the simulator later signals, watches, reads and writes the
// process with that id. Therefore the id is read once, and accepted only if that process was started for this
// rank and has mapped this simulation. The host may give the id to another process when this one has ended,
// so whoever uses it asks whether the process still runs.
class ProcessIds {
 public:
  explicit ProcessIds(SharedMemory& shared);
  ~ProcessIds();
  ProcessIds(const ProcessIds&) = delete;
  ProcessIds& operator=(const ProcessIds&) = delete;

  // Frees what it has of the host. No other call may follow.
  void discard();

  // Until the first call, the tree of this process, with unknown leaders.
  void set_tree(ProcessTree tree) { tree_ = std::move(tree); }
  [[nodiscard]] ProcessTree& tree() { return tree_; }

  // The name of the rank's process, which may have ended. Returns 0 if no process has claimed the rank, if
  // the process had ended when this was first called, or if its id was refused. Throws RankError the first
  // time an id is refused.
  std::uint32_t of(std::uint32_t rank);
  // The process that had claimed the rank, and had ended when of() was first called. Nothing has checked that
  // it was the rank's.
  [[nodiscard]] std::uint32_t gone(std::uint32_t rank) const;
  // As of(), but 0 also if the process has ended.
  std::uint32_t running(std::uint32_t rank);
  // As running(), for every rank.
  std::vector<int> all_running();
  // The process of this rank, known to of(), has not ended. A system call, for each access to its memory.
  [[nodiscard]] bool still_runs(std::uint32_t rank) const;
  // A process that was started for this rank, and has not ended. A system call, once it is known.
  [[nodiscard]] bool is_started_by(std::uint32_t rank, std::uint32_t process_id);

 private:
  struct Known {
    std::uint32_t process_id = 0;
    bool refused = false;
    int pidfd = -1;            // or -1 if the host gives none
    std::string started_at{};  // without pidfd: the process's start time
  };

  SharedMemory& shared_;
  ProcessTree tree_;
  std::vector<Known> known_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> started_;  // pidfds, by rank and process
};

}  // namespace apenet
