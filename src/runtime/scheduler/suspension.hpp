// Suspension: lets the others go on without ranks that are blocked in the host.
//
// The simulator cannot know what such a process waits for. If another rank supplies it, but only once that
// rank is granted, all would wait forever. Therefore real time decides that a process is blocked
// (launch/sleep_watch.hpp), and the others continue without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/grant_queue.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

class Suspension {
 public:
  Suspension(SharedMemory& shared, ProcessMemory& memory, RankTable& ranks, Exchange& exchange,
             GrantQueue& grants)
      : shared_(shared), memory_(memory), ranks_(ranks), exchange_(exchange), grants_(grants) {}

  // See Scheduler::suspend().
  bool suspend(const std::vector<std::uint32_t>& ranks, const std::function<bool()>& still_blocked);
  // Call before a step takes the reports: those of ranks that have come back are among them.
  void note_returns();
  // The rank has come back: its report has been taken.
  void add_returned(std::uint32_t rank) {
    --count_;
    returned_.push_back(rank);
  }
  // The process of a suspended rank has ended.
  void note_end() { --count_; }
  // Call once the reports have been taken. passed_ps: the model has not gone further.
  void place(std::int64_t passed_ps);
  [[nodiscard]] bool any() const { return count_ > 0; }
  // The latest time at which a rank that is not suspended has acted; passed_ps if that is later.
  [[nodiscard]] std::int64_t latest_acted_ps(std::int64_t passed_ps) const;

 private:
  [[nodiscard]] std::int64_t acted_ps(std::uint32_t rank) const;
  [[nodiscard]] bool has_returned(std::uint32_t rank) const;

  SharedMemory& shared_;
  ProcessMemory& memory_;
  RankTable& ranks_;
  Exchange& exchange_;
  GrantQueue& grants_;
  std::vector<std::uint32_t> returned_;  // since the last step
  std::size_t count_ = 0;                // number of suspended ranks
};

}  // namespace apenet
