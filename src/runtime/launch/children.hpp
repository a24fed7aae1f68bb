// Children: the processes of a run: their ends, and their termination.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/session.hpp"

namespace apenet {

// Watches processes by pidfd, so that ends are events beside the pipes; ranks that somebody else started
// (mpirun's) can be watched too, but their exit status stays with their parent.
class Children {
 public:
  explicit Children(std::size_t count) : children_(count) {}
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // Returns a descriptor that becomes readable when the process ends, -1 when it is already gone.
  int watch(std::size_t index, int process_id);
  [[nodiscard]] bool watched(std::size_t index) const { return children_[index].process_id != 0; }
  [[nodiscard]] bool is(std::size_t index, int process_id) const {
    return children_[index].process_id == process_id;
  }
  // The pidfd is readable: takes the exit status.
  void reap(std::size_t index);
  [[nodiscard]] bool ended(std::size_t index) const { return children_[index].ended; }
  [[nodiscard]] RankReport::End end(std::size_t index) const { return children_[index].end; }
  [[nodiscard]] int status(std::size_t index) const { return children_[index].status; }
  [[nodiscard]] std::size_t alive() const;
  // To every process group that is left.
  void signal_all(int signal) const;

 private:
  struct Child {
    int process_id = 0;
    int pidfd = -1;
    bool ended = false;
    RankReport::End end = RankReport::End::running;
    int status = 0;
  };
  std::vector<Child> children_;
};

}  // namespace apenet
