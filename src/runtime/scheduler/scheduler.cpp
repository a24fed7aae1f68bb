#include "runtime/scheduler/scheduler.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "machine/message_requests.hpp"
#include "machine/rails.hpp"
#include "runtime/ipc/futex.hpp"
#include "runtime/observe/process_trace.hpp"
#include "runtime/scheduler/deadlock_report.hpp"

namespace apenet {

Scheduler::Scheduler(Simulation& simulation, Machine& machine, SharedMemory& shared)
    : simulation_(simulation),
      machine_(machine),
      shared_(shared),
      exchange_(shared,
                {.process_count = machine.process_count(), .rail_count = rail_count(machine.description())}),
      process_ids_(shared),
      memory_(shared, process_ids_),
      processes_(machine.process_count()),
      lookahead_ps_(machine.lookahead().ps()),
      route_orders_(simulation, machine, memory_,
                    [this](std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault) {
                      tell_answered(rank, request, fault);
                    }),
      alive_(machine.process_count()),
      vain_alarms_(machine.process_count()) {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) ran_.push_back(rank);
  for (std::uint8_t rail = 0; rail < rail_count(machine.description()); ++rail) {
    const MachineDescription alone = rail_alone(machine.description(), rail);
    const auto costs = [](const message::SoftwareCosts& software) -> LayerCosts {
      return {software.send_packet, software.after_receive.ps()};
    };
    rail_costs_.push_back({costs(alone.mpi_software), costs(alone.card_software)});
  }
  machine.set_sink(*this);
}

Scheduler::Outcome Scheduler::step() {
  if (wake_next()) return Outcome::woken;
  notice_returns();
  collect();
  place_absent();
  to_wake_.clear();
  begin_if_all_joined();
  if (wake_flushing()) return Outcome::woken;
  feed();
  if (alive_ == 0) return Outcome::finished;
  if (begin_if_all_ready()) return Outcome::woken;
  if (!nobody_moves()) {
    advance();
    wake_concerned();
  }
  if (to_wake_.empty()) wake_sleepers();
  return to_wake_.empty() ? Outcome::idle : Outcome::woken;
}

// Reads the blocks of the processes that have run since the last step.
void Scheduler::collect() {
  std::sort(ran_.begin(), ran_.end());
  for (const std::uint32_t rank : ran_) {
    Process& process = processes_[rank];
    if (process.wait == ipc::Wait::finished) continue;
    const intake::State state = state_of(rank);
    process.wait = state.wait;
    process.clock_ps = state.clock_ps;
    process.deadline_ps = state.deadline_ps;
    if (process.has_alarm() && alarms_are_vain_) process.deadline_ps = 0;
    if (process.clock_ps >= ipc::end_of_time_ps) throw EndOfTime(rank);
    process.shares_memory = shared_.block(rank).turn.shares_memory != 0;
    process.least_events = wakes_for_each_event_ || process.shares_memory ? 1 : state.least_events;
    process.looks_for_ever =
        process.wait == ipc::Wait::until &&
        shared_.block(rank).progress.looks_for_ever(shared_.header().vain_limits, process.clock_ps);
    exchange_.take_requests(rank, [&](const ipc::Request& request) {
      posted_.push_back({request.time_ps, rank, static_cast<std::uint32_t>(requests_.size())});
      requests_.push_back(request);
    });
    exchange_.take_returned_slots(rank);
    exchange_.take_notice(rank, [&](std::int64_t taken_ps, std::uint8_t rail, ipc::Interface interface) {
      if (message::keeps_places(interface)) {
        ++process.kept[rail];
        return;
      }
      give_back(rank, taken_ps + rail_costs_[rail].of(interface).after_receive_ps, rail);
    });
    refill(rank);
    process.acts_on_ps = process.events > 0 ? process.first_event_ps : never_ps;
    if (process.wait == ipc::Wait::finished) {
      give_back_untaken(rank);
      --alive_;
      ++activity_;
    }
  }
  ran_.clear();
}

