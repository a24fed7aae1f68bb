#include "machine/machine.hpp"

#include <algorithm>
#include <utility>

#include "host/bus.hpp"
#include "host/memory_copy.hpp"
#include "kernel/check.hpp"
#include "machine/validate.hpp"
#include "network/make_network.hpp"
#include "network/topology.hpp"
#include "nic/apelink/apelink_nic.hpp"
#include "nic/ideal/ideal_nic.hpp"
#include "nic/placement.hpp"

namespace apenet {

namespace {

enum class Step : std::uint64_t { doorbell, copy_begins, copy_done };

constexpr std::uint64_t code(Step step) {
  return static_cast<std::uint64_t>(step);
}

bool is_wormhole_by_packets(const NetworkDescription& network) {
  return network.engine == NetworkDescription::Engine::packet &&
         network.switching == NetworkDescription::Switching::wormhole;
}

// On the ideal card the doorbell is a part of the latency; without one of its own it is all of it, so that
// processes may run as far ahead as anything allows.
Time doorbell_delay_of(const MachineDescription& description) {
  const Time pio = description.host.bus.pio_write_latency;
  if (description.nic.card == NicDescription::Card::apelink) return pio;
  const Time latency = description.nic.ideal.latency;
  return pio > Time::zero() ? std::min(pio, latency) : latency;
}

}  // namespace

// The card of a node and its bus: beside each other in memory.
struct ApelinkNode {
  ApelinkNode(ApelinkCards& cards, BusKind& bus_kind, NodeId node)
      : bus(cards.simulation, bus_kind, node), nic({cards, bus, node, {EventKind::nic, node, 0}}) {}
  Bus bus;
  ApelinkNic nic;
};

struct Machine::Parts final : private EventHandler {
  Parts(Simulation& simulation_, const MachineDescription& description_, std::vector<NodeId> node_of_process);

  void post(Time when, const Descriptor& descriptor);
  void handle_event(const Event& event) override;
  void wire_apelink();
  void wire_ideal();
  void begin_copy(std::uint32_t index);
  void finish_copy(MessageId id);
  Nic& nic(NodeId node) { return apelink.empty() ? static_cast<Nic&>(*ideal[node]) : apelink[node]->nic; }

  struct Posted {
    Descriptor descriptor;
    Time when;
  };

