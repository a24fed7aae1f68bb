#include "runtime/scripted/message_passing.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernel/check.hpp"
#include "kernel/rate.hpp"
#include "machine/validate.hpp"
#include "runtime/observe/process_trace.hpp"

namespace apenet {

namespace {

// What the provider puts on the wire beside the payload (src/api/libfabric/wire.hpp).
constexpr std::int64_t header_bytes = 24;
constexpr std::int64_t ready_bytes = header_bytes + 16;  // and the length of what is announced
constexpr std::int64_t clear_bytes = header_bytes + 32;  // and one address
constexpr std::uint64_t number_mask = 0xffffffff;        // of a descriptor's number: that of its message
constexpr std::int64_t largest_eager_bytes = 64 * 1024;  // a slot of the shared mapping (ipc/protocol.hpp)

std::int64_t eager_limit(const MachineDescription& description, const NicCapabilities& card) {
  return std::max<std::int64_t>(0, std::min({description.mpi_software.eager_limit_bytes, largest_eager_bytes,
                                             card.max_send_bytes - header_bytes}));
}

}  // namespace

MessagePassing::MessagePassing(const MachineDescription& description, std::vector<NodeId> node_of_rank,
                               const std::vector<std::uint16_t>& cpus, RankProgram& program,
                               const ObservationOptions& observed)
    : simulation_(description.seed),
      machine_(simulation_, description, std::move(node_of_rank)),
      observation_(simulation_, machine_, observed),
      program_(program),
      software_(description.mpi_software),
      copy_rate_(DataRate::bytes_per_second(description.host.copy_bytes_per_second)),
      card_(machine_.capabilities()),
      eager_limit_bytes_(eager_limit(description, card_)),
      ranks_(machine_.process_count()),
      matching_(machine_.process_count()) {
  require_sends_of(clear_bytes, card_);
  if (!card_.put) {
    throw std::invalid_argument(
        "card = without put: expected one that can write remote memory, for rendezvous");
  }
  APENET_CHECK(cpus.size() == ranks_.size(), "CPUs of %zu ranks for %zu", cpus.size(), ranks_.size());
  first_cpu_.push_back(0);
  for (ProcessId rank = 0; rank < ranks_.size(); ++rank) {
    first_cpu_.push_back(first_cpu_.back() + cpus[rank]);
    sources_.push_back({EventKind::process, rank, 0});
  }
  cpus_.resize(first_cpu_.back());
  machine_.set_sink(*this);
  machine_.fill_receive_rings();
}

void MessagePassing::run() {
  simulation_.trace(process_record(ProcessTrace::began, Time::zero()));
  machine_.begin(Time::zero());
  for (ProcessId rank = 0; rank < ranks_.size(); ++rank) program_.proceed(rank);
  machine_.run_to_end();
}

MessagePassing::Cpu& MessagePassing::begin(ProcessId rank, std::uint16_t cpu, Time earliest) {
  Cpu& chosen = cpus_[first_cpu_[rank] + cpu];
  chosen.clock = std::max(chosen.clock, earliest);
  return chosen;
}

MessagePassing::Cpu& MessagePassing::cpu_at(ProcessId rank, std::uint16_t cpu, Time time) {
  Cpu& chosen = cpus_[first_cpu_[rank] + cpu];
  chosen.clock += std::exchange(chosen.debt, Time::zero());
  if (time > chosen.clock) {
    if (cpu == 0) {
      ranks_[rank].waited += time - chosen.clock;
      simulation_.trace(process_record(ProcessTrace::waited, chosen.clock, time, rank));
    }
    chosen.clock = time;
  }
  return chosen;
}

Time MessagePassing::compute(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             Time span) {
  Cpu& chosen = begin(rank, cpu, earliest);
  const Time began = chosen.clock;
  if (span > end_of_time - began) {
    throw std::invalid_argument("calc = " + std::to_string(span.ps() / 1000) + ": expected rank " +
                                std::to_string(rank) + " to end within 104 days of virtual time");
  }
  chosen.clock += span;
  if (cpu == 0) ranks_[rank].computed += span;
  program_.ended(rank, operation, chosen.clock, {});
  return began;
}

Time MessagePassing::send(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                          const Envelope& envelope, ProcessId target) {
  Cpu& chosen = begin(rank, cpu, earliest);
  const Time began = chosen.clock;
  Message message;
  message.source = rank;
  message.target = target;
  message.bytes = envelope.bytes;
  message.tag = envelope.tag;
  message.send_operation = operation;
  message.send_cpu = cpu;
  RankActivity& activity = ranks_[rank];
  ++activity.sends;
  activity.sent_bytes += static_cast<std::uint64_t>(envelope.bytes);
  const bool is_eager = envelope.bytes <= eager_limit_bytes_;
  message.phase = is_eager ? Phase::eager : Phase::ready;
  if (!is_eager) {
    chosen.clock += software_.rendezvous;
    post_control(chosen, rank, add(message), ready_bytes);
    return began;
  }
  const std::uint32_t number = add(message);
  chosen.clock += software_.send;
  // What the CPU writes to the card itself needs no other copy.
  if (header_bytes + envelope.bytes > card_.max_pio_bytes) charge_copy(chosen, envelope.bytes);
  post_send(chosen, rank, number, header_bytes + envelope.bytes);
  program_.ended(rank, operation, chosen.clock, {rank, envelope.tag, envelope.bytes});
  return began;
}

Time MessagePassing::receive(ProcessId rank, std::uint16_t cpu, Time earliest, std::uint32_t operation,
                             ProcessId source, std::uint32_t tag) {
  const Time began = begin(rank, cpu, earliest).clock;
  ++ranks_[rank].receives;
  const PostedReceive receive{rank, source, tag, operation, cpu};
  const std::uint32_t kept = matching_.find(rank, source, tag);
  if (kept == MessageMatching::none) {
    matching_.post(receive);
  } else {
    consume(kept, receive);
  }
  return began;
}

void MessagePassing::complete(const Completion& completion) {
  hash_.record({.time = completion.time,
                .kind = EventKind::process,
                .what = static_cast<std::uint16_t>(completion.kind),
                .place = completion.process,
                .a = completion.source,
                .b = completion.message});
  handle(completion);
  if (completion.mailbox_packets > 0) {
    machine_.give_back(std::max(clock(completion.process), completion.time) + software_.after_receive,
                       completion.process);
  }
  program_.proceed(completion.process);
}

void MessagePassing::handle(const Completion& completion) {
  const auto number = static_cast<std::uint32_t>(completion.message & number_mask);
  Message& message = messages_[number];
  if (message.phase != Phase::put) {
    message.mailbox_packets = completion.mailbox_packets;
    const ProcessId from = message.phase == Phase::clear ? message.target : message.source;
    const std::int64_t bytes = wire_bytes(message);
    take_in_turn(completion.process, number, completion.time);
    give_credit(completion.process, 0, from, bytes);  // the place in the ring is free again
    return;
  }
  const bool is_sender = completion.kind == Completion::Kind::sent;
  Cpu& cpu = cpu_at(completion.process, is_sender ? message.send_cpu : message.receive_cpu, completion.time);
  cpu.clock += software_.completion;
  put_reported(number, completion.kind);
}

std::int64_t MessagePassing::wire_bytes(const Message& message) {
  if (message.phase == Phase::eager) return header_bytes + message.bytes;
  return message.phase == Phase::ready ? ready_bytes : clear_bytes;
}

void MessagePassing::take_in_turn(ProcessId rank, std::uint32_t number, Time time) {
  const Message& message = messages_[number];
  const ProcessId from = message.phase == Phase::clear ? message.target : message.source;
  Pair& conversation = pair(from, rank);
  if (message.sequence != conversation.next_in) {
    conversation.held.push_back(number);
    return;
  }
  ++conversation.next_in;
  deliver(rank, number, time);
  for (std::size_t i = 0; i < conversation.held.size();) {
    const std::uint32_t held = conversation.held[i];
    if (messages_[held].sequence != conversation.next_in) {
      ++i;
      continue;
    }
    ++conversation.next_in;
    conversation.held.erase(conversation.held.begin() + static_cast<std::ptrdiff_t>(i));
    deliver(rank, held, time);
    i = 0;
  }
}

void MessagePassing::deliver(ProcessId rank, std::uint32_t number, Time time) {
  const Message& message = messages_[number];
  if (message.phase == Phase::clear) {
    cpu_at(rank, message.send_cpu, time);
    cleared(number);
    return;
  }
  PostedReceive receive;
  const bool is_wanted = matching_.match(rank, message.source, message.tag, receive);
  cpu_at(rank, is_wanted ? receive.cpu : std::uint16_t{0}, time);
  if (is_wanted) {
    consume(number, receive);
  } else {
    matching_.keep(rank, message.source, message.tag, number);
  }
}

void MessagePassing::consume(std::uint32_t number, const PostedReceive& receive) {
  Message& message = messages_[number];
  Cpu& cpu = cpus_[first_cpu_[receive.rank] + receive.cpu];
  charge_receive(cpu, message);
  message.receive_operation = receive.operation;
  message.receive_cpu = receive.cpu;
  if (message.phase == Phase::ready) {
    cpu.clock += software_.rendezvous + software_.publish + software_.rendezvous;
    message.phase = Phase::clear;
    post_control(cpu, receive.rank, number, clear_bytes);
    if (card_.needs_credit) {
      for (std::int64_t left = message.bytes; left > 0; left -= card_.max_message_bytes) {
        cpu.clock += software_.after_receive;
        give_credit(receive.rank, receive.cpu, message.source, std::min(left, card_.max_message_bytes));
      }
    }
    return;
  }
  charge_copy(cpu, message.bytes);
  const Envelope envelope{message.source, message.tag, message.bytes};
  free_messages_.push_back(number);
  program_.ended(receive.rank, receive.operation, cpu.clock, envelope);
}

// The sender puts the payload, as many descriptors as it takes.
void MessagePassing::cleared(std::uint32_t number) {
  Message& message = messages_[number];
  Cpu& cpu = cpus_[first_cpu_[message.source] + message.send_cpu];
  charge_receive(cpu, message);
  cpu.clock += software_.rendezvous;
  message.phase = Phase::put;
  const auto parts =
      static_cast<std::uint32_t>((message.bytes + card_.max_message_bytes - 1) / card_.max_message_bytes);
  message.parts_unsent = message.parts_unarrived = parts;
  const ProcessId source = message.source;
  std::int64_t left = message.bytes;
  for (std::uint32_t part = 0; part < parts; ++part) {
    const std::int64_t bytes = std::min(left, card_.max_message_bytes);
    cpu.clock += software_.send;
    post(cpu, source, number, Verb::put, bytes);
    left -= bytes;
  }
}

void MessagePassing::put_reported(std::uint32_t number, Completion::Kind kind) {
  Message& message = messages_[number];
  const bool is_sender = kind == Completion::Kind::sent;
  if (--(is_sender ? message.parts_unsent : message.parts_unarrived) > 0) return;
  const Envelope envelope{message.source, message.tag, message.bytes};
  const ProcessId rank = is_sender ? message.source : message.target;
  const std::uint32_t operation = is_sender ? message.send_operation : message.receive_operation;
  const Cpu& cpu = cpus_[first_cpu_[rank] + (is_sender ? message.send_cpu : message.receive_cpu)];
  if (message.parts_unsent == 0 && message.parts_unarrived == 0) free_messages_.push_back(number);
  program_.ended(rank, operation, cpu.clock, envelope);
}

void MessagePassing::post_control(Cpu& cpu, ProcessId from, std::uint32_t number, std::int64_t bytes) {
  cpu.clock += software_.send;
  post_send(cpu, from, number, bytes);
}

// What the CPU writes of a message beyond its first packet, it writes after the post.
void MessagePassing::post_send(Cpu& cpu, ProcessId from, std::uint32_t number, std::int64_t bytes) {
  const Message& message = messages_[number];
  post(cpu, from, number, Verb::send, bytes);
  if (machine_.node_of(message.source) == machine_.node_of(message.target)) return;
  cpu.clock += software_.further_sends(library_packets(card_.send_packet_bytes, bytes));
}

void MessagePassing::charge_receive(Cpu& cpu, const Message& message) const {
  cpu.clock += software_.receive + software_.further_receives(message.mailbox_packets);
  cpu.debt += software_.after_receive;
}

void MessagePassing::post(Cpu& cpu, ProcessId from, std::uint32_t number, Verb verb, std::int64_t bytes) {
  const Message& message = messages_[number];
  Descriptor descriptor;
  descriptor.verb = verb;
  descriptor.source = from;
  descriptor.target = message.phase == Phase::clear ? message.source : message.target;
  descriptor.from_cpu = verb == Verb::send && bytes <= card_.max_pio_bytes;
  descriptor.want_local = verb == Verb::put;
  descriptor.bytes = bytes;
  descriptor.message = descriptors_++ << 32 | number;
  descriptor.packet_interval = software_.send_packet;
  hand_over_at(descriptor, cpu.clock);
}

// The processor's time for it is after_receive, charged elsewhere.
void MessagePassing::give_credit(ProcessId receiver, std::uint16_t cpu, ProcessId sender,
                                 std::int64_t bytes) {
  if (!card_.needs_credit) return;
  const Time when = std::max(cpus_[first_cpu_[receiver] + cpu].clock, simulation_.now());
  hand_over_at({.verb = Verb::credit, .source = receiver, .target = sender, .bytes = bytes}, when);
}

void MessagePassing::hand_over_at(const Descriptor& descriptor, Time when) {
  if (cpu_count(descriptor.source) == 1) {
    hand_over(descriptor, when);
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
  simulation_.schedule(sources_[descriptor.source], std::max(when, simulation_.now()), *this, index);
}

void MessagePassing::handle_event(const Event& event) {
  const auto index = static_cast<std::uint32_t>(event.argument_a);
  const Descriptor descriptor = delayed_[index];
  free_delayed_.push_back(index);
  hand_over(descriptor, simulation_.now());
}

void MessagePassing::hand_over(const Descriptor& descriptor, Time when) {
  if (descriptor.verb == Verb::send) {
    Message& message = messages_[descriptor.message & number_mask];
    message.sequence = pair(descriptor.source, descriptor.target).next_out++;
  }
  machine_.post(when, descriptor);
}

void MessagePassing::charge_copy(Cpu& cpu, std::int64_t bytes) const {
  cpu.clock += copy_rate_.duration(bytes);
}

std::uint32_t MessagePassing::add(const Message& message) {
  if (free_messages_.empty()) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t number = free_messages_.back();
  free_messages_.pop_back();
  messages_[number] = message;
  return number;
}

RanksReport MessagePassing::report() {
  RanksReport report;
  report.ranks = ranks_;
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

bool MessagePassing::unreceived(ProcessId rank, Envelope& envelope) const {
  const std::uint32_t number = matching_.oldest_kept(rank);
  if (number == MessageMatching::none) return false;
  const Message& message = messages_[number];
  envelope = {message.source, message.tag, message.bytes};
  return true;
}

}  // namespace apenet
