// ProcessTree: which processes of the host were started for which rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace apenet {

// A rank names its process itself, which is not believed: the kernel says who started whom. Descends from
// what the simulator has started itself: the supervisor, whose children are also those of its descendants
// that have lost their parents, and the leader of each rank.
class ProcessTree {
 public:
  // root: the supervisor, or the simulator if that starts the ranks. leaders: of the ranks; 0: not known yet.
  ProcessTree(int root, std::vector<int> leaders) : root_(root), leaders_(std::move(leaders)) {}

  // The id is that of a running process (not of a further thread) that was started for this run, and for no
  // other rank of it.
  [[nodiscard]] bool holds(std::uint32_t rank, int process_id) const;
  // The same, of the run.
  [[nodiscard]] bool holds(int process_id) const;
  [[nodiscard]] int root() const { return root_; }
  // The process that started it has ended, and the supervisor, its parent now, gets its status.
  [[nodiscard]] bool is_orphan(int process_id) const;

 private:
  enum class Kinship : std::uint8_t { outside, of_the_run, of_this_rank, of_another_rank };
  [[nodiscard]] Kinship place_of(std::size_t rank, int process_id) const;

  int root_;
  std::vector<int> leaders_;
};

}  // namespace apenet
