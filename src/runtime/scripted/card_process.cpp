#include "runtime/scripted/card_process.hpp"

#include <algorithm>
#include <utility>

namespace apenet {

namespace {

const char* name_of(CompletionKind kind) {
  switch (kind) {
    case CompletionKind::sent:
      return "sent";
    case CompletionKind::arrived:
      return "arrived";
    case CompletionKind::remote_done:
      return "remote_done";
    case CompletionKind::got:
      return "got";
    case CompletionKind::served:
      return "served";
  }
  return "?";
}

}  // namespace

void CardProcess::Waker::handle_event(const Event& event) {
  std::coroutine_handle<>::from_address(
      reinterpret_cast<void*>(event.argument_a))  // NOLINT(performance-no-int-to-ptr)
      .resume();
}

bool CardProcess::CaughtUp::await_ready() const {
  return process_.clock() <= process_.shared_.simulation.now();
}

// A process has one such event at a time, so the counter that orders them can be zero.
void CardProcess::CaughtUp::await_suspend(std::coroutine_handle<> script) {
  EventSource source{EventKind::process, process_.id_, 0};
  process_.shared_.simulation.schedule(source, process_.clock(), process_.shared_.waker,
                                       reinterpret_cast<std::uintptr_t>(script.address()));
}

std::string CardProcess::WaitCondition::description() const {
  const bool is_any = source == any_source;
  if (message == any_message)
    return is_any ? "an arrival" : "an arrival from process " + std::to_string(source);
  if (is_any) return std::string("'") + name_of(kind) + "' of its message " + std::to_string(message);
  return "message " + std::to_string(message) + " of process " + std::to_string(source);
}

void CardProcess::copy(std::int64_t bytes) {
  cpu_.clock +=
      DataRate::bytes_per_second(shared_.machine.description().host.copy_bytes_per_second).duration(bytes);
}

void CardProcess::copy_gpu(std::int64_t bytes) {
  const HostDescription& host = shared_.machine.description().host;
  cpu_.clock +=
      host.gpu_copy_latency + DataRate::bytes_per_second(host.gpu_copy_bytes_per_second).duration(bytes);
}

void CardProcess::give_credit(ProcessId source, std::int64_t bytes, std::uint16_t channel) {
  cpu_.clock += shared_.software.after_receive;
  shared_.machine.post(
      cpu_.clock,
      {.verb = Verb::credit, .source = id_, .target = source, .channel = channel, .bytes = bytes});
}

std::uint64_t CardProcess::post(Descriptor descriptor) {
  const std::int64_t send_packet_bytes = shared_.card.send_packet_bytes;
  const bool is_cut = descriptor.verb == Verb::send && send_packet_bytes > 0;
  descriptor.source = id_;
  descriptor.from_cpu |= is_cut;
  descriptor.message = next_message_++;
  descriptor.packet_interval = shared_.software.send_packet;
  const bool by_card = !shared_.machine.goes_through_memory(id_, descriptor.target);
  cpu_.clock += shared_.software.send;
  if (by_card && !descriptor.from_cpu) cpu_.clock += shared_.software.doorbell;
  shared_.machine.post(cpu_.clock, descriptor);
  if (is_cut && by_card) {
    cpu_.clock += shared_.software.further_sends(library_packets(send_packet_bytes, descriptor.bytes));
  }
  return descriptor.message;
}

Time CardProcess::receive_time(const Completion& arrival) const {
  return shared_.software.receive + shared_.software.further_receives(arrival.mailbox_packets);
}

void CardProcess::charge(const Completion& completion) {
  const bool is_arrival = completion.kind == CompletionKind::arrived;
  cpu_.clock = std::max(cpu_.clock, completion.time) +
               (is_arrival ? receive_time(completion) : shared_.software.completion);
  if (is_arrival && !shared_.card.needs_credit) cpu_.deferred_cost += shared_.software.after_receive;
  taken_ = completion;
}

bool CardProcess::take(const WaitCondition& condition) {
  cpu_.charge_deferred();
  Completion found;
  const auto is_wanted = [&](const Completion& completion) { return condition.is_met_by(completion); };
  if (!shared_.inboxes.take_first(inbox_, is_wanted, found)) return false;
  charge(found);
  return true;
}

void CardProcess::suspend(const WaitCondition& condition, std::coroutine_handle<> script) {
  condition_ = condition;
  script_ = script;
}

void CardProcess::complete(const Completion& completion) {
  // A library takes messages out of its mailbox also while it waits for something else.
  if (completion.mailbox_packets > 0) {
    const Time taken = std::max(cpu_.clock, completion.time) + receive_time(completion);
    shared_.machine.give_back(taken + shared_.software.after_receive, id_);
  }
  if (!is_waiting_for(completion)) {
    shared_.inboxes.push(inbox_, completion);
    return;
  }
  charge(completion);
  std::exchange(script_, {}).resume();
}

std::string CardProcess::waits_for() const {
  return script_ ? condition_.description() : std::string();
}

}  // namespace apenet
