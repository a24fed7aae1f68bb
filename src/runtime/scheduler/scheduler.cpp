#include "runtime/scheduler/scheduler.hpp"

#include <algorithm>
#include <cstring>

#include "kernel/check.hpp"
#include "runtime/ipc/futex.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {
namespace {

constexpr std::int64_t never_ps = Time::never().ps();

static_assert(static_cast<int>(ipc::RequestVerb::send) == static_cast<int>(Verb::send));
static_assert(static_cast<int>(ipc::RequestVerb::put) == static_cast<int>(Verb::put));
static_assert(static_cast<int>(ipc::RequestVerb::get) == static_cast<int>(Verb::get));
static_assert(static_cast<int>(ipc::RequestVerb::credit) == static_cast<int>(Verb::credit));

ipc::EventKind event_kind(Completion::Kind kind, ipc::RequestVerb verb) {
  switch (kind) {
    case Completion::Kind::sent:
      return ipc::EventKind::sent;
    case Completion::Kind::arrived:
      return verb == ipc::RequestVerb::put ? ipc::EventKind::put_arrived : ipc::EventKind::arrived;
    case Completion::Kind::remote_done:
      return ipc::EventKind::remote_done;
    case Completion::Kind::got:
      break;
  }
  return ipc::EventKind::got;
}

void copy_event(ipc::Event& to, const ipc::Event& from) {
  std::memcpy(static_cast<void*>(&to), &from, offsetof(ipc::Event, inline_data) + from.inline_length);
}

}  // namespace

Scheduler::Scheduler(Simulation& simulation, Machine& machine, Mapping& mapping)
    : simulation_(simulation),
      machine_(machine),
      mapping_(mapping),
      memory_(mapping),
      processes_(machine.process_count()),
      lookahead_ps_(machine.lookahead().ps()),
      packet_interval_(machine.description().mpi_software.send_packet),
      after_receive_ps_(machine.description().mpi_software.after_receive.ps()),
      alive_(machine.process_count()) {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) ran_.push_back(rank);
  machine.set_sink(*this);
}

Scheduler::Outcome Scheduler::step() {
  collect();
  to_wake_.clear();
  if (wake_flushing()) return Outcome::woken;
  feed();
  if (alive_ == 0) return Outcome::finished;
  if (begin_if_all_ready()) return Outcome::woken;
  advance();
  wake_concerned();
  return to_wake_.empty() ? Outcome::idle : Outcome::woken;
}

// Reads what the processes that ran have left in their blocks.
void Scheduler::collect() {
  std::sort(ran_.begin(), ran_.end());
  for (const std::uint32_t rank : ran_) {
    const ipc::Block& block = mapping_.block(rank);
    Process& process = processes_[rank];
    if (process.wait == ipc::Wait::finished) continue;
    process.wait = block.wait;
    process.clock_ps = block.clock_ps;
    if (process.clock_ps >= ipc::end_of_time_ps) {
      throw EndOfTime("rank " + std::to_string(rank) +
                      " has slept, computed or worked to the end of virtual time, 104 days");
    }
    process.deadline_ps = block.deadline_ps;
    process.events = block.event_head - block.event_tail;
    if (process.events > 0)
      process.first_event_ps = mapping_.block(rank).events[block.event_tail % ipc::event_ring].time_ps;
    take_requests(rank);
    take_returned_slots(rank);
    give_back_taken(rank);
    refill(rank);
    if (process.wait == ipc::Wait::finished) {
      give_back_untaken(rank);
      --alive_;
      ++activity_;
    }
  }
  ran_.clear();
}

void Scheduler::take_requests(std::uint32_t rank) {
  ipc::Block& block = mapping_.block(rank);
  for (; block.request_tail != block.request_head; ++block.request_tail) {
    posted_.push_back(
        {block.requests[block.request_tail % ipc::request_ring].time_ps, rank, block.request_tail});
    // The entry stays valid until feed(): a process that flushes is woken only after its requests were fed.
  }
}

void Scheduler::take_returned_slots(std::uint32_t rank) {
  ipc::Block& block = mapping_.block(rank);
  for (; block.returned_tail != block.returned_head; ++block.returned_tail) {
    const std::uint32_t* entry = block.returned[block.returned_tail % ipc::returned_ring];
    ipc::Block& owner = mapping_.block(entry[0]);
    owner.free_slots[owner.free_head++ % ipc::slots_per_process] = entry[1];
  }
}

