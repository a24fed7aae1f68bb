#include "machine/machine.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"
#include "kernel/refuse.hpp"
#include "machine/machine_parts.hpp"
#include "machine/validate.hpp"
#include "network/routing/arrangement.hpp"
#include "nic/card_set.hpp"

namespace apenet {

namespace {

enum class Step : std::uint64_t { doorbell, credit, copy_begins, copy_done, give_back };

// argument_a of an event: the step, and the rail in the next byte.
constexpr std::uint64_t code(Step step, std::uint8_t rail = 0) {
  return static_cast<std::uint64_t>(step) | std::uint64_t{rail} << 8U;
}
constexpr Step step_of(const Event& event) {
  return static_cast<Step>(event.argument_a & 0xffU);
}
constexpr std::uint8_t rail_of(const Event& event) {
  return static_cast<std::uint8_t>(event.argument_a >> 8U);
}

}  // namespace

Machine::Parts::Parts(Simulation& simulation_, const MachineDescription& description_,
                      std::uint32_t node_count, Placement placement_, std::uint32_t most_processes_)
    : simulation(simulation_),
      description(description_),
      nodes(node_count),
      first_process((1U + rail_count(description_)) * nodes),
      most_processes(most_processes_),
      placement(std::move(placement_)),
      messages(simulation_),
      lookahead(description_.host.local_latency) {
  for (NodeId node = 0; node < nodes; ++node) {
    copies.emplace_back(description.host);
    state.copy_sources.push_back({EventKind::host, first_process - nodes + node, 0});
  }
  add_sources();
  rails.reserve(rail_count(description));  // cards refer to the description in their Rail, which never moves
  for (std::uint8_t number = 0; number < rail_count(description); ++number) {
    add_rail(number);
    lookahead = std::min(lookahead, rails[number].traits.doorbell_delay);
  }
  // Their events stand for those of the cards, which are silent meanwhile. A message that is told by
  // interrupt is not alone with its cards and the network.
  if (rails.size() == 1 && !rails[0].interrupts)
    timings = std::make_unique<MemoisedTimings>(simulation, messages, rails[0], placement,
                                                EventSource{EventKind::nic, nodes, 0},
                                                [this](Time when, MessageId id) { ring(when, id); });
}

void Machine::Parts::add_sources() {
  for (auto process = static_cast<ProcessId>(state.process_sources.size());
       process < placement.process_count(); ++process)
    state.process_sources.push_back({EventKind::host, first_process + process, 0});
}

void Machine::Parts::add_rail(std::uint8_t number) {
  Rail::Shared shared{.simulation = simulation,
                      .messages = messages,
                      .placement = placement,
                      .nodes = nodes,
                      .first_vector = first_process + (1U + number) * most_processes};
  if (number == 0) {
    rails.emplace_back(number, rail_alone(description, number), shared);
    return;
  }
  if (description.rails[number - 1U].shares_slot) shared.at_bus_of = rails[0].cards.get();
  refuse_within(rail_key(description, number),
                [&] { rails.emplace_back(number, rail_alone(description, number), shared); });
}

void Machine::Parts::post(Time when, const Descriptor& descriptor) {
  APENET_CHECK(has_sink, "process %u posts before Machine::set_sink", descriptor.source);
  require_at_most("descriptor.rail", descriptor.rail, static_cast<std::int64_t>(rails.size()) - 1,
                  ", the last rail");
  const CardTraits& traits = rails[descriptor.rail].traits;
  validate(descriptor, traits.capabilities, placement.process_count());
  const bool is_local = rails[descriptor.rail].goes_through_memory(descriptor.source, descriptor.target);
  const bool is_credit = descriptor.verb == Verb::credit;
  if (is_credit && is_local) return;  // a copy in memory needs no credit
  if (!is_credit) {
    ++counted.messages;
    counted.payload_bytes += static_cast<std::uint64_t>(descriptor.bytes);
  }
  if (!is_local) interrupt(when);
  const MessageId id = messages.add(descriptor);
  EventSource& source = state.process_sources[descriptor.source];
  if (is_local) {
    simulation.schedule(source, when + lookahead, *this, code(Step::copy_begins, descriptor.rail), id);
  } else if (is_credit) {
    simulation.schedule(source, when + traits.doorbell_delay, *this, code(Step::credit, descriptor.rail), id);
  } else if (!timings || !timings->hit(when, descriptor, id)) {
    ring(when, id);
  }
}

// The doorbell of a message posted at `when` reaches the card.
void Machine::Parts::ring(Time when, MessageId id) {
  const Descriptor& descriptor = messages.descriptor(id);
  simulation.schedule(state.process_sources[descriptor.source],
                      when + rails[descriptor.rail].traits.doorbell_delay, *this,
                      code(Step::doorbell, descriptor.rail), id);
}

void Machine::Parts::give_back(Time when, ProcessId process, std::uint8_t rail) {
  interrupt(when);
  simulation.schedule(state.process_sources[process], when + rails[rail].traits.doorbell_delay, *this,
                      code(Step::give_back, rail), process);
}

void Machine::Parts::prepare(const Event& event, Ahead ahead) const {
  if (step_of(event) != Step::doorbell) return;
  if (ahead == Ahead::far) messages.prepare(static_cast<MessageId>(event.argument_b));
  rails[rail_of(event)].cards->prepare(placement.node(event.source() - first_process), ahead);
}

void Machine::Parts::handle_event(const Event& event) {
  const auto which = static_cast<std::uint32_t>(event.argument_b);
  CardSet& cards = *rails[rail_of(event)].cards;
  switch (step_of(event)) {
    case Step::doorbell:
      messages.begin(which);
      cards.card(placement.node(event.source() - first_process)).doorbell(which);
      break;
    case Step::credit: {
      const Descriptor credit = messages.take(which);
      cards.card(placement.node(credit.source)).credit(credit);
      break;
    }
    case Step::copy_begins:
      begin_copy(which);
      break;
    case Step::copy_done:
      finish_copy(which);
      break;
    case Step::give_back:
      cards.card(placement.node(which)).give_back(which);
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
  ++counted.local_messages;
  counted.local_bytes += static_cast<std::uint64_t>(descriptor.bytes);
  const Time posted = simulation.now() - lookahead;
  const Time begins = std::max(posted, copies[node].free_at());
  messages.enter(id, Stage::memory_busy, posted);
  messages.enter(id, Stage::memory_copy, begins);
  const Time copied = copies[node].reserve(posted, descriptor.bytes);
  simulation.schedule(state.copy_sources[node], copied + description.host.local_latency, *this,
                      code(Step::copy_done), id);
}

void Machine::Parts::finish_copy(MessageId id) {
  const Descriptor descriptor = messages.descriptor(id);
  if (descriptor.is_lock) messages.execute(id);
  messages.delivered(id);
  if (wants_served(descriptor)) messages.served(id);
  if (wants_sent(descriptor)) messages.sent(id);
  if (wants_remote_done(descriptor)) messages.remote_done(id);
}

Machine::Machine(Simulation& simulation, const MachineDescription& description,
                 std::vector<NodeId> node_of_process) {
  validate(description, node_of_process);
  const std::uint32_t nodes = count_nodes(description, node_of_process);
  const auto count = static_cast<std::uint32_t>(node_of_process.size());
  parts_ = std::make_unique<Parts>(simulation, description, nodes,
                                   Placement(std::move(node_of_process), nodes), count);
}

Machine::Machine(Simulation& simulation, const MachineDescription& description, ProcessesPerNode most) {
  const auto processes_per_node = static_cast<std::uint32_t>(most);
  if (!description.network.topology.kind().has_routers)
    refuse_value("topology", "without routers", "a machine with a number of nodes, for programs that join");
  std::vector<NodeId> full;
  const std::uint32_t nodes = description.network.topology.node_count();
  for (NodeId node = 0; node < nodes; ++node) full.insert(full.end(), processes_per_node, node);
  validate(description, full);
  parts_ =
      std::make_unique<Parts>(simulation, description, count_nodes(description, full),
                              Placement::without_processes(processes_per_node, nodes), most_added_processes);
}

ProcessId Machine::add_processes(const std::vector<NodeId>& nodes) {
  std::vector<std::uint32_t> taken(parts_->nodes, 0);
  for (const NodeId node : nodes) {
    if (node >= parts_->nodes)
      refuse_value("node", std::to_string(node), "one of the " + std::to_string(parts_->nodes) + " nodes");
    if (++taken[node] > parts_->placement.processes_on(node)) {
      refuse_value("processes on node " + std::to_string(node), std::to_string(taken[node]),
                   "at most " + std::to_string(parts_->placement.processes_on(node)));
    }
  }
  if (nodes.size() > most_added_processes - process_count())
    refuse_value("processes", std::to_string(process_count() + nodes.size()),
                 "at most " + std::to_string(most_added_processes) + " in one simulation");
  const ProcessId first = parts_->placement.add(nodes);
  parts_->add_sources();
  for (const Rail& rail : parts_->rails) {
    if (rail.interrupts) rail.interrupts->add_processes();
  }
  return first;
}

Machine::~Machine() = default;

void Machine::set_sink(CompletionSink& sink) {
  parts_->messages.set_sink(sink);
  parts_->has_sink = true;
}

void Machine::post(Time when, const Descriptor& descriptor) {
  parts_->post(when, descriptor);
}

void Machine::give_back(Time when, ProcessId process, std::uint8_t rail) {
  parts_->give_back(when, process, rail);
}

void Machine::move_every_packet() {
  if (parts_->timings) parts_->timings->stop();
}

void Machine::begin(Time zero) {
  parts_->interrupt(parts_->simulation.now());
  for (const Rail& rail : parts_->rails) {
    if (rail.network) rail.network->begin(zero);
  }
}

void Machine::fill_receive_rings() {
  for (const Rail& rail : parts_->rails) rail.cards->fill_receive_rings();
}

FaultUse Machine::fault_use() const {
  FaultUse all;
  for (const Rail& rail : parts_->rails) {
    if (!rail.network) continue;
    const FaultUse use = rail.network->fault_use();
    all.events += use.events;
    all.reconfigurations += use.reconfigurations;
    all.packets_taken_back += use.packets_taken_back;
    all.corrupted_packets += use.corrupted_packets;
    all.retransmitted_bytes += use.retransmitted_bytes;
  }
  return all;
}

bool Machine::has_faults() const {
  return std::any_of(parts_->rails.begin(), parts_->rails.end(),
                     [](const Rail& rail) { return !rail.description.network.faults.empty(); });
}

// Asks for the packets last, because this takes long and run_to_end() asks before every event.
bool Machine::is_quiet_until_faults(std::size_t pending_events) const {
  if (!has_faults()) return false;
  std::size_t ahead = 0;
  for (const Rail& rail : parts_->rails) {
    if (rail.network) ahead += rail.network->faults_ahead();
  }
  const auto has_packets_at_risk = [](const Rail& rail) {
    return rail.network && rail.network->has_packets_at_risk();
  };
  return ahead == pending_events &&
         std::none_of(parts_->rails.begin(), parts_->rails.end(), has_packets_at_risk);
}

void Machine::run_to_end() {
  if (!has_faults()) {
    parts_->simulation.run();
    return;
  }
  for (std::size_t left = parts_->simulation.pending_count(); left > 0 && !is_quiet_until_faults(left);
       left = parts_->simulation.pending_count()) {
    parts_->simulation.step();
  }
}

ProgrammedRoutes& Machine::routes(std::uint8_t rail) {
  move_every_packet();
  Rail& at = parts_->rails[rail];
  if (!at.network)
    throw RouteRefusal(RouteRefusalKind::unsupported, "this machine has no network of routers");
  if (!at.routes) at.routes = std::make_unique<ProgrammedRoutes>(at.description.network, *at.network);
  return *at.routes;
}

std::uint16_t Machine::channel_between(ProcessId source, ProcessId target, std::uint8_t rail) const {
  if (std::max(source, target) >= process_count() || rail >= parts_->rails.size()) return 0;
  const NicCapabilities& card = parts_->rails[rail].traits.capabilities;
  if (card.needs_credit) return card.ring_channel;
  return parts_->rails[rail].queues.queue(parts_->placement.node(source), parts_->placement.node(target));
}

Time Machine::lookahead() const {
  return parts_->lookahead;
}

const NicCapabilities& Machine::capabilities(std::uint8_t rail) const {
  return parts_->rails[rail].traits.capabilities;
}

std::uint32_t Machine::lanes(std::uint8_t rail) const {
  const Rail& wired = parts_->rails[rail];
  return wired.network == nullptr ? 1 : count_lanes(wired.description.network);
}

SendTimes Machine::send_times(std::int64_t bytes, Time packet_interval, std::uint8_t rail) const {
  return parts_->rails[rail].cards->send_times(bytes, packet_interval);
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

bool Machine::goes_through_memory(ProcessId source, ProcessId target, std::uint8_t rail) const {
  return parts_->rails[rail].goes_through_memory(source, target);
}

void Machine::settle() {
  parts_->interrupt(parts_->simulation.now());
}

}  // namespace apenet