void Scheduler::feed() {
  // Requests of equal time keep the order in which they were collected: by rank, then by position.
  std::sort(posted_.begin(), posted_.end(), [](const Posted& a, const Posted& b) {
    return a.time_ps != b.time_ps ? a.time_ps < b.time_ps : a.index < b.index;
  });
  for (const Posted& posted : posted_) post(posted.rank, requests_[posted.index]);
  posted_.clear();
  requests_.clear();
}

void Scheduler::post(std::uint32_t rank, const ipc::Request& request) {
  if (request.verb == ipc::RequestVerb::release) {
    release(rank, request);
    return;
  }
  if (request.verb == ipc::RequestVerb::routes) {
    const Time reaches = Time::from_ps(request.time_ps + lookahead_ps_);
    route_orders_.post(rank, request, std::max(reaches, simulation_.now()));
    ++activity_;
    return;
  }
  const LayerCosts& costs = rail_costs_[request.rail].of(request.interface);
  Descriptor descriptor = descriptor_of(request, rank, machine_, costs.packet_interval);
  const bool is_credit = descriptor.verb == Verb::credit;  // reports nothing and moves nothing
  descriptor.message = is_credit ? request.message : pending_.add(rank, request);
  std::int64_t when = request.time_ps;
  if (when + lookahead_ps_ < simulation_.now().ps()) {
    when = simulation_.now().ps() - lookahead_ps_;
    ++totals_.late_posts;
  }
  if (started_ && !is_credit) {
    ++totals_.messages;
    totals_.bytes += static_cast<std::uint64_t>(request.bytes);
  } else if (!is_credit) {
    ++totals_.startup_messages;
  }
  ++activity_;
  vain_alarms_.reset();
  alarms_are_vain_ = false;
  try {
    machine_.post(Time::from_ps(when), descriptor);
  } catch (const std::invalid_argument& refusal) {
    throw RankError(rank, std::string("posted a request that its card does not support: ") + refusal.what());
  }
}

// Processes whose rings were full continue at once. The model does not advance before they wait for something
// else.
bool Scheduler::wake_flushing() {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait == ipc::Wait::flush) to_wake_.push_back(rank);
  }
  if (to_wake_.empty()) return false;
  feed();
  plan_turns();
  for (const std::uint32_t rank : to_wake_) wake(rank, processes_[rank].horizon_ps);
  return true;
}

// All processes wait for events or poll without end, and there are no events.
bool Scheduler::nobody_moves() const {
  if (!started_) return false;
  bool any_looks = false;
  for (const Process& process : processes_) {
    if (process.wait == ipc::Wait::finished) continue;
    const bool looks = process.wait == ipc::Wait::until && process.looks_for_ever;
    if (process.wait == ipc::Wait::away) continue;
    if (!looks && process.wait != ipc::Wait::for_event) return false;
    if (looks ? process.events > 0 : process.acts_ps() != never_ps) return false;
    any_looks = any_looks || looks;
  }
  const std::size_t pending = simulation_.pending_count();
  return any_looks && (pending == 0 || machine_.is_quiet_until_faults(pending));
}

// Runs the model up to the earliest action of any process plus the lookahead.
void Scheduler::advance() {
  horizon_ps_ = never_ps;
  for (const Process& process : processes_) {
    const std::int64_t acts_ps = process.acts_ps();
    if (acts_ps != never_ps) horizon_ps_ = std::min(horizon_ps_, acts_ps + lookahead_ps_);
  }
  while (simulation_.next_time().ps() < horizon_ps_ && !is_quiet()) {
    simulation_.step();  // deliver() lowers horizon_ps_
  }
  simulation_.ran_before(horizon_ps_ == never_ps ? Time::zero() : Time::from_ps(horizon_ps_));
}

// All processes wait, and only faults of an empty network are pending. Do not advance to them: the processes'
// next actions may be earlier.
bool Scheduler::is_quiet() const {
  return horizon_ps_ == never_ps && machine_.is_quiet_until_faults(simulation_.pending_count());
}

