// Settling: brings the other ranks of a failed run to the same place in every run, before they are ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/launch/failures.hpp"
#include "runtime/launch/host_work.hpp"
#include "runtime/launch/pmi_server.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// When a rank has failed, the others go on in virtual time as long as one of them acts before that; then
// until each rests: it waits in the scheduler or in the process manager's barrier, or has ended. A rank that
// has left the simulation is given the time to end by itself. Ranks that never come to rest (they compute for
// ever, or are blocked in the host) are given up: what they print then depends on the host.
class Settling {
 public:
  enum class Next {
    step,  // the scheduler may step: all wait, and somebody acts in time
    wait,  // for those that run
    stop,  // all rest, or are given up
  };
  // has_ended: whether a rank and what was started for it have ended; group_of: its process group.
  Settling(const Scheduler& scheduler, const PmiServer& pmi, int cpu_patience_ms, std::uint32_t count,
           std::function<bool(std::uint32_t)> has_ended, std::function<int(std::uint32_t)> group_of);

  // The rank that failed first did so at this instant.
  [[nodiscard]] Next next(VirtualInstant first, bool all_wait);
  // A step has found nothing to do: nobody acts any more.
  void note_idle() { is_idle_ = true; }
  // Waits for the ranks that have left the simulation alone.
  [[nodiscard]] Next next_of_leavers();
  // Ranks that were given up.
  [[nodiscard]] const std::vector<std::uint32_t>& restless() const { return restless_; }

 private:
  [[nodiscard]] bool acts_until(VirtualInstant first);
  [[nodiscard]] bool rests(std::uint32_t rank) const;
  Next wait_for(std::vector<std::uint32_t> restless);

  const Scheduler& scheduler_;
  const PmiServer& pmi_;
  std::chrono::milliseconds cpu_patience_;  // with all ranks together
  std::uint32_t count_;
  std::function<bool(std::uint32_t)> has_ended_;
  std::function<int(std::uint32_t)> group_of_;
  bool is_idle_ = false;
  HostWork work_;
  std::vector<std::uint32_t> restless_;
  std::vector<std::int64_t> wakes_ps_;  // kept for its room
};

}  // namespace apenet
