// NodeTopology: the description of a node's processors that a rank's MPI library gets.
#pragma once

#include <string>

namespace apenet {

// A file for hwloc, in memory. MPICH reads it instead of the host's /sys, which takes several hundred files
// and as many microseconds of each rank's start, and describes the wrong machine.
class NodeTopology {
 public:
  NodeTopology();
  ~NodeTopology();
  NodeTopology(const NodeTopology&) = delete;
  NodeTopology& operator=(const NodeTopology&) = delete;

  // Empty if the host has no room for the file.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace apenet
