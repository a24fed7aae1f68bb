#include "runtime/launch/affinity.hpp"

#include "runtime/launch/host_thread.hpp"

namespace apenet {

Affinity::Affinity() {
  sched_getaffinity(0, sizeof before_, &before_);
  const int here = sched_getcpu();
  CPU_ZERO(&core_);
  CPU_SET(here < 0 ? 0 : here, &core_);
  sched_setaffinity(0, sizeof core_, &core_);
}

Affinity::~Affinity() {
  sched_setaffinity(0, sizeof before_, &before_);
}

void Affinity::hold(int process_id) const {
  for (const int thread : threads_of(process_id)) sched_setaffinity(thread, sizeof core_, &core_);
}

}  // namespace apenet
