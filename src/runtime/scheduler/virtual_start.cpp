// The beginning of virtual time. What MPI_Init does before it counts in no result.
#include <algorithm>
#include <stdexcept>

#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Without MPI, each process's clock starts at zero when the process joins. Before this step no process was
// told anything, and all requests are still in the rings. Where they meet at a barrier (Header), they do not
// join before virtual time has begun.
void Scheduler::begin_if_all_joined() {
  if (ranks_.started()) return;
  bool any = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (shared_.block(rank).identity.joined != 0) {
      any = true;
    } else if (ranks_[rank].state != RankState::finished) {
      return;
    }
  }
  if (!any) return;
  begin(0);
  model_.begin(simulation_.now());
}

// The barrier at the end of MPI_Init: all processes have reached it, or have joined without MPI.
bool Scheduler::is_ready_to_begin() const {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState state = ranks_[rank].state;
    if (state == RankState::starting || state == RankState::finished) continue;
    if (shared_.block(rank).identity.joined == 0) return false;
  }
  return true;
}

std::int64_t Scheduler::latest_clock_ps() const {
  std::int64_t latest_ps = 0;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].clock_ps < ipc::end_of_time_ps) latest_ps = std::max(latest_ps, ranks_[rank].clock_ps);
  }
  return latest_ps;
}

// All clocks are set to zero. If some ranks have joined without MPI, their clocks already run, and the others
// start at a later time.
Scheduler::Outcome Scheduler::begin_at_barrier(std::int64_t epoch_ps) {
  delivery_.end_startup();
  epoch_ps += options_.start_ps;
  bool any_joined = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState state = ranks_[rank].state;
    any_joined = any_joined || (state != RankState::starting && state != RankState::finished);
  }
  begin(any_joined ? 0 : epoch_ps);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state != RankState::starting) continue;
    ipc::Clock& clock = shared_.block(rank).clock;
    exchange_.advance_clock(rank, epoch_ps);
    clock.waited_ps.set(0);
    clock.computed_ps.set(0);
    clock.outside_ps.set(0);
    clock.left_ps.set(epoch_ps);
    to_wake_.push_back(rank);
  }
  wake_up_to([&](std::uint32_t) { return epoch_ps + bounds_.lookahead_ps(); });
  return Outcome::woken;
}

Scheduler::Outcome Scheduler::step_outside() {
  const Outcome taken = take();
  if (taken != Outcome::waits) return taken;
  if (is_ready_to_begin()) return Outcome::ready;
  moves_ = true;
  return wake();
}

Scheduler::Outcome Scheduler::join(ProcessId first, std::int64_t at_ps) {
  first_process_ = first;
  is_outside_ = false;
  bounds_.set_outside(false);
  grants_.set_first_process(first);
  delivery_.set_first_process(first);
  // What MPI_Init has sent has a time of its own, so that it does not matter when the host executed it.
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state == RankState::starting && exchange_.clock_ps(rank) > at_ps)
      throw std::runtime_error("the start of a job has taken longer than virtual time has for it");
  }
  return begin_at_barrier(at_ps);
}

void Scheduler::begin(std::int64_t epoch_ps) {
  ranks_.begin(epoch_ps);
  shared_.header().epoch_ps = epoch_ps;
  shared_.header().lets_compute_overlap = lets_compute_overlap() ? 1 : 0;
  shared_.header().started.store(1, std::memory_order_release);
}

// While a process runs, it cannot help to move bytes of its memory.
bool Scheduler::lets_compute_overlap() {
  if (shared_.header().compute_mode != ipc::ComputeMode::profile) return false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!memory_.needs_no_help(rank)) return false;
  }
  return true;
}

}  // namespace apenet
