#include "runtime/scheduler/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "machine/rails.hpp"
#include "runtime/observe/process_trace.hpp"
#include "runtime/scheduler/rank_snapshot.hpp"

namespace apenet {

Scheduler::Scheduler(SharedModel& model, SharedMemory& shared, ProcessMemory& memory,
                     const SchedulerOptions& options, std::optional<IpNetwork::Setup> ip)
    : model_(model),
      simulation_(model.simulation()),
      shared_(shared),
      memory_(memory),
      options_(options),
      ranks_(shared, shared.header().process_count),
      number_(model.add(*this, ranks_.size())),
      first_process_(model.first_process(number_)),
      is_outside_(model.is_open()),
      exchange_(shared,
                {.process_count = ranks_.size(), .rail_count = rail_count(model.machine().description())}),
      bounds_(shared, model, ranks_, exchange_),
      grants_(shared, model.machine(), first_process_, ranks_, options.one_at_a_time),
      suspension_(shared, memory, ranks_, exchange_, grants_),
      delivery_(model, number_, first_process_, shared, memory, ranks_, exchange_, bounds_),
      signals_(shared, simulation_, ranks_, bounds_, memory.process_ids()),
      idle_alarms_(ranks_.size()) {
  bounds_.set_outside(is_outside_);
  if (is_outside_) delivery_.set_outside();
  if (ip) delivery_.begin_ip(model_, std::move(*ip));
}

Scheduler::Outcome Scheduler::outcome() const {
  if (error_) std::rethrow_exception(error_);
  return outcome_;
}

// Each part of a step may be called again before the next one: it takes what is new.
Scheduler::Outcome Scheduler::take() {
  if (grants_.grant_next()) return Outcome::woken;
  suspension_.note_returns();
  take_reports();
  suspension_.place(present_ps() - bounds_.lookahead_ps());
  to_wake_.clear();
  begin_if_all_joined();
  if (wake_flushing()) return Outcome::woken;
  feed();
  if (signals_.any_is_interrupted())
    signals_.end_interrupted(suspension_.latest_acted_ps(present_ps() - bounds_.lookahead_ps()));
  if (ranks_.alive() == 0) {
    delivery_.note_under_way();
    return Outcome::finished;
  }
  if (is_alone() || !can_only_wait()) return Outcome::waits;
  wake_sleepers();
  return grants_.last_woken().empty() ? Outcome::idle : Outcome::woken;
}

bool Scheduler::adds_bound() {
  moves_ = !nobody_moves();
  if (moves_) bounds_.add_to_model_bound();
  return moves_;
}

Scheduler::Outcome Scheduler::wake() {
  if (moves_) wake_concerned();
  if (grants_.last_woken().empty() && is_alone()) wake_sleepers();
  if (!grants_.last_woken().empty()) return Outcome::woken;
  return is_alone() ? Outcome::idle : Outcome::waits;
}

// Reads the blocks of the ranks that have run since the last step.
void Scheduler::take_reports() {
  grants_.take_changed(changed_);
  for (const std::uint32_t rank : changed_) {
    if (ranks_[rank].state == RankState::finished) continue;
    take_state(rank);
    take_requests(rank);
  }
}

void Scheduler::take_state(std::uint32_t rank) {
  Rank& known = ranks_.at(rank);
  known.deadline_ps = never_ps;
  known.least_events = 1;
  if (known.state == RankState::ended) {
    known.clock_ps = exchange_.read_last_clock_ps(rank);
    ranks_.apply(rank, RankInput::retire);
  } else if (ranks_.is_suspended(rank)) {
    known.clock_ps = exchange_.read_clock_ps(rank);
  } else {
    if (known.state == RankState::suspended) suspension_.add_returned(rank);
    validation::WaitReport report = exchange_.read_report(rank);
    const bool polls =
        report.input == RankInput::reports_time_wait &&
        shared_.block(rank).progress.polls_endlessly(shared_.header().empty_poll_limits, report.clock_ps);
    ranks_.apply_report(rank, polls ? RankInput::reports_polling : report.input);
    known.clock_ps = report.clock_ps;
    known.deadline_ps = report.deadline_ps;
    known.least_events = report.least_events;
  }
  if (known.has_alarm() && alarms_are_idle_) known.deadline_ps = never_ps;
  if (known.clock_ps >= ipc::end_of_time_ps) throw EndOfTime(rank);
  known.shares_memory = shared_.block(rank).grant.shares_memory != 0;
  if (options_.wakes_for_each_event || known.shares_memory) known.least_events = 1;
}

void Scheduler::take_requests(std::uint32_t rank) {
  Rank& known = ranks_.at(rank);
  exchange_.take_requests(rank, [&](const ipc::Request& request) {
    known.lower_horizon(request.time_ps + bounds_.lookahead_ps());
    posted_.push_back({request.time_ps, rank, static_cast<std::uint32_t>(requests_.size())});
    requests_.push_back(request);
  });
  exchange_.take_returned_slots(rank);
  delivery_.take_notice(rank);
  known.acts_on_ps = known.events > 0 ? known.first_event_ps : never_ps;
  if (known.state == RankState::finished) {
    delivery_.give_back_untaken(rank);
    delivery_.end_sockets(rank);
  }
}

void Scheduler::feed() {
  // Requests of equal time keep the order in which they were collected: by rank, then by position.
  std::sort(posted_.begin(), posted_.end(), [](const Posted& a, const Posted& b) {
    return a.time_ps != b.time_ps ? a.time_ps < b.time_ps : a.index < b.index;
  });
  for (const Posted& posted : posted_) {
    const ipc::Request& request = requests_[posted.index];
    if (request.verb == ipc::RequestVerb::signal) {
      ranks_.note_activity();
      signals_.send(request);
    } else if (!delivery_.post(posted.rank, request)) {
      continue;
    }
    idle_alarms_.reset();
    alarms_are_idle_ = false;
  }
  posted_.clear();
  requests_.clear();
}

// Ranks whose rings were full continue at once. The model does not advance before they wait for something
// else.
bool Scheduler::wake_flushing() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state == RankState::flushing) to_wake_.push_back(rank);
  }
  if (to_wake_.empty()) return false;
  feed();
  for (const std::uint32_t rank : to_wake_) delivery_.hold_payloads(rank);
  wake_up_to([this](std::uint32_t rank) { return ranks_[rank].horizon_ps; });
  return true;
}

