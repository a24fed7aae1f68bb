// The beginning of virtual time. What MPI_Init does before it counts in no result.
#include <algorithm>

#include "runtime/observe/process_trace.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

// Without MPI, each process's clock starts at zero when the process joins. Before this step no process was
// told anything, and all requests are still in the rings.
void Scheduler::begin_if_all_joined() {
  if (started_) return;
  bool any = false;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (shared_.block(rank).identity.joined != 0) {
      any = true;
    } else if (processes_[rank].wait != ipc::Wait::finished) {
      return;
    }
  }
  if (any) begin(0, simulation_.now());
}

// The barrier at the end of MPI_Init: when all processes have reached it, all clocks are set to zero. If some
// ranks have joined without MPI, their clocks already run, and the others start at a later time.
bool Scheduler::begin_if_all_ready() {
  if (started_) return false;
  bool any_joined = false;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const ipc::Wait wait = processes_[rank].wait;
    if (wait == ipc::Wait::start || wait == ipc::Wait::finished) continue;
    if (shared_.block(rank).identity.joined == 0) return false;
    any_joined = true;
  }
  // Finish what MPI_Init started, so that it does not count in any measurement.
  simulation_.run();
  startup_link_use_ = machine_.link_use();
  std::int64_t epoch_ps = simulation_.now().ps();
  for (const Process& process : processes_) epoch_ps = std::max(epoch_ps, process.clock_ps);
  begin(any_joined ? 0 : epoch_ps, Time::from_ps(epoch_ps));
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait != ipc::Wait::start) continue;
    ipc::Clock& clock = shared_.block(rank).clock;
    exchange_.advance_clock(rank, epoch_ps);
    clock.waited_ps.set(0);
    clock.computed_ps.set(0);
    clock.outside_ps.set(0);
    clock.left_ps.set(epoch_ps);
    to_wake_.push_back(rank);
  }
  plan_turns();
  for (const std::uint32_t rank : to_wake_) wake(rank, epoch_ps + lookahead_ps_);
  return true;
}

void Scheduler::begin(std::int64_t epoch_ps, Time now) {
  started_ = true;
  ++activity_;
  epoch_ps_ = epoch_ps;
  shared_.header().epoch_ps = epoch_ps;
  shared_.header().lets_compute_aside = let_compute_aside() ? 1 : 0;
  simulation_.trace(process_record(ProcessTrace::began, now));
  machine_.begin(now);
  shared_.header().started.store(1, std::memory_order_release);
}

// While a process runs, it cannot help to move bytes of its memory.
bool Scheduler::let_compute_aside() {
  if (shared_.header().compute_mode != ipc::ComputeMode::profile) return false;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (!memory_.needs_no_help(rank)) return false;
  }
  return true;
}

std::vector<LinkUse> Scheduler::link_use() const {
  std::vector<LinkUse> links = machine_.link_use();
  for (std::size_t i = 0; i < startup_link_use_.size(); ++i) {
    links[i].packets -= startup_link_use_[i].packets;
    links[i].wire_bytes -= startup_link_use_[i].wire_bytes;
    links[i].busy = links[i].busy - startup_link_use_[i].busy;
  }
  return links;
}

}  // namespace apenet