// What the process has taken since it was last seen; Client::pop has left the time in the entry.
void Scheduler::give_back_taken(std::uint32_t rank) {
  const ipc::Block& block = mapping_.block(rank);
  for (std::uint32_t& taken = processes_[rank].taken; taken != block.event_tail; ++taken) {
    const ipc::Event& event = block.events[taken % ipc::event_ring];
    give_back(rank, event, event.time_ps + after_receive_ps_);
  }
}

// A process that has left takes nothing any more, and must not hold up the network.
void Scheduler::give_back_untaken(std::uint32_t rank) {
  const ipc::Block& block = mapping_.block(rank);
  for (std::uint32_t at = block.event_tail; at != block.event_head; ++at) {
    give_back(rank, block.events[at % ipc::event_ring], block.clock_ps);
  }
  for (const ipc::Event& event : processes_[rank].overflow) give_back(rank, event, block.clock_ps);
}

void Scheduler::give_back(std::uint32_t rank, const ipc::Event& event, std::int64_t when_ps) {
  if (event.mailbox_packets == 0) return;
  machine_.give_back(Time::from_ps(std::max(when_ps, simulation_.now().ps())), rank);
}

// Moves waiting events into the ring, as far as there is room.
void Scheduler::refill(std::uint32_t rank) {
  Process& process = processes_[rank];
  if (process.overflow.empty()) return;
  ipc::Block& block = mapping_.block(rank);
  std::size_t moved = 0;
  while (moved < process.overflow.size() && block.event_head - block.event_tail < ipc::event_ring) {
    copy_event(block.events[block.event_head++ % ipc::event_ring], process.overflow[moved++]);
  }
  process.overflow.erase(process.overflow.begin(),
                         process.overflow.begin() + static_cast<std::ptrdiff_t>(moved));
  process.events = block.event_head - block.event_tail;
  if (process.events > 0) process.first_event_ps = block.events[block.event_tail % ipc::event_ring].time_ps;
}

void Scheduler::feed() {
  std::sort(posted_.begin(), posted_.end(), [](const Posted& a, const Posted& b) {
    if (a.time_ps != b.time_ps) return a.time_ps < b.time_ps;
    if (a.rank != b.rank) return a.rank < b.rank;
    return static_cast<std::int32_t>(a.position - b.position) < 0;  // free-running
  });
  for (const Posted& posted : posted_) {
    const ipc::Request& request = mapping_.block(posted.rank).requests[posted.position % ipc::request_ring];
    Descriptor descriptor;
    descriptor.verb = static_cast<Verb>(request.verb);
    descriptor.source = posted.rank;
    descriptor.target = request.target;
    descriptor.channel = request.channel;
    descriptor.from_cpu = (request.flags & ipc::from_cpu) != 0;
    descriptor.want_local = (request.flags & ipc::want_local) != 0;
    descriptor.want_remote = (request.flags & ipc::want_remote) != 0;
    descriptor.notify_target = (request.flags & ipc::notify_target) != 0 || descriptor.verb == Verb::send;
    descriptor.bytes = request.bytes;
    descriptor.local_address = request.local_address;
    descriptor.remote_address = request.remote_address;
    const bool is_credit = descriptor.verb == Verb::credit;  // reports nothing and moves nothing
    descriptor.message = is_credit ? request.message : flights_.add(posted.rank, request);
    descriptor.packet_interval = packet_interval_;
    std::int64_t when = request.time_ps;
    if (when + lookahead_ps_ < simulation_.now().ps()) {
      when = simulation_.now().ps() - lookahead_ps_;
      ++traffic_.late_posts;
    }
    if (started_ && !is_credit) {
      ++traffic_.messages;
      traffic_.bytes += static_cast<std::uint64_t>(request.bytes);
    } else if (!is_credit) {
      ++traffic_.startup_messages;
    }
    ++activity_;
    machine_.post(Time::from_ps(when), descriptor);
  }
  posted_.clear();
}

// Processes whose rings were full go on at once; the model does not move before they wait for something else.
bool Scheduler::wake_flushing() {
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait == ipc::Wait::flush) to_wake_.push_back(rank);
  }
  if (to_wake_.empty()) return false;
  feed();
  set_running();
  for (const std::uint32_t rank : to_wake_) wake(rank, mapping_.block(rank).horizon_ps);
  return true;
}

