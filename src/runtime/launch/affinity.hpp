// Affinity: a simulation on one core, where handing over from process to process costs microseconds less.
#pragma once

#include <sched.h>

#include <cstdint>
#include <vector>

namespace apenet {

// Holds the calling thread, and processes that it is given, on the core where it was made. Changes the speed
// of a run, never its results. The calling thread gets its old cores back at the end.
class Affinity {
 public:
  Affinity();
  ~Affinity();
  Affinity(const Affinity&) = delete;
  Affinity& operator=(const Affinity&) = delete;

  // All threads that the process has now; those to come inherit it.
  void hold(std::uint32_t process_id) const;

 private:
  cpu_set_t before_{};
  cpu_set_t core_{};
};

}  // namespace apenet
