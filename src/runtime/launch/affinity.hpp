// Affinity: runs a simulation on one core, where handing over between processes is several microseconds
// cheaper.
#pragma once

#include <sched.h>

namespace apenet {

// Pins the calling thread, and the processes passed to hold(), to the core on which this object was created.
// It changes the speed of a run, never its results. The destructor restores the calling thread's affinity.
class Affinity {
 public:
  Affinity();
  ~Affinity();
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

  // Pins all current threads of the process; threads started later inherit the affinity.
  void hold(int process_id) const;

 private:
  cpu_set_t before_{};
  cpu_set_t core_{};
};

}  // namespace apenet