// Computes the two earliest actions of all processes. They suffice, because each process's horizon is the
// earliest action of any other process plus the lookahead, or the model's next event if that is earlier.
void Scheduler::wake_concerned() {
  std::int64_t first = never_ps;
  std::int64_t second = never_ps;
  std::uint32_t first_rank = 0;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const std::int64_t acts_ps = processes_[rank].acts_ps();
    if (acts_ps < first) {
      second = first;
      first = acts_ps;
      first_rank = rank;
    } else if (acts_ps < second) {
      second = acts_ps;
    }
  }
  const std::int64_t next_ps = simulation_.next_time().ps();
  const auto horizon_of = [&](std::uint32_t rank) {
    const std::int64_t others = rank == first_rank ? second : first;
    return std::min(next_ps, others == never_ps ? never_ps : others + lookahead_ps_);
  };
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const Process& process = processes_[rank];
    const bool has_event = process.events > 0;
    const bool wakes =
        (process.wait == ipc::Wait::for_event && process.acts_on_ps != never_ps) ||
        (process.has_alarm() && process.deadline_ps < horizon_of(rank)) ||
        (process.wait == ipc::Wait::computes && process.deadline_ps < horizon_of(rank)) ||
        (process.wait == ipc::Wait::until && (process.deadline_ps < horizon_of(rank) ||
                                              (has_event && process.first_event_ps <= process.deadline_ps)));
    if (wakes) to_wake_.push_back(rank);
  }
  note_alarms();
  plan_turns();
  for (const std::uint32_t rank : to_wake_) wake(rank, horizon_of(rank));
}

// A thread that sleeps, looks and sleeps again does so also when nothing else can happen any more.
void Scheduler::note_alarms() {
  const auto is_alarm = [this](std::uint32_t rank) {
    return processes_[rank].has_alarm() && processes_[rank].acts_on_ps == never_ps;
  };
  if (std::all_of(to_wake_.begin(), to_wake_.end(), is_alarm)) {
    for (const std::uint32_t rank : to_wake_) vain_alarms_.note(rank, processes_[rank].deadline_ps);
    alarms_are_vain_ = alarms_are_vain_ || are_alarms_vain();
  } else {
    vain_alarms_.reset();
    alarms_are_vain_ = false;
  }
}

bool Scheduler::are_alarms_vain() {
  const auto is_vain = [this](std::uint32_t rank) { return vain_alarms_.are_vain(rank); };
  if (std::none_of(to_wake_.begin(), to_wake_.end(), is_vain)) return false;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].has_alarm() && !vain_alarms_.have_all_woken(rank, shared_.block(rank).threads))
      return false;
  }
  return true;
}

// Nothing else will happen: the processes that sleep until more events come take those that have. What they
// do then takes no effect on others, and a report of a deadlock says what they still wait for.
void Scheduler::wake_sleepers() {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    Process& process = processes_[rank];
    if (process.wait != ipc::Wait::for_event || process.events == 0) continue;
    process.acts_on_ps = simulation_.now().ps();
    to_wake_.push_back(rank);
  }
  plan_turns();
  for (const std::uint32_t rank : to_wake_) wake(rank, simulation_.next_time().ps());
}

void Scheduler::release_idle(const std::function<bool(std::uint32_t rank)>& has_threads) {
  to_wake_.clear();
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const Process& process = processes_[rank];
    const bool looks = process.wait == ipc::Wait::until && process.looks_for_ever;
    if (looks && has_threads(rank)) to_wake_.push_back(rank);
    if (process.wait != ipc::Wait::for_event) continue;
    exchange_.advance_clock(rank, simulation_.now().ps());
    shared_.block(rank).progress.grant();
    to_wake_.push_back(rank);
  }
  plan_turns();
  for (const std::uint32_t rank : to_wake_) wake(rank, processes_[rank].horizon_ps);
}

// What a process does that polls without end, as of the last step, is no progress.
std::uint64_t Scheduler::activity() const {
  std::uint64_t activity = activity_;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const ipc::Block& block = shared_.block(rank);
    if (processes_[rank].looks_for_ever) continue;
    activity += block.progress.calls() + static_cast<std::uint64_t>(block.clock.now_ps());
  }
  return activity;
}

bool Scheduler::all_wait() const {
  return std::none_of(ran_.begin(), ran_.end(), [this](std::uint32_t rank) { return has_turn(rank); });
}

