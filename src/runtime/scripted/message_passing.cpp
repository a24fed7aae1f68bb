#include "runtime/scripted/message_passing.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "machine/message_costs.hpp"
#include "machine/message_requests.hpp"
#include "machine/validate.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {

namespace {

constexpr std::uint64_t index_mask =
    0xffffffff;  // the part of a descriptor's number that is its index in pending_
constexpr std::uint64_t any_length = std::uint64_t{1}
                                     << 62;  // length of a receive's buffer: accepts any message

std::uint64_t pair_of(ProcessId source, ProcessId target) {
  return std::uint64_t{source} << 32 | target;
}

}  // namespace

MessagePassing::MessagePassing(Simulation& simulation, Machine& machine, ProcessId first,
                               const std::vector<std::uint16_t>& cpus, RankProgram& program)
    : simulation_(simulation),
      machine_(machine),
      first_(first),
      program_(program),
      costs_(message_costs(machine.description())),
      card_(message_limits(machine)),
      packet_interval_(machine.description().mpi_software.send_packet) {
  require_sends_of(message::control_bytes, machine_.capabilities());
  if (!machine_.capabilities().put) {
    throw std::invalid_argument(
        "card = without put: expected one that can write remote memory, for rendezvous");
  }
  APENET_CHECK(first + cpus.size() <= machine_.process_count(), "CPUs of %zu ranks from process %u of %u",
               cpus.size(), first, machine_.process_count());
  for (ProcessId rank = 0; rank < cpus.size(); ++rank) {
    ranks_.emplace_back(*this, stores_, rank, cpus[rank]);
    sources_.push_back({EventKind::process, first_ + rank, 0});
  }
}

void MessagePassing::begin(Time now) {
  epoch_ = now;
  for (Rank& rank : ranks_) rank.transport.begin(now);
  for (ProcessId rank = 0; rank < ranks_.size(); ++rank) program_.proceed(rank);
}

Time MessagePassing::compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             Time span) {
  RankTransport& transport = ranks_[rank].transport;
  transport.advance(cpu, earliest);
  const Time began = transport.clock(cpu);
  if (span > end_of_time - began) {
    throw std::invalid_argument("calc = " + std::to_string(span.ps() / 1000) + ": expected rank " +
                                std::to_string(rank) + " to end within 104 days of virtual time");
  }
  transport.advance(cpu, began + span);
  if (cpu == 0) ranks_[rank].activity.computed += span;
  program_.ended(rank, operation, began + span, {});
  return began;
}

Time MessagePassing::send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                          const Envelope& envelope, ProcessId target, std::uint64_t address, Memory memory) {
  Rank& sender = ranks_[rank];
  sender.transport.advance(cpu, earliest);
  const Time began = sender.transport.clock(cpu);
  ++sender.activity.sends;
  sender.activity.sent_bytes += static_cast<std::uint64_t>(envelope.bytes);
  message::SendCall call;
  call.buffer = message::one_piece(address, static_cast<std::uint64_t>(envelope.bytes));
  call.buffer.gpu_pieces = memory == Memory::gpu ? 1 : 0;
  call.target = target;
  call.tagged = true;
  call.tag = envelope.tag;
  call.owner = {.number = operation, .cpu = cpu};
  if (sender.engine.send(sender.inbox, call)) ended(rank, operation, {rank, envelope.tag, envelope.bytes});
  return began;
}

Time MessagePassing::receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             ProcessId source, std::uint32_t tag, std::uint64_t address, Memory memory) {
  Rank& receiver = ranks_[rank];
  receiver.transport.advance(cpu, earliest);
  const Time began = receiver.transport.clock(cpu);
  message::ReceiveCall call;
  call.buffer = message::one_piece(address, any_length);
  call.buffer.gpu_pieces = memory == Memory::gpu ? 1 : 0;
  call.wanted = {.source = source, .tag = tag, .ignore = tag == any_tag ? ~std::uint64_t{0} : 0};
  call.tagged = true;
  call.owner = {.number = operation, .cpu = cpu};
  receiver.engine.receive(receiver.inbox, call);
  return began;
}

void MessagePassing::note_wait(ProcessId rank, Time from, Time until) {
  ranks_[rank].activity.waited += until - from;
  simulation_.trace(process_record(ProcessTrace::waited, from, until, first_ + rank));
  if (log_ == nullptr) return;
  cause_.from = from;
  cause_.until = until;
  log_stages();
  log_->waits.push_back(cause_);
}

void MessagePassing::log_waits(ReplayLog& log, Observation& observation) {
  APENET_CHECK(rank_count() == machine_.process_count(), "a log of %u of %u processes", rank_count(),
               machine_.process_count());
  log_ = &log;
  observation.add(stages_);
}

// Sums the stages between post and completion.
void MessagePassing::log_stages() {
  struct Share {
    Time whole;
    Time awaited;
  };
  std::array<Share, stage_names.size()> shares{};
  for (std::size_t i = 0; i < cause_marks_.size(); ++i) {
    const Time from = cause_marks_[i].from;
    const Time to =
        i + 1 < cause_marks_.size() ? std::min(cause_marks_[i + 1].from, cause_.until) : cause_.until;
    Share& share = shares[static_cast<std::size_t>(cause_marks_[i].stage)];
    if (to > from) share.whole += to - from;
    if (to > std::max(from, cause_.from)) share.awaited += to - std::max(from, cause_.from);
  }
  for (std::size_t stage = 0; stage < shares.size(); ++stage) {
    if (shares[stage].whole == Time::zero()) continue;
    log_->stages.wait.push_back(static_cast<std::uint32_t>(log_->waits.size()));
    log_->stages.stage.push_back(static_cast<Stage>(stage));
    log_->stages.whole_ps.push_back(shares[stage].whole.ps());
    log_->stages.awaited_ps.push_back(shares[stage].awaited.ps());
  }
}

