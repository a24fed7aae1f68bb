#include "nic/messages.hpp"

#include "kernel/check.hpp"

namespace apenet {

MessageId MessageTable::add(const Descriptor& descriptor) {
  const int reports = 1 + (wants_sent(descriptor) ? 1 : 0) + (wants_remote_done(descriptor) ? 1 : 0);
  return messages_.add({descriptor, simulation_.now(), static_cast<std::uint8_t>(reports)});
}

void MessageTable::trace(CardTrace what, ProcessId place, MessageId id) const {
  if (!simulation_.is_traced()) return;
  const auto& [descriptor, taken, reports_due] = messages_[id];
  simulation_.trace(
      {.time = what == CardTrace::landed ? taken : simulation_.now(),
       .until = simulation_.now(),
       .kind = EventKind::nic,
       .what = static_cast<std::uint16_t>(what),
       .place = place,
       .other = what == CardTrace::landed ? descriptor.target : descriptor.source,
       .a = descriptor.message,
       .b = static_cast<std::uint64_t>(descriptor.bytes) << 2 | static_cast<std::uint64_t>(descriptor.verb)});
}

void MessageTable::report(MessageId id, Completion::Kind kind, ProcessId process,
                          std::uint32_t mailbox_packets) {
  const Descriptor& descriptor = messages_[id].descriptor;
  static_assert(static_cast<int>(CardTrace::got) == static_cast<int>(Completion::Kind::got));
  trace(static_cast<CardTrace>(kind), process, id);
  sink_->complete({kind, process, descriptor.source, descriptor.message, simulation_.now(), mailbox_packets});
}

void MessageTable::settle(MessageId id) {
  APENET_CHECK(messages_[id].reports_due > 0, "message %u has been reported more often than it asked", id);
  if (--messages_[id].reports_due == 0) messages_.remove(id);
}

void MessageTable::sent(MessageId id) {
  report(id, Completion::Kind::sent, messages_[id].descriptor.source);
  settle(id);
}

void MessageTable::delivered(MessageId id, std::uint32_t mailbox_packets) {
  const Descriptor descriptor = messages_[id].descriptor;
  trace(CardTrace::landed, descriptor.source, id);
  if (descriptor.remote_memory != Memory::none) sink_->land(descriptor.source, descriptor.message);
  if (wants_delivered(descriptor)) {
    const bool is_get = descriptor.verb == Verb::get;
    report(id, is_get ? Completion::Kind::got : Completion::Kind::arrived,
           is_get ? descriptor.source : descriptor.target, mailbox_packets);
  }
  settle(id);
}

void MessageTable::remote_done(MessageId id) {
  report(id, Completion::Kind::remote_done, messages_[id].descriptor.source);
  settle(id);
}

}  // namespace apenet