// The barrier at the end of MPI_Init: when everybody is there, all clocks show zero.
bool Scheduler::begin_if_all_ready() {
  if (started_) return false;
  for (const Process& process : processes_) {
    if (process.wait != ipc::Wait::start && process.wait != ipc::Wait::finished) return false;
  }
  // What happened during MPI_Init is over, and belongs to no measurement.
  simulation_.run();
  startup_link_use_ = machine_.link_use();
  started_ = true;
  ++activity_;
  std::int64_t epoch_ps = simulation_.now().ps();
  for (const Process& process : processes_) epoch_ps = std::max(epoch_ps, process.clock_ps);
  mapping_.header().epoch_ps = epoch_ps;
  simulation_.trace(process_record(ProcessTrace::began, Time::from_ps(epoch_ps)));
  machine_.begin(Time::from_ps(epoch_ps));
  mapping_.header().started = 1;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait == ipc::Wait::finished) continue;
    ipc::Block& block = mapping_.block(rank);
    block.clock_ps = epoch_ps;
    block.waited_ps = 0;
    block.computed_ps = 0;
    block.outside_ps = 0;
    block.left_ps = epoch_ps;
    to_wake_.push_back(rank);
  }
  set_running();
  for (const std::uint32_t rank : to_wake_) wake(rank, epoch_ps + lookahead_ps_);
  return true;
}

// Runs the model until the next event could lie behind the action of a process that is about to wake.
void Scheduler::advance() {
  horizon_ps_ = never_ps;
  for (const Process& process : processes_) {
    if (process.wait == ipc::Wait::until)
      horizon_ps_ = std::min(horizon_ps_, process.deadline_ps + lookahead_ps_);
    if (process.wait == ipc::Wait::for_event && process.events > 0) {
      horizon_ps_ = std::min(horizon_ps_, std::max(process.clock_ps, process.first_event_ps) + lookahead_ps_);
    }
  }
  while (simulation_.next_time().ps() < horizon_ps_ && !is_quiet()) {
    simulation_.step();  // deliver() lowers the horizon
  }
}

// All wait, and nothing comes but faults that would hit an empty network: time does not run ahead to them.
// What processes do next may be earlier.
bool Scheduler::is_quiet() const {
  return horizon_ps_ == never_ps && machine_.is_quiet_until_faults(simulation_.pending_count());
}

// When would each process act next? The two earliest suffice: everybody's horizon is the earliest action of
// the others, plus the lookahead, or the next event of the model.
void Scheduler::wake_concerned() {
  std::int64_t first = never_ps;
  std::int64_t second = never_ps;
  std::uint32_t first_rank = 0;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    const Process& process = processes_[rank];
    std::int64_t acts_ps = never_ps;
    if (process.wait == ipc::Wait::until) {
      acts_ps = process.deadline_ps;
    } else if (process.wait == ipc::Wait::for_event && process.events > 0) {
      acts_ps = std::max(process.clock_ps, process.first_event_ps);
    }
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
        (process.wait == ipc::Wait::for_event && has_event) ||
        (process.wait == ipc::Wait::until && (process.deadline_ps < horizon_of(rank) ||
                                              (has_event && process.first_event_ps <= process.deadline_ps)));
    if (wakes) to_wake_.push_back(rank);
  }
  set_running();
  for (const std::uint32_t rank : to_wake_) wake(rank, horizon_of(rank));
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

void Scheduler::release_idle() {
  to_wake_.clear();
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait != ipc::Wait::for_event) continue;
    ipc::Block& block = mapping_.block(rank);
    block.clock_ps = std::max(block.clock_ps, simulation_.now().ps());
    block.free_polls = ipc::granted_polls;
    to_wake_.push_back(rank);
  }
  set_running();
  for (const std::uint32_t rank : to_wake_) wake(rank, mapping_.block(rank).horizon_ps);
}

// Before the first of them is woken: it may run, and wait again, at once.
void Scheduler::set_running() {
  mapping_.header().running.store(static_cast<std::uint32_t>(to_wake_.size()));
}

void Scheduler::wake(std::uint32_t rank, std::int64_t horizon_ps) {
  ipc::Block& block = mapping_.block(rank);
  Process& process = processes_[rank];
  if (simulation_.is_traced()) trace_wait(rank);
  // Events that found no room in the ring are not known to the process: it has to come back for them.
  if (!process.overflow.empty()) horizon_ps = std::min(horizon_ps, process.overflow.front().time_ps);
  process.wait = ipc::Wait::running;
  block.wait = ipc::Wait::running;
  block.horizon_ps = horizon_ps;
  ran_.push_back(rank);
  block.run.store(ipc::Run::may_run);
  ipc::futex_wake(block.run);
}

void Scheduler::remove(std::uint32_t rank) {
  ipc::Block& block = mapping_.block(rank);
  if (block.wait == ipc::Wait::finished) return;
  const bool died_running = block.run.load() == ipc::Run::may_run;
  block.wait = ipc::Wait::finished;  // collect() counts it out
  if (processes_[rank].wait != ipc::Wait::running) {
    processes_[rank].wait = ipc::Wait::running;
    ran_.push_back(rank);
  }
  if (died_running) mapping_.header().running.fetch_sub(1);
}

