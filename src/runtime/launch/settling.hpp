// Settling: after a failure, brings the other ranks to a reproducible point before they are ended.
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

// After a rank has failed, the others continue in virtual time while one of them acts before the failure.
// Then each must come to rest: it waits in the scheduler or in the process manager's barrier, or has ended. A
// rank that has left the simulation gets time to end by itself. Ranks that never come to rest (they compute
// forever, or are blocked in the host) are given up; what they print then depends on the host.
class Settling {
 public:
  enum class Next {
    step,  // the scheduler may step: all ranks wait, and one acts before the failure
    wait,  // some ranks still run
    stop,  // all ranks rest or are given up
  };
  // has_ended: whether a rank and the process started for it have ended. group_of: the rank's process group.
  Settling(const Scheduler& scheduler, const PmiServer& pmi, int cpu_patience_ms, std::uint32_t count,
           std::function<bool(std::uint32_t)> has_ended, std::function<int(std::uint32_t)> group_of);

  // `first`: when and where the first failure occurred.
  [[nodiscard]] Next next(VirtualInstant first, bool all_wait);
  // Call when a step found nothing to do: no rank acts any more.
  void note_idle() { is_idle_ = true; }
  // Waits only for the ranks that have left the simulation.
  [[nodiscard]] Next next_of_leavers();
  // The ranks that were given up.
  [[nodiscard]] const std::vector<std::uint32_t>& restless() const { return restless_; }

 private:
  [[nodiscard]] bool acts_until(VirtualInstant first);
  [[nodiscard]] bool rests(std::uint32_t rank) const;
  Next wait_for(std::vector<std::uint32_t> restless);

  const Scheduler& scheduler_;
  const PmiServer& pmi_;
  std::chrono::milliseconds cpu_patience_;  // for all ranks together
  std::uint32_t count_;
  std::function<bool(std::uint32_t)> has_ended_;
  std::function<int(std::uint32_t)> group_of_;
  bool is_idle_ = false;
  HostWork work_;
  std::vector<std::uint32_t> restless_;
  std::vector<std::int64_t> wakes_ps_;  // a member to reuse its memory
};

}  // namespace apenet