bool Scheduler::has_turn(std::uint32_t rank) const {
  const ipc::Turn& turn = shared_.block(rank).turn;
  return !processes_[rank].removed && turn.run.load() == ipc::Run::may_run &&
         turn.wait != ipc::Wait::finished;
}

void Scheduler::recover() {
  // Do not recover at first sight: a process that has just begun to wait may still decrement the count.
  const bool stuck = all_wait() && shared_.running().count.load() != 0;
  if (stuck && std::exchange(stuck_at_, activity_) == activity_) shared_.running().count.store(0);
  if (!stuck) stuck_at_.reset();
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    ipc::Turn& turn = shared_.block(rank).turn;
    if (turn.run.load() == ipc::Run::may_run) ipc::futex_wake(turn.run);
  }
}

// Decides which of the processes in to_wake_ run at once, and counts them. Call before waking any process,
// because a woken process may run and wait again at once.
//
// Processes of a node that share memory run one after the other, the earliest first: what each finds there
// must not depend on their speed.
void Scheduler::plan_turns() {
  const auto shares = [this](std::uint32_t rank) { return processes_[rank].shares_memory; };
  const bool any_shares = started_ && std::any_of(to_wake_.begin(), to_wake_.end(), shares);
  if (any_shares) {
    std::stable_sort(to_wake_.begin(), to_wake_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return processes_[a].acts_ps() < processes_[b].acts_ps();
    });
  }
  std::set<NodeId> nodes;  // on which a process that shares memory runs
  std::uint32_t count = 0;
  for (const std::uint32_t rank : to_wake_) {
    const bool comes_later = any_shares && shares(rank) && !nodes.insert(machine_.node_of(rank)).second;
    Process& process = processes_[rank];
    process.waits_for_turn = comes_later || (wakes_singly_ && started_ && rank != to_wake_.front());
    if (!process.waits_for_turn && !process.removed) ++count;
  }
  shared_.running().count.store(count);
}

// Returns false if no process waits for its turn.
bool Scheduler::wake_next() {
  while (!waiting_for_turn_.empty()) {
    const std::uint32_t rank = waiting_for_turn_.front();
    waiting_for_turn_.pop_front();
    if (processes_[rank].removed) continue;
    shared_.running().count.fetch_add(1);
    run(rank);
    return true;
  }
  return false;
}

void Scheduler::wake_beside() {
  wake_next();
}

void Scheduler::run(std::uint32_t rank) {
  ipc::Block& block = shared_.block(rank);
  block.turn.run.store(ipc::Run::may_run);
  ipc::futex_wake(block.turn.run);
}

void Scheduler::wake(std::uint32_t rank, std::int64_t horizon_ps) {
  ipc::Block& block = shared_.block(rank);
  Process& process = processes_[rank];
  if (simulation_.is_traced()) trace_wait(rank);
  // The process does not know of events in the overflow, so its horizon must not pass them.
  if (!process.overflow.empty()) horizon_ps = std::min(horizon_ps, process.overflow.front().time_ps);
  // The lookahead is what a process gets beyond a rank that fails when its failure is not yet known.
  if (started_ && end_ps_ != never_ps) horizon_ps = std::min(horizon_ps, end_ps_ + lookahead_ps_);
  // A process that computes aside does not resume: what it prints belongs to the time before.
  if (started_ && !block.clock.held() && process.wait != ipc::Wait::computes) {
    const std::int64_t acts_ps = process.acts_ps();
    const bool to_action = process.wait == ipc::Wait::for_event || process.wait == ipc::Wait::until;
    process.woken_ps = to_action && acts_ps != never_ps ? acts_ps : exchange_.clock_ps(rank);
  }
  // A process that is asleep in the host may come back at any time, and gets its turn when the others wait.
  if (!absent_.empty()) horizon_ps = std::min(horizon_ps, process.woken_ps + lookahead_ps_);
  process.wait = ipc::Wait::running;
  process.horizon_ps = horizon_ps;
  block.turn.wait = process.removed ? ipc::Wait::finished : ipc::Wait::running;
  block.clock.horizon_ps = horizon_ps;
  ran_.push_back(rank);
  if (process.waits_for_turn) {
    waiting_for_turn_.push_back(rank);
  } else {
    run(rank);
  }
}

