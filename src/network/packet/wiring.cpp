// PacketEngine: construction of its flat arrays from a topology, statistics, warnings.
#include <algorithm>
#include <string>
#include <utility>

#include "network/packet/engine.hpp"

namespace apenet {
namespace {

constexpr std::uint8_t every_vc = 0xff;

}  // namespace

PacketEngine::Spec PacketEngine::spec_of(const Topology& topology, const NetworkParameters& parameters) {
  const NetworkDescription& network = parameters.description;
  const bool is_by_age = network.arbitration == NetworkDescription::Arbitration::age;
  Spec spec{
      .is_by_age = is_by_age,
      .keeps_numbers = is_by_age,
      .takes_any_lane = network.channel_selection == NetworkDescription::ChannelSelection::any,
      .rail = parameters.rail,
      .order_of_rail = std::uint64_t{parameters.rail} << 8U,
      .layout = PacketLayout(topology, parameters),
      .max_packet_wire_bytes = parameters.max_packet_wire_bytes,
      .router_latency = network.router_latency,
      .credit_latency = network.credit_latency,
      .buffer_bytes = std::max<std::int64_t>(network.buffer_bytes, parameters.max_packet_wire_bytes),
      .injection_buffer_bytes = network.injection_buffer_bytes,
      .ejection_buffer_bytes = network.ejection_buffer_bytes,
      .wormhole = packet::Wormhole(network),
      .upstream = {},
      .ejection_outputs = {},
      .ejection_ports = EjectionPorts(network, parameters.card_channels),
      .links = {},
      .router_names = {},
      .port_names = {},
  };
  spec.is_wormhole = spec.wormhole.is_on();
  return spec;
}

PacketEngine::PacketEngine(Simulation& simulation, const Topology& topology,
                           std::unique_ptr<const Routing> routing, const NetworkParameters& parameters)
    : simulation_(simulation),
      own_routing_(std::move(routing)),
      spec_(spec_of(topology, parameters)),
      waiting_(std::size_t{spec_.layout.routers} * spec_.layout.ports + spec_.layout.injection_outputs(),
               std::max(spec_.layout.ports * spec_.layout.virtual_channels, spec_.layout.card_channels)),
      envelope_(parameters) {
  wire(topology, parameters);
  use_routing(*own_routing_);
}

void PacketEngine::use_routing(const Routing& routing) {
  state_.control.routing = &routing;
  memo_.dimension_order = dynamic_cast<const DimensionOrderRouting*>(state_.control.routing);
  memo_.plain_order = spec_.layout.has_several_ports ? nullptr : memo_.dimension_order;
  memo_.is_memoryless = state_.control.routing->is_memoryless();
  memo_.waypoint_count = state_.control.routing->waypoint_count();
  memo_.classes = ChannelClasses(spec_.layout.virtual_channels, state_.control.routing->class_count());
  const std::uint32_t bubble_class = routing.bubble_class();
  memo_.ring_channels = bubble_class == Routing::no_class ? 0 : memo_.classes.mask(bubble_class);
  memo_.finds_with_care = spec_.takes_any_lane || memo_.ring_channels != 0;
  memo_.is_adaptive = state_.control.gate != nullptr || memo_.dimension_order == nullptr;
  if (memo_.dimension_order == nullptr) return;
  for (Output& output : outputs_)
    output.spec.next_place = memo_.dimension_order->place_of(output.spec.next_router);
}

void PacketEngine::wire(const Topology& topology, const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  const auto add_stage = [this](const Stage::Spec& stage) { stages_.push_back({stage, {}, {}}); };
  for (const LinkDescription& link : description.links) {
    add_stage({StageKind::link, link.bit_error_rate > 0, Serialisation(link.rate), link.latency,
               link.latency + spec_.router_latency, spec_.router_latency, link.bit_error_rate,
               spec_.credit_latency});
  }
  const Serialisation local(description.local_rate);
  add_stage({StageKind::ejection, false, local, description.local_latency, description.local_latency,
             spec_.router_latency, 0, spec_.credit_latency});
  add_stage({StageKind::injection, false, local, description.local_latency,
             description.local_latency + spec_.router_latency, Time::zero(), 0, Time::zero()});
  state_.queues.resize(std::size_t{spec_.layout.first_ejection_buffer} +
                       std::size_t{topology.endpoint_count()} * spec_.layout.ejection_ports);
  const bool has_errors = std::any_of(description.links.begin(), description.links.end(),
                                      [](const LinkDescription& link) { return link.bit_error_rate > 0; });
  if (has_errors) {
    errors_ = std::make_unique<BitErrors>(simulation_.seed(),
                                          std::size_t{spec_.layout.routers} * spec_.layout.ports);
  }
  outputs_.resize(static_cast<std::size_t>(spec_.layout.routers) * spec_.layout.ports +
                  spec_.layout.injection_outputs());
  state_.free_at.resize(outputs_.size());
  spec_.upstream.resize(static_cast<std::size_t>(spec_.layout.routers) * spec_.layout.ports);
  clients_.resize(topology.endpoint_count());
  spec_.ejection_outputs.resize(topology.endpoint_count());
  for (std::uint32_t queue = 0; queue < spec_.layout.first_injection_queue; ++queue) {
    state_.queues[queue].room_bytes = static_cast<std::int32_t>(spec_.buffer_bytes);
  }
  spec_.router_names.reserve(spec_.layout.routers);
  spec_.port_names = topology.port_names();
  for (RouterId router = 0; router < spec_.layout.routers; ++router) {
    spec_.router_names.push_back(topology.router_name(router));
    wire_router(topology, router);
  }
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) wire_endpoint(topology, node);
}

