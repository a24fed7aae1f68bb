// Scheduler: decides which process may run, and up to which virtual time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/scheduler/delivery.hpp"
#include "runtime/scheduler/exchange.hpp"
#include "runtime/scheduler/grant_queue.hpp"
#include "runtime/scheduler/idle_alarms.hpp"
#include "runtime/scheduler/ip_network.hpp"
#include "runtime/scheduler/lower_bounds.hpp"
#include "runtime/scheduler/process_memory.hpp"
#include "runtime/scheduler/rank_signals.hpp"
#include "runtime/scheduler/rank_table.hpp"
#include "runtime/scheduler/shared_memory.hpp"
#include "runtime/scheduler/shared_model.hpp"
#include "runtime/scheduler/suspension.hpp"

namespace apenet {

struct SchedulerOptions {
  // The job's virtual time begins so long after that of the simulation.
  std::int64_t start_ps = 0;
  // The next ones change no result.
  //
  // Grants the next rank of a step when the one before waits.
  bool one_at_a_time = false;
  // Wakes a rank for each of its events: a timeline shows every wait.
  bool wakes_for_each_event = false;
};

// The parts that others may read, at any time.
struct SchedulerView {
  const RankTable& ranks;
  const GrantQueue& grants;
  const LowerBounds& bounds;
  const Delivery& delivery;
};

// The scheduler of a job. SharedModel steps it while no rank runs. A step takes what the ranks have posted,
// sorts it by (time, rank, position), feeds the machine, and runs the model up to the earliest time at which
// a rank of any job could act, plus the lookahead. Meanwhile it puts the events into the rings. It then wakes
// the ranks that have events. A rank gets the answer "nothing at t" only if t lies before its own horizon.
class Scheduler {
 public:
  enum class Outcome {
    woken,     // at least one rank runs
    waits,     // all ranks wait, and the model has to advance, or another job has to go on
    idle,      // all ranks wait, and nothing that they have sent is under way
    finished,  // all ranks have left
    ready,     // all ranks have reached the beginning of virtual time, and the job can join an open model
  };

  // Its ranks are the next processes of the model's machine. With `ip`, its nodes have sockets
  // (Delivery::begin_ip()).
  Scheduler(SharedModel& model, SharedMemory& shared, ProcessMemory& memory, const SchedulerOptions& options,
            std::optional<IpNetwork::Setup> ip = std::nullopt);

  // What the last step of the model has done for this job. Throws EndOfTime, RankError if a process has
  // written invalid data, and what the model throws; the job cannot continue after any of them.
  [[nodiscard]] Outcome outcome() const;
  // Call when the run has ended: Delivery::finish_ip().
  void finish_ip() { delivery_.finish_ip(); }
  // Call after `idle`: wakes each rank that waits for an event once, without an event, because progress may
  // come from outside the network (a process manager, another thread). A polling rank is woken only if
  // another of its threads may need the grant, because each poll advances its clock.
  void release_idle(const std::function<bool(std::uint32_t rank)>& has_threads);
  // Grants a queued rank beside the ones that run, which wait for it in the host.
  void grant_next() { grants_.grant_next(); }
  // Continues without these ranks, which are blocked in the host. A process that wakes comes back by itself,
  // at its own clock or at the time up to which others have acted, whichever is later. Calls still_blocked()
  // once none of the ranks can use its block any more. Returns false without any effect if still_blocked()
  // does, or if a rank may be in the middle of an operation.
  bool suspend(const std::vector<std::uint32_t>& ranks, const std::function<bool()>& still_blocked) {
    return suspension_.suspend(ranks, still_blocked);
  }
  // Call when the process has ended without leaving the simulation.
  void remove(std::uint32_t rank);
  // See LowerBounds::end_at().
  void end_at(std::int64_t failure_ps) { bounds_.end_at(failure_ps); }
  // See GrantQueue::recover().
  void recover() { grants_.recover(); }

  [[nodiscard]] SchedulerView view() const { return {ranks_, grants_, bounds_, delivery_}; }

 private:
  friend class SharedModel;

  struct Posted {
    std::int64_t time_ps;
    std::uint32_t rank;
    std::uint32_t index;  // into requests_
  };

  // The parts of a step, for SharedModel: before the model advances, while its bound is found, and
  // afterwards.
  Outcome take();
  bool adds_bound();
  Outcome wake();
  // The latest clock of a rank, as last read.
  [[nodiscard]] std::int64_t latest_clock_ps() const;
  // The beginning of virtual time.
  [[nodiscard]] bool is_ready_to_begin() const;
  Outcome begin_at_barrier(std::int64_t epoch_ps);
  // The same of a job that joins an open model. Until then it takes no part, and steps by itself.
  Outcome step_outside();
  Outcome join(ProcessId first, std::int64_t at_ps);
  [[nodiscard]] bool is_alone() const { return is_outside_ || model_.is_alone(); }
  // The time of what happens now.
  [[nodiscard]] std::int64_t present_ps() const { return is_outside_ ? 0 : simulation_.now().ps(); }

  void take_reports();
  void take_state(std::uint32_t rank);
  void take_requests(std::uint32_t rank);
  void feed();
  [[nodiscard]] bool nobody_moves() const;
  [[nodiscard]] bool can_only_wait() const;
  void wake_concerned();
  bool wake_flushing();
  void wake_sleepers();
  void note_alarms();
  [[nodiscard]] bool are_alarms_idle();
  // Wakes to_wake_ up to these horizons.
  void wake_up_to(const std::function<std::int64_t(std::uint32_t rank)>& horizon_of);
  void prepare(std::uint32_t rank, std::int64_t horizon_ps);
  void trace_wait(std::uint32_t rank) const;
  void begin_if_all_joined();
  void begin(std::int64_t epoch_ps);
  [[nodiscard]] bool lets_compute_overlap();

  SharedModel& model_;
  Simulation& simulation_;
  SharedMemory& shared_;
  ProcessMemory& memory_;
  SchedulerOptions options_;
  RankTable ranks_;
  std::uint32_t number_;  // SharedModel's
  ProcessId first_process_;
  bool is_outside_;  // takes no part in its open model yet
  Exchange exchange_;
  LowerBounds bounds_;
  GrantQueue grants_;
  Suspension suspension_;
  Delivery delivery_;
  RankSignals signals_;
  std::vector<std::uint32_t> changed_;  // ranks that this step has read
  std::vector<std::uint32_t> to_wake_;
  std::vector<Posted> posted_;
  std::vector<ipc::Request> requests_;  // the requests to which posted_ refers
  IdleAlarms idle_alarms_;
  bool alarms_are_idle_ = false;
  bool moves_ = false;  // in this step
  Outcome outcome_ = Outcome::waits;
  std::exception_ptr error_;
};

}  // namespace apenet
