#include "machine/machine.hpp"

#include <algorithm>
#include <utility>

#include "host/memory_copy.hpp"
#include "kernel/check.hpp"
#include "machine/peer_queues.hpp"
#include "machine/validate.hpp"
#include "network/make_network.hpp"
#include "network/topology/cube.hpp"
#include "nic/card_set.hpp"
#include "nic/placement.hpp"

namespace apenet {

namespace {

enum class Step : std::uint64_t { doorbell, credit, copy_begins, copy_done, give_back };

constexpr std::uint64_t code(Step step) {
  return static_cast<std::uint64_t>(step);
}

bool is_wormhole_by_packets(const NetworkDescription& network) {
  return network.engine == NetworkDescription::Engine::packet &&
         network.switching == NetworkDescription::Switching::wormhole;
}

}  // namespace

struct Machine::Parts final : private EventHandler {
  Parts(Simulation& simulation_, const MachineDescription& description_, std::vector<NodeId> node_of_process);

  void post(Time when, const Descriptor& descriptor);
  void give_back(Time when, ProcessId process);
  void handle_event(const Event& event) override;
  void prepare(const Event& event, Ahead ahead) const override;
  void begin_copy(MessageId id);
  void finish_copy(MessageId id);

  Simulation& simulation;
  MachineDescription description;
  std::uint32_t nodes;
  Placement placement;
  MessageTable messages;
  CardFacts facts;
  PeerQueues queues;
  Time lookahead;
  std::unique_ptr<Network> network;  // null if the card has no network
  std::unique_ptr<CardSet> cards;
  std::vector<MemoryCopy> copies;  // one per node
  std::vector<EventSource>
      process_sources;  // one per process, so that its doorbells and copies keep the order of its posts
  std::vector<EventSource> copy_sources;  // one per node, for the end of a copy
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
      facts(card_facts(description_.nic, description_.host)),
      queues(description_.network.topology, facts.capabilities.peer_queues),
      lookahead(std::min(facts.doorbell_delay, description_.host.local_latency)) {
  for (NodeId node = 0; node < nodes; ++node) {
    copies.emplace_back(description.host);
    copy_sources.push_back({EventKind::host, nodes + node, 0});
  }
  for (ProcessId process = 0; process < placement.process_count(); ++process) {
    process_sources.push_back({EventKind::host, 2 * nodes + process, 0});
  }
  if (kind_of(description.nic).has_network) {
    network = make_network(
        simulation, {.description = description.network,
                     .card_channels = facts.network_channels,
                     .max_packet_wire_bytes = static_cast<std::uint32_t>(facts.max_packet_wire_bytes)});
  }
  cards = make_cards(description.nic, {.simulation = simulation,
                                       .network = network.get(),
                                       .wiring = description.network,
                                       .messages = messages,
                                       .placement = placement,
                                       .host = description.host,
                                       .nodes = nodes});
}

void Machine::Parts::post(Time when, const Descriptor& descriptor) {
  APENET_CHECK(has_sink, "process %u posts before Machine::set_sink", descriptor.source);
  validate(descriptor, facts.capabilities, placement.process_count());
  const bool is_local = placement.node(descriptor.source) == placement.node(descriptor.target);
  const bool is_credit = descriptor.verb == Verb::credit;
  if (is_credit && is_local) return;  // a copy in memory needs no credit
  if (!is_credit) {
    ++message_count;
    payload_bytes += static_cast<std::uint64_t>(descriptor.bytes);
  }
  const Step step = is_credit ? Step::credit : is_local ? Step::copy_begins : Step::doorbell;
  simulation.schedule(process_sources[descriptor.source],
                      when + (is_local ? lookahead : facts.doorbell_delay), *this, code(step),
                      messages.add(descriptor));
}

void Machine::Parts::give_back(Time when, ProcessId process) {
  simulation.schedule(process_sources[process], when + facts.doorbell_delay, *this, code(Step::give_back),
                      process);
}

void Machine::Parts::prepare(const Event& event, Ahead ahead) const {
  if (static_cast<Step>(event.argument_a) != Step::doorbell) return;
  if (ahead == Ahead::far) messages.prepare(static_cast<MessageId>(event.argument_b));
  cards->prepare(placement.node(event.source() - 2 * nodes), ahead);
}

void Machine::Parts::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(event.argument_b);
  switch (static_cast<Step>(event.argument_a)) {
    case Step::doorbell:
      messages.begin(which);
      cards->card(placement.node(event.source() - 2 * nodes)).doorbell(which);
      break;
    case Step::credit: {
      const Descriptor credit = messages.take(which);
      cards->card(placement.node(credit.source)).credit(credit);
      break;
    }
    case Step::copy_begins:
      begin_copy(which);
      break;
    case Step::copy_done:
      finish_copy(which);
      break;
    case Step::give_back:
      cards->card(placement.node(which)).give_back(which);
      break;
  }
}

// For every verb, the running process copies from one memory to the other through a shared segment. The event
// comes one lookahead after the post, so that copies queue in the order of their posts. The copy began at the
// post.
void Machine::Parts::begin_copy(MessageId id) {
  messages.begin(id);
  const Descriptor& descriptor = messages.descriptor(id);
  const NodeId node = placement.node(descriptor.source);
  ++local_messages;
  local_bytes += static_cast<std::uint64_t>(descriptor.bytes);
  const Time posted = simulation.now() - lookahead;
  const Time copied = copies[node].reserve(posted, descriptor.bytes);
  simulation.schedule(copy_sources[node], copied + description.host.local_latency, *this,
                      code(Step::copy_done), id);
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

void Machine::give_back(Time when, ProcessId process) {
  parts_->give_back(when, process);
}

void Machine::begin(Time zero) {
  if (parts_->network) parts_->network->begin(zero);
}

void Machine::fill_receive_rings() {
  parts_->cards->fill_receive_rings();
}

FaultUse Machine::fault_use() const {
  return parts_->network ? parts_->network->fault_use() : FaultUse{};
}

bool Machine::is_quiet_until_faults(std::size_t pending_events) const {
  return parts_->network && parts_->network->is_quiet_until_faults(pending_events);
}

void Machine::run_to_end() {
  if (parts_->description.network.faults.empty()) {
    parts_->simulation.run();
    return;
  }
  for (std::size_t left = parts_->simulation.pending_count(); left > 0 && !is_quiet_until_faults(left);
       left = parts_->simulation.pending_count()) {
    parts_->simulation.step();
  }
}

std::uint16_t Machine::channel_between(ProcessId source, ProcessId target) const {
  if (std::max(source, target) >= process_count()) return 0;
  return parts_->queues.queue(parts_->placement.node(source), parts_->placement.node(target));
}

Time Machine::lookahead() const {
  return parts_->lookahead;
}

const NicCapabilities& Machine::capabilities() const {
  return parts_->facts.capabilities;
}

SendTimes Machine::send_times(std::int64_t bytes, Time packet_interval) const {
  return parts_->cards->send_times(bytes, packet_interval);
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

std::uint64_t Machine::link_crossings() const {
  return parts_->network ? parts_->network->link_crossings() : 0;
}

std::vector<std::uint32_t> Machine::coordinates(NodeId node) const {
  std::vector<std::uint32_t> dims = parts_->description.network.topology.dims();
  return dims.empty() ? std::vector<std::uint32_t>{node} : CubeShape(std::move(dims)).coordinates(node);
}

std::vector<Counter> Machine::counters() const {
  const ReorderUse reorder = parts_->network ? parts_->network->reorder_use() : ReorderUse{};
  std::vector<Counter> counters = {{"messages", parts_->message_count},
                                   {"payload_bytes", parts_->payload_bytes},
                                   {"local_messages", parts_->local_messages},
                                   {"local_bytes", parts_->local_bytes}};
  parts_->cards->count(counters);
  if (reorder.held_packets > 0) {
    counters.push_back({"packets_reordered", reorder.held_packets});
    counters.push_back({"reorder_peak_bytes", static_cast<std::uint64_t>(reorder.peak_bytes)});
  }
  return counters;
}

std::vector<std::string> Machine::warnings() const {
  std::vector<std::string> warnings;
  if (parts_->network) warnings = parts_->network->warnings();
  if (parts_->network && is_wormhole_by_packets(parts_->description.network)) {
    warnings.emplace_back(
        "the packet engine runs router.switching = wormhole as virtual cut-through, with buffers of at least "
        "a "
        "packet: the flit engine (--engine flit) runs it as described");
  }
  parts_->cards->warn(warnings);
  return warnings;
}

}  // namespace apenet