void Scheduler::complete(const Completion& completion) {
  trace(completion);
  Flight& flight = flights_.at(completion.message);
  const ipc::Request& request = flight.request;
  ipc::Event event;
  event.time_ps = completion.time.ps();
  event.message = request.message;
  event.source = flight.rank;
  event.kind = event_kind(completion.kind, request.verb);
  event.channel = request.channel;
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.mailbox_packets = completion.mailbox_packets;
  if (event.kind == ipc::EventKind::arrived) {
    event.slot = request.slot;
    event.slot_length = request.slot_length;
    event.inline_length = request.inline_length;
    std::memcpy(event.inline_data, request.inline_data, request.inline_length);
  }
  if (event.kind == ipc::EventKind::sent) stage(flight, memory_);
  event.failed = flight.failed ? 1 : 0;
  if (flight.failed) ++traffic_.failed_accesses;
  deliver(completion.process, event);
  --flight.completions_due;
  flights_.settle(completion.message);
}

void Scheduler::land(ProcessId /*source*/, std::uint64_t message) {
  Flight& flight = flights_.at(message);
  if (!flight.land_due) return;
  move_bytes(flight, memory_);
  flights_.settle(message);
}

void Scheduler::deliver(std::uint32_t rank, const ipc::Event& event) {
  Process& process = processes_[rank];
  if (process.wait == ipc::Wait::finished) {
    give_back(rank, event, event.time_ps);
    return;
  }
  ipc::Block& block = mapping_.block(rank);
  if (process.events == 0) process.first_event_ps = event.time_ps;
  if (block.event_head - block.event_tail == ipc::event_ring) {
    process.overflow.emplace_back();
    copy_event(process.overflow.back(), event);
  } else {
    copy_event(block.events[block.event_head++ % ipc::event_ring], event);
    ++process.events;
  }
  ++activity_;
  if (process.wait == ipc::Wait::for_event) {
    horizon_ps_ = std::min(horizon_ps_, std::max(process.clock_ps, process.first_event_ps) + lookahead_ps_);
  }
}

void Scheduler::trace(const Completion& completion) {
  if (!started_) return;
  const Flight& flight = flights_.at(completion.message);
  hash_.record({.time = completion.time - Time::from_ps(mapping_.header().epoch_ps),
                .kind = EventKind::process,
                .what = static_cast<std::uint16_t>(completion.kind),
                .place = completion.process,
                .a = std::uint64_t{flight.rank} << 32 | flight.request.target,
                .b = static_cast<std::uint64_t>(flight.request.bytes)});
}

void Scheduler::trace_wait(std::uint32_t rank) const {
  const Process& process = processes_[rank];
  if (!started_ || process.wait != ipc::Wait::for_event || process.events == 0) return;
  if (process.first_event_ps <= process.clock_ps) return;
  simulation_.trace(process_record(ProcessTrace::waited, Time::from_ps(process.clock_ps),
                                   Time::from_ps(process.first_event_ps), rank));
}

ipc::Wait Scheduler::wait_of(std::uint32_t rank) const {
  const ipc::Block& block = mapping_.block(rank);
  const bool runs = block.run.load() == ipc::Run::may_run;  // before the reason, which is written first
  const ipc::Wait wait = block.wait;
  return runs && wait != ipc::Wait::finished ? ipc::Wait::running : wait;
}

std::string Scheduler::describe_waiting() const {
  std::string text;
  for (std::uint32_t rank = 0; rank < processes_.size(); ++rank) {
    if (processes_[rank].wait == ipc::Wait::finished) continue;
    const ipc::WaitNote& note = mapping_.block(rank).note;
    text += "  rank " + std::to_string(rank);
    if (note.receives > 0) {
      text += " waits for a message from " +
              (note.receive_source < 0 ? std::string("any rank")
                                       : "rank " + std::to_string(note.receive_source)) +
              ", tag " + std::to_string(note.receive_tag & 0x7fffffff);
      if (note.receives > 1) text += " (and " + std::to_string(note.receives - 1) + " more receives)";
    }
    if (note.sends > 0) {
      text += (note.receives > 0 ? "; " : " ") + std::to_string(note.sends) +
              " unfinished send(s), the oldest to rank " + std::to_string(note.send_target);
    }
    if (note.receives == 0 && note.sends == 0)
      text += " waits for something that no posted operation explains";
    text += "\n";
  }
  return text;
}

}  // namespace apenet