  Simulation& simulation;
  MachineDescription description;
  std::uint32_t nodes;
  Placement placement;
  MessageTable messages;
  NicCapabilities capabilities;
  Time doorbell_delay;
  Time lookahead;
  std::unique_ptr<Network> network;   // none for the ideal card
  std::vector<MemoryCopy> copies;     // one a node
  std::unique_ptr<BusKind> bus_kind;  // these three: none for the ideal card
  std::unique_ptr<ApelinkCards> apelink_cards;
  std::vector<std::unique_ptr<ApelinkNode>> apelink;
  IdealNics ideal;
  Slab<Posted> posted;                       // between the post and its first effect
  std::vector<EventSource> process_sources;  // doorbells and copies begin in the order of their posts
  std::vector<EventSource> copy_sources;     // per node: the end of a copy
  bool has_sink = false;
  std::uint64_t message_count = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t local_messages = 0;
  std::uint64_t local_bytes = 0;
};

Machine::Parts::Parts(Simulation& simulation_, const MachineDescription& description_,
                      std::vector<NodeId> node_of_process)
    : simulation(simulation_),
      description(description_),
      nodes(count_nodes(description_, node_of_process)),
      placement(std::move(node_of_process), nodes),
      messages(simulation_),
      doorbell_delay(doorbell_delay_of(description_)),
      lookahead(std::min(doorbell_delay, description_.host.local_latency)) {
  for (NodeId node = 0; node < nodes; ++node) {
    copies.emplace_back(description.host);
    copy_sources.push_back({EventKind::host, nodes + node, 0});
  }
  for (ProcessId process = 0; process < placement.process_count(); ++process) {
    process_sources.push_back({EventKind::host, 2 * nodes + process, 0});
  }
  if (description.nic.card == NicDescription::Card::apelink) {
    wire_apelink();
  } else {
    wire_ideal();
  }
}

void Machine::Parts::wire_apelink() {
  const ApelinkDescription& card = description.nic.apelink;
  const std::int64_t max_packet = card.header_bytes + card.max_payload_bytes + card.footer_bytes;
  network = make_network(simulation, {.description = description.network,
                                      .card_channels = static_cast<std::uint32_t>(card.queues),
                                      .max_packet_wire_bytes = static_cast<std::uint32_t>(max_packet)});
  capabilities = ApelinkNic::capabilities_of(card);
  bus_kind = std::make_unique<BusKind>(description.host.bus);
  apelink_cards = std::make_unique<ApelinkCards>(
      ApelinkCards{.simulation = simulation,
                   .network = *network,
                   .messages = messages,
                   .placement = placement,
                   .description = card,
                   .pio_write_latency = description.host.bus.pio_write_latency,
                   .outstanding_reads = description.host.bus.outstanding_reads});
  for (NodeId node = 0; node < nodes; ++node) {
    apelink.push_back(std::make_unique<ApelinkNode>(*apelink_cards, *bus_kind, node));
  }
}

void Machine::Parts::wire_ideal() {
  const IdealDescription& card = description.nic.ideal;
  capabilities = IdealNic::capabilities_of(card);
  for (NodeId node = 0; node < nodes; ++node) {
    ideal.push_back(
        std::make_unique<IdealNic>(simulation, card, doorbell_delay, node, messages, placement, ideal));
  }
}

void Machine::Parts::post(Time when, const Descriptor& descriptor) {
  APENET_CHECK(has_sink, "process %u posts before Machine::set_sink", descriptor.source);
  validate(descriptor, capabilities, placement.process_count());
  const bool is_local = placement.node(descriptor.source) == placement.node(descriptor.target);
  ++message_count;
  payload_bytes += static_cast<std::uint64_t>(descriptor.bytes);
  const std::uint32_t index = posted.add({descriptor, when});
  simulation.schedule(process_sources[descriptor.source], when + (is_local ? lookahead : doorbell_delay),
                      *this, code(is_local ? Step::copy_begins : Step::doorbell), index);
}

void Machine::Parts::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(event.argument_b);
  switch (static_cast<Step>(event.argument_a)) {
    case Step::doorbell: {
      const Descriptor descriptor = posted.take(which).descriptor;
      nic(placement.node(descriptor.source)).doorbell(descriptor);
      break;
    }
    case Step::copy_begins:
      begin_copy(which);
      break;
    case Step::copy_done:
      finish_copy(which);
      break;
  }
}

// Whatever the verb: the process that runs copies out of one memory into the other through a shared segment.
// The event is lookahead after the post, so that copies queue in the order of their posts; the copy itself
// began at the post.
void Machine::Parts::begin_copy(std::uint32_t index) {
  const Posted post = posted.take(index);
  const NodeId node = placement.node(post.descriptor.source);
  ++local_messages;
  local_bytes += static_cast<std::uint64_t>(post.descriptor.bytes);
  const Time copied = copies[node].reserve(post.when, post.descriptor.bytes);
  simulation.schedule(copy_sources[node], copied + description.host.local_latency, *this,
                      code(Step::copy_done), messages.add(post.descriptor));
}

void Machine::Parts::finish_copy(MessageId id) {
  const Descriptor descriptor = messages.descriptor(id);
  messages.delivered(id);
  if (wants_sent(descriptor)) messages.sent(id);
  if (wants_remote_done(descriptor)) messages.remote_done(id);
}

Machine::Machine(Simulation& simulation, const MachineDescription& description,
                 std::vector<NodeId> node_of_process) {
  validate(description, node_of_process);
  parts_ = std::make_unique<Parts>(simulation, description, std::move(node_of_process));
}