// All ranks wait for events or poll without end, and there are no events.
bool Scheduler::nobody_moves() const {
  if (!ranks_.started()) return false;
  bool any_polls = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& known = ranks_[rank];
    switch (known.state) {
      case RankState::polling:
        if (known.events > 0) return false;
        any_polls = true;
        break;
      case RankState::awaiting_event:
        if (LowerBounds::acts_ps(known) != never_ps) return false;
        break;
      case RankState::suspended:
      case RankState::finished:
        break;
      default:
        return false;
    }
  }
  return any_polls && bounds_.nothing_comes();
}

// Beside other jobs, whose events do not let the model come to its end: no rank has a time at which it acts,
// or they poll without end, and nothing comes.
bool Scheduler::can_only_wait() const {
  bool any_waits = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& known = ranks_[rank];
    switch (known.state) {
      case RankState::polling:
        if (known.events > 0) return false;
        any_waits = true;
        break;
      case RankState::awaiting_event:
        if (LowerBounds::acts_ps(known) != never_ps) return false;
        any_waits = true;
        break;
      case RankState::starting:
      case RankState::suspended:
      case RankState::finished:
        break;
      default:
        return false;
    }
  }
  return any_waits && bounds_.nothing_comes();
}

void Scheduler::wake_concerned() {
  bounds_.find_horizons();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const Rank& known = ranks_[rank];
    const bool has_event =
        known.state == RankState::awaiting_event
            ? known.acts_on_ps != never_ps
            : known.waits_for_time() && known.events > 0 && known.first_event_ps <= known.deadline_ps;
    const bool has_deadline = known.has_alarm() || known.computes() || known.waits_for_time();
    if (has_event || (has_deadline && known.deadline_ps < bounds_.horizon_ps(rank))) to_wake_.push_back(rank);
  }
  note_alarms();
  wake_up_to([this](std::uint32_t rank) { return bounds_.horizon_ps(rank); });
}

// A thread that sleeps, checks and sleeps again does so also when nothing else can happen any more.
void Scheduler::note_alarms() {
  const auto is_alarm = [this](std::uint32_t rank) {
    return ranks_[rank].has_alarm() && ranks_[rank].acts_on_ps == never_ps;
  };
  if (std::all_of(to_wake_.begin(), to_wake_.end(), is_alarm)) {
    for (const std::uint32_t rank : to_wake_) idle_alarms_.note(rank, ranks_[rank].deadline_ps);
    alarms_are_idle_ = alarms_are_idle_ || are_alarms_idle();
  } else {
    idle_alarms_.reset();
    alarms_are_idle_ = false;
  }
}