void MessagePassing::log_cause(const Completion& completion, const Pending& pending) {
  cause_ = {.rank = completion.process,
            .source = pending.source,
            .operation = pending.operation,
            .posted = pending.posted,
            .bytes = pending.bytes,
            .is_arrival = completion.kind == CompletionKind::arrived};
  cause_marks_ =
      stages_.marks(static_cast<std::uint32_t>(completion.message & index_mask), completion.process);
  if (pending.verb == message::RequestVerb::put) {
    cause_.role = MessageRole::payload;
    return;
  }
  if (pending.verb != message::RequestVerb::send) return;
  const message::MessageKind kind = message::decode_header({pending.inline_data, pending.inline_length}).kind;
  if (message::is_eager(kind) || kind == message::MessageKind::piece) cause_.role = MessageRole::eager;
  if (message::is_ready(kind)) cause_.role = MessageRole::ready;
  if (kind == message::MessageKind::clear) cause_.role = MessageRole::clear;
}

void MessagePassing::ended(ProcessId rank, std::uint32_t operation, const Envelope& message) {
  const RankTransport& transport = ranks_[rank].transport;
  program_.ended(rank, operation, transport.clock(transport.cpu()), message);
}

void MessagePassing::complete(const Completion& completion) {
  const ProcessId id = completion.process - first_;
  Rank& rank = ranks_[id];
  const message::Event event = event_of(completion);
  rank.transport.begin_event(completion.time);
  rank.engine.take(event);
  rank.transport.end_event();
  if (completion.mailbox_packets > 0) {
    // A CPU other than the first may have taken it, but the times of one process must not decrease.
    const Time taken = std::max(rank.transport.clock(0), completion.time);
    machine_.give_back(taken + costs_.after_receive, completion.process);
  }
  if (program_.proceed(id)) rank.transport.poll();
}

message::Event MessagePassing::event_of(const Completion& completion) {
  const auto index = static_cast<std::uint32_t>(completion.message & index_mask);
  Pending& pending = pending_[index];
  TraceRecord record = completion_record(completion, epoch_, pending.source, pending.target, pending.bytes);
  record.place -= first_;  // a rank's number, whatever other processes the machine has
  hash_.record(record);
  if (log_ != nullptr) log_cause(completion, pending);
  message::Event event;
  event.time_ps = completion.time.ps();
  event.message = completion.message;
  event.source = pending.source;
  event.kind = event_kind(completion.kind, pending.verb);
  event.bytes = pending.bytes;
  event.immediate = pending.immediate;
  event.mailbox_packets = completion.mailbox_packets;
  event.inline_length = pending.inline_length;
  std::memcpy(event.inline_data, pending.inline_data, pending.inline_length);
  if (--pending.completions_due == 0) free_pending_.push_back(index);
  return event;
}

std::uint32_t MessagePassing::add_pending(ProcessId rank, const message::Request& request) {
  if (free_pending_.empty()) {
    free_pending_.push_back(static_cast<std::uint32_t>(pending_.size()));
    pending_.emplace_back();
  }
  const std::uint32_t index = free_pending_.back();
  free_pending_.pop_back();
  Pending& pending = pending_[index];
  pending.source = rank;
  pending.target = request.target;
  pending.bytes = request.bytes;
  pending.immediate = request.immediate;
  pending.verb = request.verb;
  pending.operation = ranks_[rank].transport.operation();
  const bool is_put = request.verb == message::RequestVerb::put;
  pending.completions_due = is_put ? 2 : 1;  // sent, and arrived
  pending.inline_length = request.inline_length;
  std::memcpy(pending.inline_data, request.inline_data, request.inline_length);
  return index;
}

std::uint64_t MessagePassing::post(ProcessId rank, const message::Request& request, Time when) {
  Descriptor descriptor =
      descriptor_of(request, first_ + rank, first_ + request.target, machine_, packet_interval_);
  descriptor.message = descriptors_++ << 32;
  const Time posted = std::max(when, simulation_.now());
  if (descriptor.verb != Verb::credit) {
    const std::uint32_t index = add_pending(rank, request);
    ++posted_messages_;
    posted_bytes_ += static_cast<std::uint64_t>(request.bytes);
    pending_[index].posted = posted;
    if (log_ != nullptr) stages_.posted(index, posted);
    descriptor.message |= index;
  }
  post_in_turn(descriptor, posted);
  return descriptor.message;
}

void MessagePassing::post_in_turn(const Descriptor& descriptor, Time when) {
  if (ranks_[descriptor.source - first_].transport.cpu_count() == 1) {
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
  simulation_.schedule(sources_[descriptor.source - first_], when, *this, index);
}

void MessagePassing::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  const Descriptor descriptor = delayed_[index];
  free_delayed_.push_back(index);
  if (descriptor.verb == Verb::send) number_in_turn(descriptor);
  machine_.post(simulation_.now(), descriptor);
}

void MessagePassing::number_in_turn(const Descriptor& descriptor) {
  std::byte* bytes = pending_[descriptor.message & index_mask].inline_data;
  message::MessageHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  header.sequence = next_sequence_[pair_of(descriptor.source, descriptor.target)]++;
  std::memcpy(bytes, &header, sizeof(header));
}

RankTotals MessagePassing::totals() const {
  RankTotals totals;
  for (const Rank& rank : ranks_) totals.ranks.push_back(rank.activity);
  totals.messages = posted_messages_;
  totals.bytes = posted_bytes_;
  totals.trace_hash = hash_.value();
  return totals;
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
