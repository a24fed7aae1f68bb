// Drain: after a failure, brings the other ranks to a reproducible point before they are ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/launch/failures.hpp"
#include "runtime/launch/host_work.hpp"
#include "runtime/launch/rank_server.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// After a rank has failed, the others continue in virtual time while one of them acts before the failure.
// Then each must become quiescent: it waits in the scheduler or for the process manager, or has ended. A rank
// that has left the simulation gets time to end by itself. Ranks that never become quiescent (they compute
// forever, or are blocked in the host) are given up; what they print then depends on the host.
class Drain {
 public:
  enum class Next {
    step,  // the scheduler may step: all ranks wait, and one acts before the failure
    wait,  // some ranks still run
    stop,  // all ranks are quiescent or are given up
  };
  Drain(const SchedulerView& scheduler, const RankServer& server, int cpu_patience_ms, std::uint32_t count)
      : scheduler_(scheduler), server_(server), cpu_patience_(cpu_patience_ms), count_(count) {}

  // `first`: when and where the first failure occurred.
  [[nodiscard]] Next next(VirtualInstant first, bool all_wait);
  // Whether ranks are left and none of them acts until this time. Requires that all wait.
  [[nodiscard]] bool all_act_after(std::int64_t time_ps);
  // Call when a step found nothing to do: no rank acts any more.
  void note_idle() { is_idle_ = true; }
  // After the last step: waits only for the ranks that have left the simulation, and the
  // overlapped ones.
  [[nodiscard]] Next next_after_last_step();
  // The ranks that were given up.
  [[nodiscard]] const std::vector<std::uint32_t>& given_up() const { return given_up_; }

 private:
  [[nodiscard]] bool acts_until(VirtualInstant first);
  [[nodiscard]] bool is_quiescent(std::uint32_t rank) const;
  [[nodiscard]] bool has_left(std::uint32_t rank) const;
  Next wait_for(std::vector<std::uint32_t> unfinished);

  SchedulerView scheduler_;
  const RankServer& server_;
  std::chrono::milliseconds cpu_patience_;  // for all ranks together
  std::uint32_t count_;
  bool is_idle_ = false;
  HostWork work_;
  std::vector<std::uint32_t> given_up_;
  std::vector<std::int64_t> wakes_ps_;  // a member to reuse its memory
};

}  // namespace apenet
