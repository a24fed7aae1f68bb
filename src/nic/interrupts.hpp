// Interrupts: how a process learns what its card has received, if it does not poll.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/counters.hpp"
#include "kernel/simulation.hpp"
#include "nic/nic.hpp"
#include "nic/placement.hpp"
#include "nic/same_node.hpp"
#include "schema/fields.hpp"

namespace apenet {

class MessageTable;

// Keys of [card] that every card has beside its own.
struct InterruptDescription {
  Time interrupt{};                   // zero: processes poll
  Time coalescing{};                  // zero: the first event raises the interrupt
  std::int64_t coalesced_events = 0;  // zero: only the time raises it

  [[nodiscard]] bool is_on() const { return interrupt > Time::zero(); }
};

inline void list_fields(schema::Fields& fields, InterruptDescription& interrupts) {
  using namespace schema::ranges;
  fields(
      "interrupt_us", interrupts.interrupt, not_negative.optional(),
      "processes learn by interrupt what the card has received: from its raising until the process runs; 0: "
      "they poll");
  fields("coalesce_us", interrupts.coalescing, not_negative.optional(),
         "with interrupt_us: an interrupt waits for further events, until this long after the first one");
  fields("coalesce_events", interrupts.coalesced_events, count_or_zero.optional(),
         "with coalesce_us: so many events raise the interrupt earlier; 0: only the time does");
}

// Throws std::invalid_argument naming the key, the value and what was expected.
void validate(const InterruptDescription& interrupts);

// The interrupts of one rail's cards: one vector and one event queue for each process. The card raises an
// interrupt, and `interrupt` later the process takes every event that its queue then holds. Until that moment
// the vector is masked, so later events join instead of raising another one.
//
// An event is a completion by which the process learns that something has come by the card: `arrived`,
// `got`, `remote_done`, `served`. `sent` is none: libraries find it when they post the next message. Payload
// is in memory before its interrupt, as without.
class Interrupts final : private EventHandler {
 public:
  // first_source: the number of process 0's event source, of kind host.
  Interrupts(Simulation& simulation, MessageTable& messages, const Placement& placement,
             const InterruptDescription& description, const SameNodeDescription& same_node,
             std::uint32_t first_source);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Call when an event of the process is in its memory. Returns true if an interrupt will tell the process
  // (MessageTable::tell), and false for a message that passes no card.
  [[nodiscard]] bool defers(MessageId id, const Descriptor& descriptor, CompletionKind kind,
                            ProcessId process, std::uint32_t mailbox_packets);
  // Call when the placement has got further processes.
  void add_processes();
  void count(std::vector<Counter>& counters) const;

  struct Waiting {
    MessageId id;
    CompletionKind kind;
    std::uint32_t mailbox_packets;
  };
  struct Vector {
    EventSource source;
    std::vector<Waiting> waiting;
    // Raisings so far: the end of the coalescing before an earlier one is void.
    std::uint64_t number = 0;
    bool is_raised = false;
  };
  struct State {
    std::vector<Vector> vectors;  // per process
    std::vector<Waiting> taken;
  };

 private:
  enum class Step : std::uint64_t { coalesced, taken };
  struct Counters {
    std::uint64_t raised = 0;
    std::uint64_t events = 0;
  };

  void handle_event(const Event& event) override;
  void raise(ProcessId process);

  Simulation& simulation_;
  MessageTable& messages_;
  const Placement& placement_;
  InterruptDescription description_;
  SameNodeDescription same_node_;
  const std::uint32_t first_source_;
  State state_;
  Counters counted_;
};

}  // namespace apenet
