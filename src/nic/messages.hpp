// MessageTable: the messages that cards are working on, and what their owners are still to be told.
#pragma once

#include <cstdint>

#include "kernel/simulation.hpp"
#include "nic/nic.hpp"
#include "nic/slab.hpp"

namespace apenet {

using MessageId = std::uint32_t;  // the cards' own number of a message while it is in the machine

// TraceRecord::what of EventKind::nic records. a: the source's number for the message; b: bytes << 2 | Verb.
// place: the process told; other: the source. Of `landed`, which lasts from the doorbell to the last byte in
// memory, place is the source and other the target.
enum class CardTrace : std::uint16_t { sent, arrived, remote_done, got, landed };

// One table for all cards of a machine: the stand-in for what a header says and what the published-buffer
// table of the target holds. A message lives until everything its descriptor asked for has been reported,
// each thing once.
class MessageTable {
 public:
  explicit MessageTable(const Simulation& simulation) : simulation_(simulation) {}
  MessageTable(const MessageTable&) = delete;
  MessageTable& operator=(const MessageTable&) = delete;

  void set_sink(CompletionSink& sink) { sink_ = &sink; }

  MessageId add(const Descriptor& descriptor);
  [[nodiscard]] const Descriptor& descriptor(MessageId id) const { return messages_[id].descriptor; }
  void prepare(MessageId id) const { messages_.prepare(id); }
  [[nodiscard]] std::size_t in_flight() const { return messages_.in_use(); }

  // Each is called at the time at which the process concerned can see it.
  void sent(MessageId id);
  // Lands the payload; `arrived`, or `got` for a get, if anyone wants it. mailbox_packets: see Completion.
  void delivered(MessageId id, std::uint32_t mailbox_packets = 0);
  void remote_done(MessageId id);

 private:
  struct Message {
    Descriptor descriptor;
    Time taken;  // from its owner by the card
    std::uint8_t reports_due = 0;
  };
  void report(MessageId id, Completion::Kind kind, ProcessId process, std::uint32_t mailbox_packets = 0);
  void settle(MessageId id);
  void trace(CardTrace what, ProcessId place, MessageId id) const;

  const Simulation& simulation_;
  CompletionSink* sink_ = nullptr;
  Slab<Message> messages_;
};

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

}  // namespace apenet
