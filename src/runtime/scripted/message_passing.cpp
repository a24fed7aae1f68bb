#include "runtime/scripted/message_passing.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "machine/message_costs.hpp"
#include "machine/validate.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {

namespace {

constexpr std::uint64_t index_mask = 0xffffffff;              // of a descriptor's number: that of its flight
constexpr std::uint64_t any_length = std::uint64_t{1} << 62;  // of a receive's buffer: takes what comes

std::uint64_t pair_of(ProcessId source, ProcessId target) {
  return std::uint64_t{source} << 32 | target;
}

message::EventKind event_kind(Completion::Kind kind, message::RequestVerb verb) {
  switch (kind) {
    case Completion::Kind::sent:
      return message::EventKind::sent;
    case Completion::Kind::arrived:
      return verb == message::RequestVerb::put ? message::EventKind::put_arrived
                                               : message::EventKind::arrived;
    case Completion::Kind::remote_done:
      return message::EventKind::remote_done;
    case Completion::Kind::got:
      break;
  }
  return message::EventKind::got;
}

message::Owner owner_of(std::uint32_t operation, std::uint16_t cpu) {
  message::Owner owner;
  owner.number = operation;
  owner.cpu = cpu;
  return owner;
}

}  // namespace

MessagePassing::MessagePassing(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                               const std::vector<std::uint16_t>& cpus, RankProgram& program,
                               const ObservationOptions& observed)
    : simulation_(description.seed),
      machine_(simulation_, description, std::move(node_of_rank)),
      observation_(simulation_, machine_, observed),
      program_(program),
      costs_(message_costs(description)),
      card_(message_limits(machine_.capabilities())),
      packet_interval_(description.mpi_software.send_packet) {
  require_sends_of(message::control_bytes, machine_.capabilities());
  if (!machine_.capabilities().put) {
    throw std::invalid_argument(
        "card = without put: expected one that can write remote memory, for rendezvous");
  }
  APENET_CHECK(cpus.size() == rank_count(), "CPUs of %zu ranks for %u", cpus.size(), rank_count());
  for (ProcessId rank = 0; rank < rank_count(); ++rank) {
    ranks_.emplace_back(*this, stores_, rank, cpus[rank]);
    sources_.push_back({EventKind::process, rank, 0});
  }
  machine_.set_sink(*this);
  machine_.fill_receive_rings();
}

void MessagePassing::run() {
  simulation_.trace(process_record(ProcessTrace::began, Time::zero()));
  machine_.begin(Time::zero());
  for (ProcessId rank = 0; rank < ranks_.size(); ++rank) program_.proceed(rank);
  machine_.run_to_end();
}

Time MessagePassing::compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             Time span) {
  RankPort& port = ranks_[rank].port;
  port.advance(cpu, earliest);
  const Time began = port.clock(cpu);
  if (span > end_of_time - began) {
    throw std::invalid_argument("calc = " + std::to_string(span.ps() / 1000) + ": expected rank " +
                                std::to_string(rank) + " to end within 104 days of virtual time");
  }
  port.advance(cpu, began + span);
  if (cpu == 0) ranks_[rank].activity.computed += span;
  program_.ended(rank, operation, began + span, {});
  return began;
}

Time MessagePassing::send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                          const Envelope& envelope, ProcessId target, std::uint64_t address) {
  Rank& sender = ranks_[rank];
  sender.port.advance(cpu, earliest);
  const Time began = sender.port.clock(cpu);
  ++sender.activity.sends;
  sender.activity.sent_bytes += static_cast<std::uint64_t>(envelope.bytes);
  message::SendCall call;
  call.buffer = message::one_piece(address, static_cast<std::uint64_t>(envelope.bytes));
  call.target = target;
  call.tagged = true;
  call.tag = envelope.tag;
  call.owner = owner_of(operation, cpu);
  if (sender.engine.send(sender.inbox, call)) ended(rank, operation, {rank, envelope.tag, envelope.bytes});
  return began;
}

Time MessagePassing::receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             ProcessId source, std::uint32_t tag, std::uint64_t address) {
  Rank& receiver = ranks_[rank];
  receiver.port.advance(cpu, earliest);
  const Time began = receiver.port.clock(cpu);
  ++receiver.activity.receives;
  message::ReceiveCall call;
  call.buffer = message::one_piece(address, any_length);
  call.wanted.source = source;
  call.wanted.tag = tag;
  call.wanted.ignore = tag == any_tag ? ~std::uint64_t{0} : 0;
  call.tagged = true;
  call.owner = owner_of(operation, cpu);
  receiver.engine.receive(receiver.inbox, call);
  return began;
}

void MessagePassing::note_wait(ProcessId rank, Time from, Time until) {
  ranks_[rank].activity.waited += until - from;
  simulation_.trace(process_record(ProcessTrace::waited, from, until, rank));
}

void MessagePassing::ended(ProcessId rank, std::uint32_t operation, const Envelope& message) {
  const RankPort& port = ranks_[rank].port;
  program_.ended(rank, operation, port.clock(port.cpu()), message);
}