// Ignores the block from now on, because no process updates it.
void Scheduler::remove(std::uint32_t rank) {
  Process& process = processes_[rank];
  if (process.removed) return;
  // The others go on up to the time until which it computes, whether they have learned of its end or not.
  const bool computes = computes_until_ps(rank).has_value();
  process.removed = true;
  if (computes) return;
  ipc::Turn& turn = shared_.block(rank).turn;
  std::erase(absent_, rank);
  process.left_out = false;
  const bool died_running = turn.run.load() == ipc::Run::may_run && turn.wait != ipc::Wait::finished;
  turn.wait = ipc::Wait::finished;
  if (process.wait != ipc::Wait::running && process.wait != ipc::Wait::finished) {
    process.wait = ipc::Wait::running;  // collect() removes it from the count
    ran_.push_back(rank);
  }
  if (died_running) shared_.running().count.fetch_sub(1);
}

void Scheduler::trace_wait(std::uint32_t rank) const {
  const Process& process = processes_[rank];
  if (!started_ || process.wait != ipc::Wait::for_event || process.events == 0) return;
  if (process.first_event_ps <= process.clock_ps || shared_.block(rank).clock.held()) return;
  simulation_.trace(process_record(ProcessTrace::waited, Time::from_ps(process.clock_ps),
                                   Time::from_ps(process.first_event_ps), rank));
}

ipc::Wait Scheduler::wait_of(std::uint32_t rank) const {
  if (processes_[rank].removed) return ipc::Wait::finished;
  const ipc::Block& block = shared_.block(rank);
  // Read before the reason, which the process writes first.
  const std::uint32_t run = block.turn.run.load();
  const bool runs = run == ipc::Run::may_run || run == ipc::Run::aside;
  const ipc::Wait wait = block.turn.wait;
  return runs && wait != ipc::Wait::finished ? ipc::Wait::running : wait;
}

std::string Scheduler::describe_waiting(const PlaceOfCall& place_of) {
  std::vector<RankFacts> ranks;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const ipc::Wait wait = processes_[rank].wait;
    const auto read = [this, rank](std::uint64_t address, std::span<std::byte> to) {
      return memory_.read(rank, address, to);
    };
    const bool waits = wait != ipc::Wait::finished;
    const auto facts_of = [&](const ipc::WaitNote& provider) {
      return read_facts(shared_.notes(rank), provider, static_cast<std::uint32_t>(processes_.size()), read);
    };
    ranks.push_back(waits ? facts_of(shared_.block(rank).note) : RankFacts{});
    if (wait == ipc::Wait::finished) ranks.back().state = RankFacts::State::finished;
    if (wait == ipc::Wait::start) ranks.back().state = RankFacts::State::starts;
    if (wait == ipc::Wait::away || wait == ipc::Wait::running) ranks.back().state = RankFacts::State::away;
    if (waits && processes_[rank].looks_for_ever) ranks.back().state = RankFacts::State::polls;
    for (CallFact& call : ranks.back().calls)
      call.place = call.caller == 0 ? "" : place_of(rank, call.caller, call.frame);
    if (waits) continue;
    // A finished rank may still be a member of an object that others wait on.
    RankFacts left = facts_of(shared_.block(rank).note);
    ranks.back().objects = std::move(left.objects);
    ranks.back().provider.left_sends = left.provider.left_sends;
    ranks.back().left_send = std::move(left.left_send);
  }
  return deadlock_report(ranks);
}

std::vector<std::string> Scheduler::describe_left_behind(const LineOfCode& line_of) {
  std::vector<RankFacts> ranks;
  const auto read = [](std::uint64_t, std::span<std::byte>) { return false; };  // the process has ended
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank)
    ranks.push_back(read_facts(shared_.notes(rank), shared_.block(rank).note,
                               static_cast<std::uint32_t>(processes_.size()), read));
  return left_behind(ranks, untaken_, line_of);
}

}  // namespace apenet
