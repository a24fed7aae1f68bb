// GrantQueue: decides which of the woken ranks run now, and which when those wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "machine/machine.hpp"
#include "runtime/scheduler/rank_table.hpp"

namespace apenet {

// Grants all ranks of a step at once, with two exceptions. With one_at_a_time, the next of them is granted
// when the one before waits. Ranks of a node that share memory are granted one after the other, the earliest
// first: what each finds there must not depend on their speed. A rank in overlapped compute keeps out of the
// way until its deadline, which is its next grant.
class GrantQueue {
 public:
  // first_process: the machine's process of rank 0, until set_first_process().
  GrantQueue(SharedMemory& shared, const Machine& machine, ProcessId first_process, RankTable& ranks,
             bool one_at_a_time);

  void set_first_process(ProcessId first) { first_process_ = first; }
  // Woken by the last step or release.
  [[nodiscard]] const std::vector<std::uint32_t>& last_woken() const { return woken_; }
  // Ranks wait for a grant until others, woken in the same step, wait.
  [[nodiscard]] bool any_is_queued() const { return !queue_.empty(); }
  // No rank runs.
  [[nodiscard]] bool all_wait() const;
  // As all_wait(), but faster while some ranks run. The count of running processes can be overwritten by any
  // process, so it is only a hint.
  [[nodiscard]] bool nobody_runs() const { return shared_.running().count.load() == 0 && all_wait(); }

  // Call when a step begins, and all wait. Replaces the list by the ranks, in their order, that may have
  // written a report since the last call.
  void take_changed(std::vector<std::uint32_t>& ranks);
  // Adds the rank to this list.
  void note_changed(std::uint32_t rank) { changed_.push_back(rank); }
  // Wakes these ranks, and takes the list. Calls prepare(rank) for each before it is granted or queued.
  void wake(std::vector<std::uint32_t>& ranks, const std::function<void(std::uint32_t)>& prepare);
  // Grants the next rank of the queue. Returns false if there is none.
  bool grant_next();
  // A process that had the grant has stopped running without giving it back.
  void drop_running(std::uint32_t count) { shared_.running().count.fetch_sub(count); }
  // Repairs the effect of a stray write to the count of running processes, or to the futex word that wakes a
  // process.
  void recover();

 private:
  void choose_queued();
  void grant(std::uint32_t rank);

  SharedMemory& shared_;
  const Machine& machine_;
  ProcessId first_process_;
  RankTable& ranks_;
  bool one_at_a_time_;
  std::vector<std::uint32_t> woken_;
  std::vector<bool> is_queued_;  // parallel to woken_
  std::deque<std::uint32_t> queue_;
  std::vector<std::uint32_t> changed_;
  std::optional<std::uint64_t> stuck_at_;  // activity when all waited but the count was not zero
};

}  // namespace apenet