Machine::~Machine() = default;

void Machine::set_sink(CompletionSink& sink) {
  parts_->messages.set_sink(sink);
  parts_->has_sink = true;
}

void Machine::post(Time when, const Descriptor& descriptor) {
  parts_->post(when, descriptor);
}

void Machine::begin(Time zero) {
  if (parts_->network) parts_->network->begin(zero);
}

FaultUse Machine::fault_use() const {
  return parts_->network ? parts_->network->fault_use() : FaultUse{};
}

bool Machine::is_quiet_until_faults(std::size_t pending_events) const {
  return parts_->network && parts_->network->is_quiet_until_faults(pending_events);
}

Time Machine::lookahead() const {
  return parts_->lookahead;
}

NicCapabilities Machine::capabilities() const {
  return parts_->capabilities;
}

const MachineDescription& Machine::description() const {
  return parts_->description;
}

std::uint32_t Machine::node_count() const {
  return parts_->nodes;
}

std::uint32_t Machine::process_count() const {
  return parts_->placement.process_count();
}

NodeId Machine::node_of(ProcessId process) const {
  return parts_->placement.node(process);
}

std::vector<LinkUse> Machine::link_use() const {
  std::vector<LinkUse> use;
  if (!parts_->network) return use;
  use.reserve(parts_->network->link_count());
  for (std::uint32_t link = 0; link < parts_->network->link_count(); ++link) {
    LinkStatistics statistics = parts_->network->link_statistics(link);
    use.push_back({std::move(statistics.name), statistics.packets, statistics.wire_bytes, statistics.busy,
                   statistics.corrupted_packets, statistics.retransmitted_bytes});
  }
  return use;
}

std::vector<std::uint32_t> Machine::coordinates(NodeId node) const {
  const std::vector<std::uint32_t>& dims = parts_->description.network.dims;
  return dims.empty() ? std::vector<std::uint32_t>{node} : CubeShape(dims).coordinates(node);
}

std::vector<Counter> Machine::counters() const {
  const ApelinkCounters card = parts_->apelink_cards ? parts_->apelink_cards->counters : ApelinkCounters{};
  const ReorderUse reorder = parts_->network ? parts_->network->reorder_use() : ReorderUse{};
  std::vector<Counter> counters = {{"messages", parts_->message_count},
                                   {"payload_bytes", parts_->payload_bytes},
                                   {"local_messages", parts_->local_messages},
                                   {"local_bytes", parts_->local_bytes},
                                   {"packets", card.packets},
                                   {"acknowledgements", card.acknowledgements},
                                   {"descriptors_held_back", card.descriptors_held_back},
                                   {"gets_served", card.gets_served}};
  if (reorder.held_packets > 0) {
    counters.push_back({"packets_reordered", reorder.held_packets});
    counters.push_back({"reorder_peak_bytes", static_cast<std::uint64_t>(reorder.peak_bytes)});
  }
  return counters;
}

std::vector<std::string> Machine::warnings() const {
  const ApelinkCounters card = parts_->apelink_cards ? parts_->apelink_cards->counters : ApelinkCounters{};
  std::vector<std::string> warnings;
  if (parts_->network) warnings = parts_->network->warnings();
  if (parts_->network && is_wormhole_by_packets(parts_->description.network)) {
    warnings.emplace_back(
        "the packet engine runs router.switching = wormhole as virtual cut-through, with buffers of at least "
        "a "
        "packet: the flit engine (--engine flit) runs it as described");
  }
  if (card.gets_served > 0) {
    warnings.push_back(
        std::to_string(card.gets_served) +
        " gets were served by the driver at the target: APELink has no published hardware get, "
        "card.get_service_us is assumed");
  }
  if (card.acknowledgements > 0) {
    warnings.push_back(std::to_string(card.acknowledgements) +
                       " remote completions were acknowledged by a packet of the target's card: this is "
                       "assumed, no acknowledgement of APELink is published");
  }
  return warnings;
}

}  // namespace apenet
