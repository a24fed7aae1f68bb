// MessageTable: the messages in progress, and the completions still due for each.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/simulation.hpp"
#include "kernel/state.hpp"
#include "nic/interrupts.hpp"
#include "nic/nic.hpp"
#include "nic/slab.hpp"
#include "nic/stage.hpp"

namespace apenet {

// TraceRecord::what of records of EventKind::nic. a: the source's number of the message; b: bytes << 2 |
// Verb. place: the process that gets the completion; other: the source. For `landed`, which lasts from the
// doorbell to the last byte in memory, place is the source and other the target. For `stage`, b is the Stage
// that begins at `time`. After `injects` the next NetworkTrace::injected is of the message's last packet.
enum class CardTrace : std::uint16_t {
  sent,
  arrived,
  remote_done,
  got,
  served,
  landed,
  stage,
  injects,
  deferred
};

// Sees the reports of the table before their sink.
class MessageWatcher {
 public:
  // what: sent, remote_done, served; arrived for what is delivered. Returns true if the sink must not get it.
  virtual bool keeps_back(MessageId id, CardTrace what, std::uint32_t mailbox_packets) = 0;

 protected:
  ~MessageWatcher() = default;
};

// One table for all cards of a machine. It replaces the fields of packet headers and the published-buffer
// table of the target. A message lives from its post until every completion that its descriptor requests has
// been reported once. A descriptor is one cache line; all other data of a message is stored separately.
class MessageTable {
 public:
  explicit MessageTable(const Simulation& simulation) : simulation_(simulation) {}
  MessageTable(const MessageTable&) = delete;
  MessageTable& operator=(const MessageTable&) = delete;

  void set_sink(CompletionSink& sink) { sink_ = &sink; }
  // nullptr: nobody.
  void set_watcher(MessageWatcher* watcher) { watcher_ = watcher; }
  // How processes learn what this rail's cards have received; without, they poll.
  void set_interrupts(std::uint8_t rail, Interrupts& interrupts) {
    if (interrupts_.size() <= rail) interrupts_.resize(rail + std::size_t{1}, nullptr);
    interrupts_[rail] = &interrupts;
  }

  // Call when the message is posted, on its way to the card.
  MessageId add(const Descriptor& descriptor) {
    const MessageId id = state_.messages.add(descriptor);
    if (id == state_.reports_due.size()) state_.reports_due.emplace_back();
    state_.reports_due[id] = reports_of(descriptor);
    return id;
  }
  // Call when the doorbell reaches the card.
  void begin(MessageId id) {
    if (simulation_.is_traced()) [[unlikely]]
      note_begin(id);
  }
  // For reports only: from `when` on the message is in this stage. Call it in the order of time.
  void enter(MessageId id, Stage stage, Time when) const {
    if (simulation_.is_traced()) [[unlikely]]
      note_stage(id, stage, when);
  }
  void enter(MessageId id, Stage stage) const { enter(id, stage, simulation_.now()); }
  // The same for a transfer over the bus, which waited from when its last burst was ready until it began.
  void enter_bus(MessageId id, Time ready, Time begin) const {
    enter(id, Stage::bus_busy, ready);
    enter(id, Stage::bus, begin);
  }
  // The same for the processor's write of a doorbell.
  void enter_doorbell(MessageId id, Time ready, Time begin) const {
    enter(id, Stage::bus_busy, ready);
    enter(id, Stage::doorbell, begin);
  }
  // Call directly before Network::inject() with the last packet of the message.
  void injects(MessageId id) const {
    if (simulation_.is_traced()) [[unlikely]]
      note(id, CardTrace::injects, simulation_.now(), 0);
  }
  // Removes a credit, which causes no completion.
  Descriptor take(MessageId id) { return state_.messages.take(id); }
  // Removes a message of which no more is reported.
  void forget(MessageId id) { state_.messages.remove(id); }
  // The same from within a report of it, behind that.
  void end_with_this_report(MessageId id) { state_.reports_due[id] = 1; }
  [[nodiscard]] const Descriptor& descriptor(MessageId id) const { return state_.messages[id]; }
  [[gnu::always_inline]] void prepare(MessageId id) const { state_.messages.prepare(id); }
  // As prepare(), one step later: prefetches the state of the target process.
  void prepare_target(MessageId id) const { sink_->prepare(state_.messages[id].target); }

