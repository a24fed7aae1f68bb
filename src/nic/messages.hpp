// MessageTable: the messages that cards are working on, and what their owners are still to be told.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/simulation.hpp"
#include "nic/nic.hpp"
#include "nic/slab.hpp"

namespace apenet {

// TraceRecord::what of EventKind::nic records. a: the source's number for the message; b: bytes << 2 | Verb.
// place: the process told; other: the source. Of `landed`, which lasts from the doorbell to the last byte in
// memory, place is the source and other the target.
enum class CardTrace : std::uint16_t { sent, arrived, remote_done, got, landed };

// One table for all cards of a machine: the stand-in for what a header says and what the published-buffer
// table of the target holds. A message lives from its post until everything its descriptor asked for has been
// reported, each thing once. A descriptor is one cache line; what else is known of its message lies apart.
class MessageTable {
 public:
  explicit MessageTable(const Simulation& simulation) : simulation_(simulation) {}
  MessageTable(const MessageTable&) = delete;
  MessageTable& operator=(const MessageTable&) = delete;

  void set_sink(CompletionSink& sink) { sink_ = &sink; }

  // Posted: on its way to the card.
  MessageId add(const Descriptor& descriptor) {
    const MessageId id = messages_.add(descriptor);
    if (id == reports_due_.size()) reports_due_.emplace_back();
    reports_due_[id] = reports_of(descriptor);
    return id;
  }
  // The card takes it from its owner now.
  void begin(MessageId id) {
    if (simulation_.is_traced()) [[unlikely]]
      note_begin(id);
  }
  // Of a credit, of which nothing is reported: out of the table.
  Descriptor take(MessageId id) { return messages_.take(id); }
  [[nodiscard]] const Descriptor& descriptor(MessageId id) const { return messages_[id]; }
  [[gnu::always_inline]] void prepare(MessageId id) const { messages_.prepare(id); }
  // Behind that: the process that will be told of its arrival.
  void prepare_target(MessageId id) const { sink_->prepare(messages_[id].target); }

  // Each is called at the time at which the process concerned can see it.
  void sent(MessageId id);
  // Lands the payload; `arrived`, or `got` for a get, if anyone wants it. mailbox_packets: see Completion.
  void delivered(MessageId id, std::uint32_t mailbox_packets = 0);
  void remote_done(MessageId id);

 private:
  [[nodiscard]] static std::uint8_t reports_of(const Descriptor& descriptor);
  void note_begin(MessageId id);
  void report(MessageId id, Completion::Kind kind, ProcessId process, std::uint32_t mailbox_packets = 0);
  void settle(MessageId id);
  void trace(CardTrace what, ProcessId place, MessageId id) const;

  const Simulation& simulation_;
  CompletionSink* sink_ = nullptr;
  Slab<Descriptor> messages_;
  LargeArray<std::uint8_t> reports_due_;  // of each
  std::vector<Time> began_;               // of each, where that is traced
};

static_assert(sizeof(Descriptor) == 64);

// A get answers for itself with `got`: want_local and want_remote have no meaning for it.
[[nodiscard]] constexpr bool wants_sent(const Descriptor& descriptor) {
  return descriptor.want_local && descriptor.verb != Verb::get;
}
[[nodiscard]] constexpr bool wants_remote_done(const Descriptor& descriptor) {
  return descriptor.want_remote && descriptor.verb != Verb::get;
}
// Whether delivery is told to a process: a put may be silent, everything else is not.
[[nodiscard]] constexpr bool wants_delivered(const Descriptor& descriptor) {
  return descriptor.verb != Verb::put || descriptor.notify_target;
}

inline std::uint8_t MessageTable::reports_of(const Descriptor& descriptor) {
  return static_cast<std::uint8_t>(1 + (wants_sent(descriptor) ? 1 : 0) +
                                   (wants_remote_done(descriptor) ? 1 : 0));
}

}  // namespace apenet
