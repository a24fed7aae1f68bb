// StrayWatch: programs that the ranks have started, and that use an MPI library without the shim.
#pragma once

#include <chrono>
#include <set>
#include <string>

#include "runtime/scheduler/process_ids.hpp"

namespace apenet {

// Each would be a world of one process, on the host's clocks. A launcher that makes the system call execve
// itself, with an environment of its own, leads to one. It is recognised while it runs: the loader maps the
// shim before any library that a program needs.
class StrayWatch {
 public:
  explicit StrayWatch(ProcessIds& process_ids) : process_ids_(process_ids) {}

  // Examines the processes of the run, seldom once every rank has a process that takes part. Returns what is
  // wrong, or an empty text.
  [[nodiscard]] std::string check();
  // Stops these programs and returns the files of shared memory of their MPI libraries: these would remove
  // them in MPI_Finalize at the earliest, so whoever kills the programs removes them. (With the shim, an MPI
  // library has no segments with names.)
  [[nodiscard]] std::set<std::string> stop() const;

 private:
  using WallClock = std::chrono::steady_clock;

  ProcessIds& process_ids_;
  WallClock::time_point next_check_{};
};

}  // namespace apenet