void PacketEngine::wire_router(const Topology& topology, RouterId router) {
  for (std::uint32_t port = 0; port < spec_.layout.ports; ++port) {
    const PortRef next = topology.neighbour({router, port});
    if (!next.is_connected()) continue;
    const std::uint32_t output_index = router * spec_.layout.ports + port;
    Output& output = outputs_[output_index];
    output.spec.first_queue = spec_.layout.first_queue(router);
    output.spec.next_router = next.router;
    output.spec.vc_mask = every_vc;
    output.spec.stage = static_cast<std::uint8_t>(topology.link_class({router, port}));
    output.spec.first_buffer = (next.router * spec_.layout.ports + next.port) * spec_.layout.virtual_channels;
    spec_.upstream[next.router * spec_.layout.ports + next.port] = output_index;
    spec_.links.push_back(output_index);
  }
}

void PacketEngine::wire_endpoint(const Topology& topology, NodeId node) {
  const PortRef attachment = topology.attachment(node);
  const std::uint32_t first_output = attachment.router * spec_.layout.ports + attachment.port;
  spec_.ejection_outputs[node] = first_output;
  for (std::uint32_t number = 0; number < spec_.layout.ejection_ports; ++number) {
    Output& ejection = outputs_[first_output + number];
    ejection.spec.first_queue = spec_.layout.first_queue(attachment.router);
    ejection.spec.next_router = attachment.router;
    ejection.spec.stage = static_cast<std::uint8_t>(stages_.size() - 2);
    ejection.spec.first_buffer = spec_.layout.ejection_buffer(node, number);
    state_.queues[ejection.spec.first_buffer].room_bytes =
        static_cast<std::int32_t>(spec_.ejection_buffer_bytes);
  }
  for (std::uint32_t number = 0; number < spec_.layout.injection_ports; ++number)
    wire_injection(node, number, {attachment.router, attachment.port + number});
}

void PacketEngine::wire_injection(NodeId node, std::uint32_t number, PortRef port) {
  const auto first_channel = static_cast<std::uint16_t>(number * spec_.layout.card_channels);
  const std::uint32_t injection_output = spec_.layout.injection_output(node, first_channel);
  const std::uint32_t input = port.router * spec_.layout.ports + port.port;
  Output& injection = outputs_[injection_output];
  injection.spec.first_queue = spec_.layout.injection_queue(node, first_channel);
  injection.spec.next_router = port.router;
  injection.spec.vc_mask = every_vc;
  injection.spec.stage = static_cast<std::uint8_t>(stages_.size() - 1);
  injection.spec.first_buffer = input * spec_.layout.virtual_channels;
  spec_.upstream[input] = injection_output;
  for (std::uint32_t channel = 0; channel < spec_.layout.card_channels; ++channel) {
    Queue& queue = state_.queues[injection.spec.first_queue + channel];
    queue.room_bytes = static_cast<std::int32_t>(spec_.injection_buffer_bytes);
  }
}

void PacketEngine::attach(NodeId node, NetworkClient& client) {
  clients_.at(node) = &client;
}

