#include "nic/messages.hpp"

#include "kernel/check.hpp"

namespace apenet {

void MessageTable::note_begin(MessageId id) {
  if (state_.began.size() <= id) state_.began.resize(state_.reports_due.size());
  state_.began[id] = simulation_.now();
}

void MessageTable::note(MessageId id, CardTrace what, Time when, std::uint64_t detail) const {
  const Descriptor& descriptor = state_.messages[id];
  simulation_.trace({.time = when,
                     .until = when,
                     .kind = EventKind::nic,
                     .what = static_cast<std::uint16_t>(what),
                     .place = descriptor.target,
                     .other = descriptor.source,
                     .a = descriptor.message,
                     .b = detail});
}

void MessageTable::trace(CardTrace what, ProcessId place, MessageId id) const {
  if (!simulation_.is_traced()) return;
  const Descriptor& descriptor = state_.messages[id];
  simulation_.trace(
      {.time = what == CardTrace::landed ? state_.began[id] : simulation_.now(),
       .until = simulation_.now(),
       .kind = EventKind::nic,
       .what = static_cast<std::uint16_t>(what),
       .place = place,
       .other = what == CardTrace::landed ? descriptor.target : descriptor.source,
       .a = descriptor.message,
       .b = static_cast<std::uint64_t>(descriptor.bytes) << 2 | static_cast<std::uint64_t>(descriptor.verb)});
}

void MessageTable::report(MessageId id, CompletionKind kind, ProcessId process,
                          std::uint32_t mailbox_packets) {
  const Descriptor& descriptor = state_.messages[id];
  static_assert(static_cast<int>(CardTrace::served) == static_cast<int>(CompletionKind::served));
  trace(static_cast<CardTrace>(kind), process, id);
  state_.reported = id;
  sink_->complete({kind, process, descriptor.source, descriptor.message, simulation_.now(), mailbox_packets});
  state_.reported = none;
}

void MessageTable::notify(MessageId id, CompletionKind kind, ProcessId process,
                          std::uint32_t mailbox_packets) {
  if (!interrupts_.empty()) {
    const Descriptor& descriptor = state_.messages[id];
    Interrupts* interrupts = descriptor.rail < interrupts_.size() ? interrupts_[descriptor.rail] : nullptr;
    if (interrupts != nullptr && interrupts->defers(id, descriptor, kind, process, mailbox_packets)) {
      if (simulation_.is_traced()) note(id, CardTrace::deferred, simulation_.now(), process);
      return;
    }
  }
  report(id, kind, process, mailbox_packets);
  settle(id);
}

void MessageTable::tell(MessageId id, CompletionKind kind, std::uint32_t mailbox_packets) {
  const Descriptor& descriptor = state_.messages[id];
  const bool is_target = kind == CompletionKind::arrived || kind == CompletionKind::served;
  report(id, kind, is_target ? descriptor.target : descriptor.source, mailbox_packets);
  settle(id);
}

void MessageTable::settle(MessageId id) {
  APENET_CHECK(state_.reports_due[id] > 0, "message %u has been reported more often than it asked", id);
  if (--state_.reports_due[id] == 0) state_.messages.remove(id);
}

void MessageTable::sent(MessageId id) {
  if (!is_kept_back(id, CardTrace::sent)) report(id, CompletionKind::sent, state_.messages[id].source);
  settle(id);
}

void MessageTable::delivered(MessageId id, std::uint32_t mailbox_packets) {
  if (is_kept_back(id, CardTrace::arrived, mailbox_packets)) {
    settle(id);
    return;
  }
  const Descriptor& descriptor = state_.messages[id];
  trace(CardTrace::landed, descriptor.source, id);
  if (descriptor.remote_memory != Memory::none) sink_->deliver_payload(descriptor.source, descriptor.message);
  if (wants_delivered(descriptor)) {
    const bool is_get = descriptor.verb == Verb::get;
    notify(id, is_get ? CompletionKind::got : CompletionKind::arrived,
           is_get ? descriptor.source : descriptor.target, mailbox_packets);
  } else {
    settle(id);
  }
}

void MessageTable::served(MessageId id) {
  if (is_kept_back(id, CardTrace::served))
    settle(id);
  else
    notify(id, CompletionKind::served, state_.messages[id].target);
}

void MessageTable::execute(MessageId id) {
  sink_->execute(state_.messages[id].source, state_.messages[id].message);
}

void MessageTable::remote_done(MessageId id) {
  if (is_kept_back(id, CardTrace::remote_done))
    settle(id);
  else
    notify(id, CompletionKind::remote_done, state_.messages[id].source);
}

}  // namespace apenet