// Once all ranks are in MPI_Finalize, none waits for what a thread does after its next sleep.
bool Scheduler::are_alarms_idle() {
  bool all_leave = true;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank)
    all_leave =
        all_leave && (ranks_[rank].state == RankState::finished || shared_.block(rank).progress.leaves());
  if (all_leave) return true;
  const auto is_idle = [this](std::uint32_t rank) { return idle_alarms_.are_idle(rank); };
  if (std::none_of(to_wake_.begin(), to_wake_.end(), is_idle)) return false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].has_alarm() &&
        !idle_alarms_.have_all_woken(rank, shared_.block(rank).grant.slept_since_ps))
      return false;
  }
  return true;
}

// Nothing else will happen: the ranks that sleep until more events come take those that have. What they do
// then takes no effect on others, and a report of a deadlock says what they still wait for.
void Scheduler::wake_sleepers() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].state != RankState::awaiting_event || ranks_[rank].events == 0) continue;
    ranks_.at(rank).acts_on_ps = present_ps();
    to_wake_.push_back(rank);
  }
  wake_up_to([this](std::uint32_t) { return is_outside_ ? never_ps : simulation_.next_time().ps(); });
}

void Scheduler::release_idle(const std::function<bool(std::uint32_t rank)>& has_threads) {
  to_wake_.clear();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankState state = ranks_[rank].state;
    if (state == RankState::polling && has_threads(rank)) to_wake_.push_back(rank);
    if (state != RankState::awaiting_event) continue;
    exchange_.advance_clock(rank, present_ps());
    shared_.block(rank).progress.grant();
    to_wake_.push_back(rank);
  }
  // What a released rank posts may arrive before the horizons that ranks have had since.
  bounds_.find_horizons_of_released(to_wake_);
  wake_up_to(
      [this](std::uint32_t rank) { return std::min(ranks_[rank].horizon_ps, bounds_.horizon_ps(rank)); });
}

void Scheduler::wake_up_to(const std::function<std::int64_t(std::uint32_t rank)>& horizon_of) {
  grants_.wake(to_wake_, [&](std::uint32_t rank) { prepare(rank, horizon_of(rank)); });
}

void Scheduler::prepare(std::uint32_t rank, std::int64_t horizon_ps) {
  Rank& known = ranks_.at(rank);
  ipc::Clock& clock = shared_.block(rank).clock;
  if (simulation_.is_traced()) trace_wait(rank);
  // A rank in overlapped compute does not resume: what it prints belongs to the time before.
  if (ranks_.started() && !clock.held() && !known.computes()) {
    const std::int64_t acts_ps = LowerBounds::acts_ps(known);
    known.woken_ps = acts_ps != never_ps ? acts_ps : exchange_.clock_ps(rank);
  }
  known.horizon_ps = bounds_.granted_horizon_ps(rank, horizon_ps, suspension_.any());
  clock.horizon_ps = known.horizon_ps;
}

void Scheduler::remove(std::uint32_t rank) {
  const RankState before = ranks_[rank].state;
  if (before == RankState::ended || before == RankState::computing_ended) return;
  // The others go on up to the time until which it computes, whether they have learned of its end or not.
  if (const auto until_ps = ranks_.computes_until_ps(rank)) {
    ranks_.apply(rank, RankInput::process_ends_computing);
    ranks_.at(rank).deadline_ps = *until_ps;
    return;
  }
  const bool had_grant = ranks_.has_grant(rank);
  ranks_.apply(rank, RankInput::process_ends);
  shared_.block(rank).grant.wait = ipc::Wait::finished;
  if (before == RankState::suspended) suspension_.note_end();
  const bool is_listed = before == RankState::running || before == RankState::queued;
  if (ranks_[rank].state == RankState::ended && !is_listed) grants_.note_changed(rank);
  if (had_grant) grants_.drop_running(1);
}

void Scheduler::trace_wait(std::uint32_t rank) const {
  const Rank& known = ranks_[rank];
  if (!ranks_.started() || known.state != RankState::awaiting_event || known.events == 0) return;
  if (known.first_event_ps <= known.clock_ps || shared_.block(rank).clock.held()) return;
  simulation_.trace(process_record(ProcessTrace::waited, Time::from_ps(known.clock_ps),
                                   Time::from_ps(known.first_event_ps), rank,
                                   static_cast<std::uint64_t>(ipc::only_call(shared_.notes(rank)))));
}

}  // namespace apenet
