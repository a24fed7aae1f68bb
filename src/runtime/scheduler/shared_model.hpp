// SharedModel: the machine and the clock of a simulation, which all of its jobs share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "kernel/simulation.hpp"
#include "machine/machine.hpp"

namespace apenet {

class Delivery;
class Scheduler;

// Steps the schedulers of all jobs together. The model advances only when the ranks of every job wait, and up
// to the earliest time at which one of them could act, plus the lookahead. A job that is idle holds the
// model: the others go on when it acts again or has left, so that nothing depends on how long the host takes.
//
// The ranks of a job are consecutive processes of the machine, in the order in which the jobs are added.
// Behind them may be processes that no host process stands for: the kernels of the nodes, or ranks in the
// simulator, which act in its events.
class SharedModel final : private CompletionSink {
 public:
  SharedModel(Simulation& simulation, Machine& machine);
  SharedModel(const SharedModel&) = delete;
  SharedModel& operator=(const SharedModel&) = delete;

  [[nodiscard]] Simulation& simulation() { return simulation_; }
  [[nodiscard]] const Simulation& simulation() const { return simulation_; }
  [[nodiscard]] Machine& machine() { return machine_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

  // Jobs join while others run, or are ended. What they do before, in MPI_Init, passes outside the model and
  // takes none of its time, so that nobody's results depend on when the host has executed it. Virtual time
  // begins now. Call before the first job is added.
  void open();
  [[nodiscard]] bool is_open() const { return is_open_; }
  // Where the time of an open model begins: all clocks before a job joins are earlier.
  static constexpr std::int64_t open_epoch_ps = std::int64_t{3600} * 1'000'000'000'000;
  // The step of a job that has not joined. Sets its outcome.
  void step_outside(Scheduler& job);
  // Call when the outcome of such a step is `ready`, and no rank of a job that takes part runs. From now on
  // the job takes part: its ranks, on these nodes, begin at this time. It is at least earliest_join_ps(),
  // unless all jobs join before the first step. If the machine refuses the ranks, the job's next outcome says
  // so (Scheduler::outcome()).
  void join(Scheduler& job, const std::vector<NodeId>& nodes, std::int64_t at_ps);
  // No job that has ended has acted later, the model has not gone further, and no job has joined then or
  // later: the times tell the order in which jobs have joined.
  [[nodiscard]] std::int64_t earliest_join_ps() const;

  // Requires that no rank of a job that takes part runs. Sets the outcome of each job (Scheduler::outcome()).
  void step();
  // The job takes part no longer; what it has sent goes on, and reaches nobody. Further calls have no effect.
  void leave(Scheduler& job);
  // At most one job takes part, and no ranks in the simulator.
  [[nodiscard]] bool is_alone() const { return jobs_.size() <= 1 && !begin_ranks_; }
  // Call when the jobs have ended: runs until the ranks in the simulator can do no more. Calls `interrupted`
  // now and then; if it returns true, ends. Rethrows what the ranks have thrown.
  void run_to_end(const std::function<bool()>& interrupted);

  // The processes from `first` on are ranks in the simulator. `sink` takes what reaches them, and `begin`
  // starts them when virtual time begins.
  void set_ranks(ProcessId first, CompletionSink& sink, std::function<void(Time)> begin);

  // For the schedulers. Returns the number of the job.
  std::uint32_t add(Scheduler& job, std::uint32_t count);
  // The first of the job's processes; none before it joins an open model.
  [[nodiscard]] ProcessId first_process(std::uint32_t job) const { return first_process_[job]; }
  void set_sink(std::uint32_t job, Delivery& sink) { sinks_[job] = &sink; }
  // The processes from `first` on are kernels of the only job's nodes (IpNetwork).
  void set_kernels(ProcessId first, std::function<void(const Completion&)> arrived);
  // Lowers the time up to which the model runs in this step.
  void lower_bound(std::int64_t time_ps) { bound_ps_ = std::min(bound_ps_, time_ps); }
  // Virtual time has begun at `now`, for all jobs.
  void begin(Time now);

 private:
  void complete(const Completion& completion) override;
  void deliver_payload(ProcessId source, std::uint64_t message) override;
  void execute(ProcessId source, std::uint64_t message) override;
  template <typename Work>
  void guarded(Scheduler& job, Work work);
  void take();
  bool begin_if_all_ready();
  void advance();

  Simulation& simulation_;
  Machine& machine_;
  std::vector<Scheduler*> jobs_;  // that take part
  std::vector<Scheduler*> step_;  // a member to reuse its memory
  // By number of the job.
  std::vector<Scheduler*> all_;
  std::vector<Delivery*> sinks_;
  std::vector<ProcessId> first_process_;
  std::vector<std::uint32_t> job_of_;    // by process
  ProcessId first_behind_ = UINT32_MAX;  // the first process behind those of the jobs
  std::function<void(const Completion&)> arrival_behind_;
  // With kernels, how long MPI_Init checks its sockets depends on the process manager, and the kernels'
  // timers count whole microseconds from the simulation's begin. So virtual time begins at a whole second.
  std::int64_t epoch_multiple_ps_ = 1;
  std::function<void(Time)> begin_ranks_;
  std::exception_ptr ranks_error_;
  std::int64_t bound_ps_ = 0;
  std::int64_t reached_ps_ = 0;  // see earliest_join_ps()
  bool has_begun_ = false;
  bool is_open_ = false;
};

}  // namespace apenet