  // The sink is hearing a report, of this message. Whoever gives it, a card, may not have ended its event.
  [[nodiscard]] bool is_reporting() const { return state_.reported != none; }
  [[nodiscard]] bool is_reporting(MessageId id) const { return state_.reported == id; }

  // Call each of these at the time at which the affected process can see it in its memory.
  void sent(MessageId id);
  // Delivers the payload and reports `arrived`, or `got` for a get, if requested. mailbox_packets: see
  // Completion.
  void delivered(MessageId id, std::uint32_t mailbox_packets = 0);
  void remote_done(MessageId id);
  // A get: its target's memory has been read, or the lock's word changed.
  void served(MessageId id);
  // Call when the process has taken the interrupt of an event that Interrupts::defers() has deferred.
  void tell(MessageId id, CompletionKind kind, std::uint32_t mailbox_packets);
  // Call when a lock takes effect at its target.
  void execute(MessageId id);

  // How many of them a message gets.
  [[nodiscard]] static std::uint8_t reports_of(const Descriptor& descriptor);

  static constexpr MessageId none = ~MessageId{0};
  struct State {
    Slab<Descriptor> messages;
    LargeArray<std::uint8_t> reports_due;  // per message
    MessageId reported = none;             // the message whose report the sink is hearing
    std::vector<Time> began;               // per message, if tracing
  };

 private:
  void note_begin(MessageId id);
  void note(MessageId id, CardTrace what, Time when, std::uint64_t detail) const;
  void note_stage(MessageId id, Stage stage, Time when) const {
    note(id, CardTrace::stage, when, static_cast<std::uint64_t>(stage));
  }
  void report(MessageId id, CompletionKind kind, ProcessId process, std::uint32_t mailbox_packets = 0);
  [[nodiscard]] bool is_kept_back(MessageId id, CardTrace what, std::uint32_t mailbox_packets = 0) {
    return watcher_ != nullptr && watcher_->keeps_back(id, what, mailbox_packets);
  }
  // Reports at once, or leaves that to an interrupt.
  void notify(MessageId id, CompletionKind kind, ProcessId process, std::uint32_t mailbox_packets = 0);
  void settle(MessageId id);
  void trace(CardTrace what, ProcessId place, MessageId id) const;

  const Simulation& simulation_;
  CompletionSink* sink_ = nullptr;
  MessageWatcher* watcher_ = nullptr;
  std::vector<Interrupts*> interrupts_;  // per rail; empty if no rail has them
  State state_;
};

static_assert(sizeof(Descriptor) == 64);

// A get has its own flags, and ignores want_local and want_remote.
[[nodiscard]] constexpr bool wants_sent(const Descriptor& descriptor) {
  return descriptor.verb == Verb::get ? descriptor.notify_requester : descriptor.want_local;
}
[[nodiscard]] constexpr bool wants_served(const Descriptor& descriptor) {
  return descriptor.verb == Verb::get && descriptor.notify_responder;
}
[[nodiscard]] constexpr bool wants_remote_done(const Descriptor& descriptor) {
  return descriptor.want_remote && descriptor.verb != Verb::get;
}
// Whether a process is notified of the delivery. Only a put may be silent.
[[nodiscard]] constexpr bool wants_delivered(const Descriptor& descriptor) {
  return descriptor.verb != Verb::put || descriptor.notify_target;
}

inline std::uint8_t MessageTable::reports_of(const Descriptor& descriptor) {
  return static_cast<std::uint8_t>(1 + (wants_sent(descriptor) ? 1 : 0) +
                                   (wants_remote_done(descriptor) ? 1 : 0) +
                                   (wants_served(descriptor) ? 1 : 0));
}

}  // namespace apenet
