#include "nic/messages.hpp"

#include "kernel/check.hpp"

namespace apenet {

MessageId MessageTable::add(const Descriptor& descriptor) {
  const int reports = 1 + (wants_sent(descriptor) ? 1 : 0) + (wants_remote_done(descriptor) ? 1 : 0);
  return messages_.add({descriptor, static_cast<std::uint8_t>(reports)});
}

void MessageTable::trace(CardTrace what, ProcessId place, const Descriptor& descriptor) const {
  simulation_.trace({simulation_.now(), EventKind::nic, static_cast<std::uint16_t>(what), place,
                     descriptor.source, descriptor.message});
}

void MessageTable::report(MessageId id, Completion::Kind kind, ProcessId process) {
  const Descriptor& descriptor = messages_[id].descriptor;
  static_assert(static_cast<int>(CardTrace::got) == static_cast<int>(Completion::Kind::got));
  trace(static_cast<CardTrace>(kind), process, descriptor);
  sink_->complete({kind, process, descriptor.source, descriptor.message, simulation_.now()});
}

void MessageTable::settle(MessageId id) {
  APENET_CHECK(messages_[id].reports_due > 0, "message %u has been reported more often than it asked", id);
  if (--messages_[id].reports_due == 0) messages_.remove(id);
}

void MessageTable::sent(MessageId id) {
  report(id, Completion::Kind::sent, messages_[id].descriptor.source);
  settle(id);
}

void MessageTable::delivered(MessageId id) {
  const Descriptor descriptor = messages_[id].descriptor;
  trace(CardTrace::landed, descriptor.source, descriptor);
  sink_->land(descriptor.source, descriptor.message);
  if (wants_delivered(descriptor)) {
    const bool is_get = descriptor.verb == Verb::get;
    report(id, is_get ? Completion::Kind::got : Completion::Kind::arrived,
           is_get ? descriptor.source : descriptor.target);
  }
  settle(id);
}

void MessageTable::remote_done(MessageId id) {
  report(id, Completion::Kind::remote_done, messages_[id].descriptor.source);
  settle(id);
}

}  // namespace apenet
