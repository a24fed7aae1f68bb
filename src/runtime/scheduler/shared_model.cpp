#include "runtime/scheduler/shared_model.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "runtime/observe/process_trace.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

SharedModel::SharedModel(Simulation& simulation, Machine& machine)
    : simulation_(simulation), machine_(machine) {
  machine.set_sink(*this);
}

std::uint32_t SharedModel::add(Scheduler& job, std::uint32_t count) {
  const auto number = static_cast<std::uint32_t>(all_.size());
  all_.push_back(&job);
  sinks_.push_back(nullptr);
  first_process_.push_back(is_open_ ? UINT32_MAX : static_cast<ProcessId>(job_of_.size()));
  if (is_open_) return number;
  job_of_.insert(job_of_.end(), count, number);
  jobs_.push_back(&job);
  return number;
}

void SharedModel::open() {
  is_open_ = true;
  reached_ps_ = open_epoch_ps;
  begin(Time::from_ps(open_epoch_ps));
}

void SharedModel::step_outside(Scheduler& job) {
  guarded(job, [&job] { job.outcome_ = job.step_outside(); });
}

void SharedModel::join(Scheduler& job, const std::vector<NodeId>& nodes, std::int64_t at_ps) {
  machine_.settle();  // messages of others may be under way, and the job's own counts begin now
  jobs_.push_back(&job);
  guarded(job, [&] {
    const ProcessId first = machine_.add_processes(nodes);
    job_of_.insert(job_of_.end(), nodes.size(), job.number_);
    first_process_[job.number_] = first;
    reached_ps_ = std::max(reached_ps_, at_ps + 1);
    job.outcome_ = job.join(first, at_ps);
  });
}

std::int64_t SharedModel::earliest_join_ps() const {
  return std::max(reached_ps_, simulation_.now().ps());
}

void SharedModel::leave(Scheduler& job) {
  const auto found = std::find(jobs_.begin(), jobs_.end(), &job);
  if (found == jobs_.end()) return;
  jobs_.erase(found);
  reached_ps_ = std::max(reached_ps_, job.latest_clock_ps());
  if (!jobs_.empty() || begin_ranks_ || is_open_) job.delivery_.end();
}

void SharedModel::begin(Time now) {
  has_begun_ = true;
  simulation_.trace(process_record(ProcessTrace::began, now));
  machine_.begin(now);
  if (begin_ranks_) begin_ranks_(now);
}

