// How completions of the model reach the processes: moved bytes, events in the rings, places in the mailbox.
#include <algorithm>
#include <cstring>

#include "machine/message_requests.hpp"
#include "message/wire.hpp"
#include "runtime/ipc/program_tags.hpp"
#include "runtime/scheduler/rank_error.hpp"
#include "runtime/scheduler/scheduler.hpp"

namespace apenet {

void Scheduler::complete(const Completion& completion) {
  PendingRequest& pending = pending_.at(completion.message);
  const ipc::Request& request = pending.request;
  if (started_) {
    hash_.record(
        completion_record(completion, Time::from_ps(epoch_ps_), pending.rank, request.target, request.bytes));
  }
  ipc::Event event;
  event.time_ps = completion.time.ps();
  event.message = request.message;
  event.source = pending.rank;
  event.kind = event_kind(completion.kind, request.verb);
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.mailbox_packets = completion.mailbox_packets;
  event.rail = request.rail;
  event.interface = request.interface;
  if (event.kind == ipc::EventKind::arrived) {
    event.slot = request.slot;
    event.slot_length = request.slot_length;
    event.inline_length = request.inline_length;
    std::memcpy(event.inline_data, request.inline_data, request.inline_length);
  }
  const bool is_lock = (request.flags & ipc::lock) != 0;
  if (event.kind == ipc::EventKind::served && is_lock && pending.fault == ipc::AccessFault::none) {
    event.inline_length = message::lock_bytes;
    std::memcpy(event.inline_data, pending.staging.data(), message::lock_bytes);
  }
  if (event.kind == ipc::EventKind::sent && request.verb == ipc::RequestVerb::put)
    pending_.stage(pending, memory_);
  event.key = request.key;
  // A card that names memory by its address alone says where the bytes lie.
  const bool has_address = request.interface != ipc::Interface::libfabric && request.key == 0;
  if (event.kind == ipc::EventKind::put_arrived && has_address) event.key = request.remote_address;
  event.fault = pending.fault;
  // Taking a message out of a mailbox frees its place.
  const bool asks_nothing =
      event.kind == ipc::EventKind::arrived && request.asks_nothing != 0 && event.mailbox_packets == 0;
  deliver(completion.process, event, asks_nothing);
  --pending.completions_due;
  pending_.settle(completion.message);
}

void Scheduler::land(ProcessId /*source*/, std::uint64_t message) {
  PendingRequest& pending = pending_.at(message);
  if (!pending.land_due) return;
  const ipc::Request& request = pending.request;
  if ((request.flags & ipc::lock) == 0) permit(pending, shared_.regions(request.target));
  pending_.move_bytes(pending, memory_);
  if (pending.fault != ipc::AccessFault::none) {
    ++totals_.failed_accesses;
    report_refusal(pending);
  }
  pending_.settle(message);
}

void Scheduler::execute(ProcessId /*source*/, std::uint64_t message) {
  PendingRequest& pending = pending_.at(message);
  permit(pending, shared_.regions(pending.request.target));
  execute_lock(pending, memory_);
}

// The report takes no time of the model's: it is not a packet of the card.
void Scheduler::report_refusal(const PendingRequest& pending) {
  const ipc::Request& request = pending.request;
  const bool is_reported = (request.flags & ipc::want_remote) != 0;
  if (request.interface == ipc::Interface::libfabric || request.verb != ipc::RequestVerb::put || is_reported)
    return;
  ipc::Event event = event_now(ipc::EventKind::refused, request);
  event.source = request.target;
  event.key = request.key;
  event.fault = pending.fault;
  deliver(pending.rank, event);
}

void Scheduler::tell_answered(std::uint32_t rank, const ipc::Request& request, ipc::AccessFault fault) {
  ipc::Event event = event_now(ipc::EventKind::got, request);
  event.source = rank;
  event.fault = fault;
  deliver(rank, event);
}

ipc::Event Scheduler::event_now(ipc::EventKind kind, const ipc::Request& request) const {
  ipc::Event event;
  event.time_ps = simulation_.now().ps();
  event.message = request.message;
  event.kind = kind;
  event.bytes = request.bytes;
  event.immediate = request.immediate;
  event.rail = request.rail;
  event.interface = request.interface;
  return event;
}

void Scheduler::deliver(std::uint32_t rank, const ipc::Event& event, bool asks_nothing) {
  // Not the receiver, whose clock would pass the end, but whoever has posted so late.
  if (event.time_ps >= ipc::end_of_time_ps)
    throw EndOfTime(event.kind == ipc::EventKind::refused ? rank : event.source);
  Process& process = processes_[rank];
  if (process.wait == ipc::Wait::finished) {
    note_untaken(rank, event);
    if (event.mailbox_packets > 0) give_back(rank, event.time_ps, event.rail);
    return;
  }
  if (process.events == 0) process.first_event_ps = event.time_ps;
  if (exchange_.put(rank, event)) {
    ++process.events;
  } else {
    process.overflow.push_back(event);
  }
  ++activity_;
  if (process.wait != ipc::Wait::for_event || process.acts_on_ps != never_ps) return;
  if (asks_nothing && process.events < process.least_events) return;
  process.acts_on_ps = event.time_ps;
  horizon_ps_ = std::min(horizon_ps_, process.acts_ps() + lookahead_ps_);
}

// Notes a message of the program that reaches a process that has left, or has been left there.
void Scheduler::note_untaken(std::uint32_t rank, const ipc::Event& event) {
  const bool is_message =
      event.kind == ipc::EventKind::arrived && event.interface == ipc::Interface::libfabric;
  if (!started_ || !is_message || event.inline_length < sizeof(message::MessageHeader) ||
      event.inline_length > sizeof event.inline_data)
    return;
  message::MessageHeader header;
  std::memcpy(&header, event.inline_data, sizeof header);
  if (message::is_tagged(header.kind) && ipc::is_of_program(header.tag) && event.source < processes_.size())
    untaken_.add(rank, {.count = 1, .source = event.source, .tag = header.tag});
}

// A process that has left takes no more events. Free their mailbox places so that they do not block the
// network.
void Scheduler::give_back_untaken(std::uint32_t rank) {
  const Process& process = processes_[rank];
  const auto untaken = [&](const ipc::Event& event, std::uint32_t mailbox_packets, std::uint8_t rail) {
    note_untaken(rank, event);
    if (mailbox_packets > 0) give_back(rank, process.clock_ps, rail);
  };
  exchange_.for_untaken(rank, untaken);
  for (const ipc::Event& event : process.overflow) {
    note_untaken(rank, event);
    if (event.mailbox_packets > 0) give_back(rank, process.clock_ps, event.rail);
  }
  for (std::uint8_t rail = 0; rail < std::uint8_t{ipc::most_rails}; ++rail) {
    for (std::uint32_t left = process.kept[rail]; left > 0; --left) give_back(rank, process.clock_ps, rail);
  }
}

// A process that has left has nothing to release: give_back_untaken() has freed it.
void Scheduler::release(std::uint32_t rank, const ipc::Request& request) {
  Process& process = processes_[rank];
  if (process.wait == ipc::Wait::finished) return;
  std::uint32_t& kept = process.kept[request.rail];
  if (kept == 0) throw RankError(rank, "released a message of its mailbox that it has not taken");
  --kept;
  ++activity_;
  give_back(rank, request.time_ps + rail_costs_[request.rail].of(request.interface).after_receive_ps,
            request.rail);
}

// Frees an arrival's place in the card's mailbox.
void Scheduler::give_back(std::uint32_t rank, std::int64_t when_ps, std::uint8_t rail) {
  machine_.give_back(Time::from_ps(std::max(when_ps, simulation_.now().ps())), rank, rail);
}

// Moves overflow events into the ring while it has room.
void Scheduler::refill(std::uint32_t rank) {
  Process& process = processes_[rank];
  const auto first = process.overflow.begin();
  auto next = first;
  while (next != process.overflow.end() && exchange_.put(rank, *next)) ++next;
  process.overflow.erase(first, next);
  process.events = exchange_.events(rank);
  if (process.events > 0) process.first_event_ps = exchange_.first_event_ps(rank);
}

}  // namespace apenet
