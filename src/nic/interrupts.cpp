#include "nic/interrupts.hpp"

#include <string>
#include <utility>

#include "kernel/refuse.hpp"
#include "nic/messages.hpp"
#include "schema/ranges.hpp"

namespace apenet {

void validate(const InterruptDescription& interrupts) {
  schema::require_ranges("card", interrupts);
  const bool waits = interrupts.coalescing > Time::zero();
  if (waits && !interrupts.is_on()) {
    refuse_value("card.coalesce_us", std::to_string(interrupts.coalescing.ps()) + " ps",
                 "0 or absent: there is no interrupt without card.interrupt_us above 0");
  }
  if (interrupts.coalesced_events > 0 && !waits) {
    refuse_value("card.coalesce_events", std::to_string(interrupts.coalesced_events),
                 "0 or absent: no interrupt waits for events without card.coalesce_us above 0");
  }
}

Interrupts::Interrupts(Simulation& simulation, MessageTable& messages, const Placement& placement,
                       const InterruptDescription& description, const SameNodeDescription& same_node,
                       std::uint32_t first_source)
    : simulation_(simulation),
      messages_(messages),
      placement_(placement),
      description_(description),
      same_node_(same_node),
      first_source_(first_source) {
  add_processes();
}

void Interrupts::add_processes() {
  auto process = static_cast<ProcessId>(state_.vectors.size());
  state_.vectors.resize(placement_.process_count());
  for (; process < state_.vectors.size(); ++process)
    state_.vectors[process].source = {EventKind::host, first_source_ + process, 0};
}

bool Interrupts::defers(MessageId id, const Descriptor& descriptor, CompletionKind kind, ProcessId process,
                        std::uint32_t mailbox_packets) {
  if (same_node_.goes_through_memory(placement_, descriptor.source, descriptor.target)) return false;
  Vector& vector = state_.vectors[process];
  vector.waiting.push_back({id, kind, mailbox_packets});
  ++counted_.events;
  if (vector.is_raised) return true;
  const bool is_first = vector.waiting.size() == 1;
  const auto enough = static_cast<std::size_t>(description_.coalesced_events);
  if (description_.coalescing == Time::zero() || vector.waiting.size() == enough) {
    raise(process);
  } else if (is_first) {
    simulation_.schedule(vector.source, simulation_.now() + description_.coalescing, *this,
                         static_cast<std::uint64_t>(Step::coalesced), vector.number);
  }
  return true;
}

void Interrupts::raise(ProcessId process) {
  Vector& vector = state_.vectors[process];
  vector.is_raised = true;
  ++vector.number;
  ++counted_.raised;
  simulation_.schedule(vector.source, simulation_.now() + description_.interrupt, *this,
                       static_cast<std::uint64_t>(Step::taken), 0);
}

void Interrupts::handle_event(const Event& event) {
  const ProcessId process = event.source() - first_source_;
  Vector& vector = state_.vectors[process];
  if (static_cast<Step>(event.argument_a) == Step::coalesced) {
    if (event.argument_b == vector.number && !vector.waiting.empty()) raise(process);
    return;
  }
  vector.is_raised = false;
  state_.taken.clear();
  std::swap(state_.taken, vector.waiting);
  for (const Waiting& one : state_.taken) messages_.tell(one.id, one.kind, one.mailbox_packets);
}

void Interrupts::count(std::vector<Counter>& counters) const {
  counters.push_back({"interrupts", counted_.raised});
  counters.push_back({"events_by_interrupt", counted_.events});
}

}  // namespace apenet