std::vector<std::string> PacketEngine::warnings() const {
  packet::Congestion congestion{.now = simulation_.now(), .ports_only = counters_.ports_only};
  for (const Output& output : outputs_) {
    const Stage& stage = stages_[output.spec.stage];
    const Time use = envelope_.use(output.spec.stage, output.counters.busy, output.counters.packets,
                                   output.counters.wire_bytes);
    congestion.busiest = std::max(congestion.busiest, use);
    const Time unseen = packet::AccuracyEnvelope::waiting(use, congestion.now) -
                        packet::AccuracyEnvelope::waiting(output.counters.busy, congestion.now);
    congestion.moving += stage.spec.header_latency * static_cast<std::int64_t>(output.counters.packets);
    if (stage.spec.kind == StageKind::ejection) {
      congestion.ejecting += output.counters.busy;
      congestion.unseen_at_ports += unseen;
    } else {
      congestion.unseen_at_links += unseen;
    }
  }
  congestion.moving += congestion.ejecting;
  for (const Stage& stage : stages_) congestion.waiting += stage.counters.waited;
  return envelope_.warnings(congestion);
}

bool PacketEngine::list_state(NodeId source, NodeId destination, StateList& list) {
  if (memo_.plain_order == nullptr || memo_.is_adaptive || spec_.keeps_numbers || spec_.is_wormhole ||
      spec_.takes_any_lane || errors_ != nullptr) {
    return false;
  }
  list.state(state_.control);
  list_way(source, destination, list);
  list_way(destination, source, list);
  list.counters(counters_);
  for (Stage& stage : stages_) {
    list.counters(stage.counters);
    list.reach(stage.spec.credit_latency);
  }
  return true;
}

// The outputs from one node to the other, and the queues that packets enter on the way.
void PacketEngine::list_way(NodeId source, NodeId destination, StateList& list) {
  for (std::uint32_t channel = 0; channel < spec_.layout.fifos; ++channel)
    list.state(state_.queues[spec_.layout.first_queue(spec_.layout.routers + source) + channel]);
  for (std::uint32_t at = spec_.layout.injection_output(source, 0);;) {
    Output& output = outputs_[at];
    list.counters(output.counters);
    list.state(output.state);
    list.state(state_.free_at[at]);
    const bool is_last = stages_[output.spec.stage].spec.kind == StageKind::ejection;
    const std::uint32_t buffers = is_last ? 1 : spec_.layout.virtual_channels;
    for (std::uint32_t vc = 0; vc < buffers; ++vc) list.state(state_.queues[output.spec.first_buffer + vc]);
    if (is_last) return;
    at = output.spec.next_router * spec_.layout.ports +
         memo_.dimension_order->step_from(output.spec.next_place, destination).port;
  }
}

LinkStatistics PacketEngine::link_statistics(std::uint32_t link) const {
  const std::uint32_t number = spec_.links.at(link);
  const Output& output = outputs_[number];
  const BitErrors::Counters errors = errors_ ? errors_->link(number) : BitErrors::Counters{};
  return {spec_.router_names[number / spec_.layout.ports] + spec_.port_names[number % spec_.layout.ports],
          output.counters.packets,
          output.counters.wire_bytes,
          output.counters.busy,
          errors.corrupted,
          errors.retransmitted_bytes};
}

std::vector<PortUse> PacketEngine::port_use() const {
  std::vector<PortUse> use(3);
  use[static_cast<std::size_t>(StageKind::link)].name = "links";
  use[static_cast<std::size_t>(StageKind::ejection)].name = "ports to cards";
  use[static_cast<std::size_t>(StageKind::injection)].name = "ports from cards";
  for (PortUse& kind : use) kind.waited = Time::zero();
  for (const Stage& stage : stages_)
    use[static_cast<std::size_t>(stage.spec.kind)].waited += stage.counters.waited;
  for (const Output& output : outputs_) {
    PortUse& kind = use[static_cast<std::size_t>(stages_[output.spec.stage].spec.kind)];
    kind.busy.push_back(output.counters.busy);
    kind.packets += output.counters.packets;
  }
  return use;
}

std::uint64_t PacketEngine::link_crossings() const {
  std::uint64_t packets = 0;
  for (const std::uint32_t output : spec_.links) packets += outputs_[output].counters.packets;
  return packets;
}

}  // namespace apenet