void MessagePassing::complete(const Completion& completion) {
  Rank& rank = ranks_[completion.process];
  const message::Event event = event_of(completion);
  rank.port.begin_event(completion.time);
  rank.engine.take(event);
  rank.port.end_event();
  if (completion.mailbox_packets > 0) {
    // Another CPU than the first may have taken it; the times of one process may not go back.
    const Time taken = std::max(rank.port.clock(0), completion.time);
    machine_.give_back(taken + Time::from_ps(costs_.after_receive_ps), completion.process);
  }
  program_.proceed(completion.process);
  rank.port.look();
}

// The trace hash is that of a run of processes (Scheduler::trace).
message::Event MessagePassing::event_of(const Completion& completion) {
  const auto index = static_cast<std::uint32_t>(completion.message & index_mask);
  Flight& flight = flights_[index];
  hash_.record({.time = completion.time,
                .kind = EventKind::process,
                .what = static_cast<std::uint16_t>(completion.kind),
                .place = completion.process,
                .a = pair_of(flight.source, flight.target),
                .b = static_cast<std::uint64_t>(flight.bytes)});
  message::Event event;
  event.time_ps = completion.time.ps();
  event.message = completion.message;
  event.source = flight.source;
  event.kind = event_kind(completion.kind, flight.verb);
  event.bytes = flight.bytes;
  event.immediate = flight.immediate;
  event.mailbox_packets = completion.mailbox_packets;
  event.inline_length = flight.inline_length;
  std::memcpy(event.inline_data, flight.inline_data, flight.inline_length);
  if (--flight.completions_due == 0) free_flights_.push_back(index);
  return event;
}

std::uint32_t MessagePassing::add_flight(ProcessId rank, const message::Request& request) {
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<std::uint32_t>(flights_.size()));
    flights_.emplace_back();
  }
  const std::uint32_t index = free_flights_.back();
  free_flights_.pop_back();
  Flight& flight = flights_[index];
  flight.source = rank;
  flight.target = request.target;
  flight.bytes = request.bytes;
  flight.immediate = request.immediate;
  flight.verb = request.verb;
  const bool is_put = request.verb == message::RequestVerb::put;
  flight.completions_due = is_put ? 2 : 1;  // sent, and arrived
  flight.inline_length = request.inline_length;
  std::memcpy(flight.inline_data, request.inline_data, request.inline_length);
  return index;
}

std::uint64_t MessagePassing::post(ProcessId rank, const message::Request& request, Time when) {
  Descriptor descriptor;
  descriptor.verb = static_cast<Verb>(request.verb);
  descriptor.source = rank;
  descriptor.target = request.target;
  descriptor.from_cpu = (request.flags & message::from_cpu) != 0;
  descriptor.want_local = (request.flags & message::want_local) != 0;
  descriptor.bytes = request.bytes;
  descriptor.local_address = request.local_address;
  descriptor.remote_address = request.remote_address;
  descriptor.packet_interval = packet_interval_;
  descriptor.message = descriptors_++ << 32;
  if (descriptor.verb != Verb::credit) descriptor.message |= add_flight(rank, request);
  post_in_turn(descriptor, std::max(when, simulation_.now()));
  return descriptor.message;
}

void MessagePassing::post_in_turn(const Descriptor& descriptor, Time when) {
  if (ranks_[descriptor.source].port.cpu_count() == 1) {
    machine_.post(when, descriptor);
    return;
  }
  std::uint32_t index = static_cast<std::uint32_t>(delayed_.size());
  if (free_delayed_.empty()) {
    delayed_.push_back(descriptor);
  } else {
    index = free_delayed_.back();
    free_delayed_.pop_back();
    delayed_[index] = descriptor;
  }
  simulation_.schedule(sources_[descriptor.source], when, *this, index);
}

void MessagePassing::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  const Descriptor descriptor = delayed_[index];
  free_delayed_.push_back(index);
  if (descriptor.verb == Verb::send) number_in_turn(descriptor);
  machine_.post(simulation_.now(), descriptor);
}

void MessagePassing::number_in_turn(const Descriptor& descriptor) {
  std::byte* bytes = flights_[descriptor.message & index_mask].inline_data;
  message::MessageHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  header.sequence = next_sequence_[pair_of(descriptor.source, descriptor.target)]++;
  std::memcpy(bytes, &header, sizeof(header));
}

RanksReport MessagePassing::report() {
  RanksReport report;
  for (const Rank& rank : ranks_) report.ranks.push_back(rank.activity);
  for (const Counter& counter : machine_.counters()) {
    if (counter.name == "messages") report.messages = counter.value;
    if (counter.name == "payload_bytes") report.bytes = counter.value;
  }
  report.trace_hash = hash_.value();
  report.links = machine_.link_use();
  report.faults = machine_.fault_use();
  report.network = observation_.network_history();
  report.warnings = machine_.warnings();
  for (std::string& warning : observation_.finish()) report.warnings.push_back(std::move(warning));
  return report;
}

bool MessagePassing::unreceived(ProcessId rank, Envelope& envelope) {
  const message::KeptMessage* kept = ranks_[rank].inbox.matcher(true).oldest();
  if (kept == nullptr) return false;
  const message::Message& message = kept->message;
  envelope = {message.source, static_cast<std::uint32_t>(message.header.tag),
              static_cast<std::int64_t>(message.length())};
  return true;
}

}  // namespace apenet