void SharedModel::set_kernels(ProcessId first, std::function<void(const Completion&)> arrived) {
  first_behind_ = first;
  epoch_multiple_ps_ = Time::from_ns(1'000'000'000).ps();
  arrival_behind_ = [this, arrived = std::move(arrived)](const Completion& completion) {
    guarded(*all_.front(), [&] { arrived(completion); });
  };
}

// An error ends the ranks, and the jobs go on.
void SharedModel::set_ranks(ProcessId first, CompletionSink& sink, std::function<void(Time)> begin) {
  const auto unless_ended = [this](auto act) {
    if (ranks_error_) return;
    try {
      act();
    } catch (...) {
      ranks_error_ = std::current_exception();
    }
  };
  first_behind_ = first;
  arrival_behind_ = [&sink, unless_ended](const Completion& completion) {
    unless_ended([&] { sink.complete(completion); });
  };
  begin_ranks_ = [begin = std::move(begin), unless_ended](Time now) { unless_ended([&] { begin(now); }); };
}

void SharedModel::run_to_end(const std::function<bool()>& interrupted) {
  if (!begin_ranks_) return;
  if (!has_begun_) {
    simulation_.run();
    begin(simulation_.now());
  }
  constexpr std::uint32_t steps_per_question = 1 << 14;
  std::uint32_t steps = 0;
  for (std::size_t left = simulation_.pending_count(); left > 0 && !machine_.is_quiet_until_faults(left);
       left = simulation_.pending_count()) {
    if (++steps % steps_per_question == 0 && interrupted()) return;
    simulation_.step();
  }
  if (ranks_error_) std::rethrow_exception(ranks_error_);
}

// An error is the job's of which a process has caused it, and the others go on.
template <typename Work>
void SharedModel::guarded(Scheduler& job, Work work) {
  if (job.error_) return;
  try {
    work();
  } catch (...) {
    job.error_ = std::current_exception();
    bound_ps_ = std::numeric_limits<std::int64_t>::min();
  }
}

void SharedModel::complete(const Completion& completion) {
  if (completion.process >= first_behind_) {
    arrival_behind_(completion);
    return;
  }
  const std::uint32_t job = job_of_[completion.process];
  Completion of_job = completion;
  of_job.process -= first_process_[job];
  guarded(*all_[job], [&] { sinks_[job]->complete(of_job); });
}

void SharedModel::deliver_payload(ProcessId source, std::uint64_t message) {
  if (source >= first_behind_) return;  // IpNetwork has the bytes, and ranks in the simulator have none
  const std::uint32_t job = job_of_[source];
  guarded(*all_[job], [&] { sinks_[job]->deliver_payload(source - first_process_[job], message); });
}

void SharedModel::execute(ProcessId source, std::uint64_t message) {
  const std::uint32_t job = job_of_[source];
  guarded(*all_[job], [&] { sinks_[job]->execute(source - first_process_[job], message); });
}

void SharedModel::step() {
  take();
  if (step_.empty() || begin_if_all_ready()) return;
  bound_ps_ = never_ps;
  bool any_moves = false;
  for (Scheduler* job : step_) any_moves = job->adds_bound() || any_moves;
  try {
    if (any_moves) advance();
  } catch (...) {
    for (Scheduler* job : step_) job->error_ = std::current_exception();
  }
  for (Scheduler* job : step_) guarded(*job, [job] { job->outcome_ = job->wake(); });
}

// Takes what the jobs have posted. Leaves in step_ those for which the model is to advance: none if some job
// goes on before that.
void SharedModel::take() {
  step_.clear();
  bool is_held = false;
  for (Scheduler* job : jobs_) {
    job->outcome_ = Scheduler::Outcome::waits;
    guarded(*job, [job] { job->outcome_ = job->take(); });
    if (job->outcome_ == Scheduler::Outcome::finished) continue;
    is_held = is_held || job->error_ || job->outcome_ != Scheduler::Outcome::waits;
    step_.push_back(job);
  }
  const auto is_finished = [](const Scheduler* job) { return job->outcome_ == Scheduler::Outcome::finished; };
  for (auto done = std::find_if(jobs_.begin(), jobs_.end(), is_finished); done != jobs_.end();
       done = std::find_if(jobs_.begin(), jobs_.end(), is_finished))
    leave(**done);
  if (is_held) step_.clear();
}

// What the jobs' MPI libraries have started counts in no measurement, so it is finished before.
bool SharedModel::begin_if_all_ready() {
  const auto is_ready = [](const Scheduler* job) { return job->is_ready_to_begin(); };
  if (has_begun_ || !std::all_of(step_.begin(), step_.end(), is_ready)) return false;
  simulation_.run();
  std::int64_t epoch_ps = simulation_.now().ps();
  for (const Scheduler* job : step_) epoch_ps = std::max(epoch_ps, job->latest_clock_ps());
  epoch_ps = (epoch_ps + epoch_multiple_ps_ - 1) / epoch_multiple_ps_ * epoch_multiple_ps_;
  begin(Time::from_ps(epoch_ps));
  for (Scheduler* job : step_)
    guarded(*job, [job, epoch_ps] { job->outcome_ = job->begin_at_barrier(epoch_ps); });
  return true;
}

// If all ranks wait for events, and only faults of an empty network are pending, the model does not advance
// to them: the ranks' next actions may be earlier.
void SharedModel::advance() {
  const bool has_faults = machine_.has_faults();  // asked once: the loop below is hot
  const auto is_quiet = [&] {
    return has_faults && bound_ps_ == never_ps && machine_.is_quiet_until_faults(simulation_.pending_count());
  };
  while (simulation_.next_time().ps() < bound_ps_ && !is_quiet()) {
    simulation_.step();  // an event that is delivered lowers the bound
  }
  const bool is_known = bound_ps_ != never_ps && bound_ps_ > 0;
  if (is_known) reached_ps_ = std::max(reached_ps_, bound_ps_);
  simulation_.ran_before(is_known ? Time::from_ps(bound_ps_) : Time::zero());
}

}  // namespace apenet
