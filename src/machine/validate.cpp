#include "machine/validate.hpp"

#include <algorithm>
#include <string>

#include "kernel/refuse.hpp"
#include "machine/rails.hpp"
#include "nic/card_set.hpp"
#include "schema/ranges.hpp"

namespace apenet {

namespace {

bool has_bus(const NicDescription& card) {
  return kind_of(card).has_network && kind_of(card).has_bus;
}

void validate_placement(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  const std::uint32_t nodes = count_nodes(description, node_of_process);
  const CardTraits traits = card_traits(description.nic, description.host);
  std::vector<std::int64_t> processes(nodes, 0);
  for (std::size_t p = 0; p < node_of_process.size(); ++p) {
    const NodeId node = node_of_process[p];
    if (node >= nodes) {
      refuse_value("node of process " + std::to_string(p), std::to_string(node),
                   "one of the " + std::to_string(nodes) + " nodes of the network");
    }
    if (++processes[node] > traits.max_processes) {
      refuse_value("processes on node " + std::to_string(node), std::to_string(processes[node]),
                   "at most " + std::string(traits.max_processes_key) + " = " +
                       std::to_string(traits.max_processes) + " sharing a card; the network has " +
                       std::to_string(nodes) + " nodes for " + std::to_string(node_of_process.size()) +
                       " processes");
    }
  }
}

}  // namespace

std::uint32_t count_nodes(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  if (node_of_process.empty()) refuse_value("processes", "0", "at least one");
  if (!description.network.topology.kind().has_routers) {
    return *std::max_element(node_of_process.begin(), node_of_process.end()) + 1;
  }
  constexpr std::uint32_t max_nodes = 1U << 22U;  // ids of event sources, six a node
  const std::uint32_t nodes = description.network.topology.node_count();
  if (nodes > max_nodes) {
    refuse_value("network", std::to_string(nodes) + " nodes",
                 "1 to " + std::to_string(max_nodes) + " nodes in all");
  }
  return nodes;
}

namespace {

const char* rule_in_quotes(InjectionRule rule) {
  switch (rule) {
    case InjectionRule::direction:
      return "\"direction\"";
    case InjectionRule::destination:
      return "\"destination\"";
    case InjectionRule::queue:
      return "\"queue\"";
    case InjectionRule::least_loaded:
      break;
  }
  return "\"least-loaded\"";
}

void require_fifos_of_card(const NetworkDescription& network, const CardTraits& card) {
  const std::int64_t fifos = network.injection_fifos;
  require_at_most("router.injection_fifos", fifos, card.max_injection_fifos, card.injection_fifos_reason);
  if (!card.shares_channels_out || fifos == 1) return;
  if (card.max_injection_fifos % fifos != 0) {
    refuse_value("router.injection_fifos", std::to_string(fifos),
                 "a divisor of " + std::to_string(card.max_injection_fifos) + card.injection_fifos_reason);
  }
  if (network.injection_rule != InjectionRule::queue) {
    refuse_value("router.injection_rule", rule_in_quotes(network.injection_rule),
                 "\"queue\" on this card, whose queues are " + std::string(card.queues_are));
  }
}

void require_loop_back(const MachineDescription& description, const CardTraits& card) {
  if (description.same_node.way == SameNodeDescription::Way::memory || card.no_loop_back == nullptr) return;
  refuse_value("card.same_node", "\"card\"",
               "\"memory\" with card.kind = \"" + std::string(kind_of(description.nic).name) +
                   "\": " + card.no_loop_back);
}

void validate_rail(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  schema::require_ranges("host", description.host);
  schema::require_ranges("software.card", description.card_software);
  schema::require_ranges("software.mpi", description.mpi_software);
  if (description.udp_software.mtu_bytes > 0)
    schema::require_ranges("software.udp", description.udp_software);
  if (description.ip_software.costs.mtu_bytes > 0) {
    schema::require_ranges("software.ip", description.ip_software);
    if (card_traits(description.nic, description.host).forwards_by_software)
      refuse_value("software.ip", "present", "none on this card, whose links lead to neighbours only");
  }
  validate_card(description.nic, description.host);
  validate(description.interrupts);
  if (!kind_of(description.nic).has_network && !description.network.faults.empty()) {
    refuse_value("fault", '"' + description.network.faults.front() + '"',
                 "none on a machine without a network");
  }
  const CardTraits card = card_traits(description.nic, description.host);
  require_fifos_of_card(description.network, card);
  require_loop_back(description, card);
  validate_placement(description, node_of_process);
}

// Checks that a further rail fits the first one.
void require_fit(const MachineDescription& machine, std::uint8_t number, std::uint32_t nodes,
                 const std::vector<NodeId>& node_of_process) {
  const RailDescription& rail = machine.rails[number - 1U];
  const std::uint32_t found = count_nodes(rail_alone(machine, number), node_of_process);
  if (found != nodes) {
    refuse_value("network", std::to_string(found) + " nodes",
                 "the " + std::to_string(nodes) + " nodes of the first rail");
  }
  if (rail.shares_slot && !(has_bus(machine.nic) && has_bus(rail.nic))) {
    refuse_value("slot", "\"shared\"", "own: the card of the first rail, or this one, has no bus");
  }
}

}  // namespace

void validate(const MachineDescription& description, const std::vector<NodeId>& node_of_process) {
  validate_rail(rail_alone(description, 0), node_of_process);
  if (rail_count(description) > MachineDescription::most_rails) {
    refuse_value("rail", std::to_string(rail_count(description)) + " rails",
                 "at most " + std::to_string(MachineDescription::most_rails) + ", the first included");
  }
  const std::uint32_t nodes = count_nodes(description, node_of_process);
  for (std::uint8_t number = 1; number < rail_count(description); ++number) {
    refuse_within(rail_key(description, number), [&] {
      require_fit(description, number, nodes, node_of_process);
      validate_rail(rail_alone(description, number), node_of_process);
    });
  }
}

void require_sends_of(std::int64_t bytes, const NicCapabilities& card) {
  const bool sends_are_shorter = card.max_send_bytes < card.max_message_bytes;
  if (card.max_send_bytes >= bytes) return;
  refuse_value(sends_are_shorter ? "card.max_send_bytes" : "card.max_message_bytes",
               std::to_string(card.max_send_bytes),
               "at least " + std::to_string(bytes) + ", the largest of the messages that begin a rendezvous");
}

void validate(const Descriptor& descriptor, const NicCapabilities& card, std::uint32_t process_count) {
  const auto require_process = [&](const char* key, ProcessId process) {
    if (process >= process_count) {
      refuse_value(key, std::to_string(process), "below the " + std::to_string(process_count) + " processes");
    }
  };
  require_process("descriptor.source", descriptor.source);
  require_process("descriptor.target", descriptor.target);
  const bool is_ring = card.needs_credit && descriptor.channel == card.ring_channel;
  if (descriptor.channel >= card.channels && !is_ring) {
    refuse_value("descriptor.channel", std::to_string(descriptor.channel),
                 "below the card's " + std::to_string(card.channels) + " channels");
  }
  require_at_least("descriptor.bytes", descriptor.bytes, 0);
  require_at_most("descriptor.bytes", descriptor.bytes, card.max_message_bytes,
                  ", the card's largest message");
  if (descriptor.verb == Verb::send) {
    require_at_most("descriptor.bytes", descriptor.bytes, card.max_send_bytes, ", the card's largest send");
  }
  if (descriptor.verb == Verb::put && !card.put)
    refuse_value("descriptor.verb", "put", "what the card can do: it has no put");
  if (descriptor.verb == Verb::get && !card.get)
    refuse_value("descriptor.verb", "get", "what the card can do: it has no get");
  const bool is_notified = descriptor.notify_requester || descriptor.notify_responder;
  if (is_notified && (descriptor.verb != Verb::get || !card.get_notifications))
    refuse_value("descriptor.notify", "requester or responder",
                 "none: the card tells only of the data of a get");
  if (descriptor.is_lock && (descriptor.verb != Verb::get || !card.locks))
    refuse_value("descriptor.verb", "lock", "what the card can do: it has no locks");
  if (descriptor.verb == Verb::credit && !card.needs_credit)
    refuse_value("descriptor.verb", "credit", "what the card can do: it has no credit");
  if (!card.gpu_memory &&
      (descriptor.local_memory == Memory::gpu || descriptor.remote_memory == Memory::gpu)) {
    refuse_value("descriptor.memory", "gpu", "host: the card reaches no GPU's memory");
  }
  if (descriptor.local_memory == Memory::none)
    refuse_value("descriptor.local_memory", "none", "host or gpu: a payload comes from somewhere");
  if (descriptor.remote_memory == Memory::none &&
      (!card.drops || descriptor.verb != Verb::put || descriptor.notify_target || descriptor.want_remote)) {
    refuse_value("descriptor.remote_memory", "none",
                 "host or gpu, but for a put that nobody is told of, to a card that drops");
  }
  if (descriptor.from_cpu) {
    require_at_most("descriptor.bytes", descriptor.bytes, card.pio_limit_bytes(descriptor.verb),
                    ", the card's largest payload written by the CPU");
  }
}

}  // namespace apenet
