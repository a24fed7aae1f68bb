// PacketEngine: construction of its flat arrays from a topology, statistics, warnings.
#include <algorithm>
#include <string>
#include <utility>

#include "network/packet/engine.hpp"

namespace apenet {
namespace {

constexpr std::uint8_t every_vc = 0xff;

}  // namespace

PacketEngine::PacketEngine(Simulation& simulation, const Topology& topology,
                           std::unique_ptr<const Routing> routing, const NetworkParameters& parameters)
    : simulation_(simulation),
      own_routing_(std::move(routing)),
      is_by_age_(parameters.description.arbitration == NetworkDescription::Arbitration::age),
      keeps_numbers_(is_by_age_),
      order_of_rail_(std::uint64_t{parameters.rail} << 8U),
      rail_(parameters.rail),
      layout_(topology, parameters.description.virtual_channels, parameters.card_channels),
      max_packet_wire_bytes_(parameters.max_packet_wire_bytes),
      router_latency_(parameters.description.router_latency),
      credit_latency_(parameters.description.credit_latency),
      buffer_bytes_(
          std::max<std::int64_t>(parameters.description.buffer_bytes, parameters.max_packet_wire_bytes)),
      injection_buffer_bytes_(parameters.description.injection_buffer_bytes),
      ejection_buffer_bytes_(parameters.description.ejection_buffer_bytes),
      waiting_(std::size_t{layout_.routers} * layout_.ports + topology.endpoint_count(),
               std::max(layout_.ports * layout_.virtual_channels, layout_.card_channels)),
      wormhole_(parameters.description),
      is_wormhole_(wormhole_.is_on()),
      takes_any_lane_(parameters.description.channel_selection == NetworkDescription::ChannelSelection::any),
      trust_(parameters) {
  wire(topology, parameters);
  use_routing(*own_routing_);
}

void PacketEngine::use_routing(const Routing& routing) {
  routing_ = &routing;
  dimension_order_ = dynamic_cast<const DimensionOrderRouting*>(routing_);
  is_memoryless_ = routing_->is_memoryless();
  waypoint_count_ = routing_->waypoint_count();
  classes_ = ChannelClasses(layout_.virtual_channels, routing_->class_count());
  takes_care_ = gate_ != nullptr || dimension_order_ == nullptr;
  if (dimension_order_ == nullptr) return;
  for (Output& output : outputs_) output.next_place = dimension_order_->place_of(output.next_router);
}

void PacketEngine::wire(const Topology& topology, const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  for (const LinkDescription& link : description.links) {
    stages_.push_back({StageKind::link, link.bit_error_rate > 0, Serialisation(link.rate), link.latency,
                       link.latency + router_latency_, router_latency_, link.bit_error_rate,
                       credit_latency_});
  }
  const Serialisation local(description.local_rate);
  stages_.push_back({StageKind::ejection, false, local, description.local_latency, description.local_latency,
                     router_latency_, 0, credit_latency_});
  stages_.push_back({StageKind::injection, false, local, description.local_latency,
                     description.local_latency + router_latency_, Time::zero(), 0, Time::zero()});
  queues_.resize(std::size_t{layout_.first_ejection_buffer} + topology.endpoint_count());
  const bool has_errors = std::any_of(description.links.begin(), description.links.end(),
                                      [](const LinkDescription& link) { return link.bit_error_rate > 0; });
  if (has_errors) {
    errors_ = std::make_unique<BitErrors>(simulation_.seed(), std::size_t{layout_.routers} * layout_.ports);
  }
  outputs_.resize(static_cast<std::size_t>(layout_.routers) * layout_.ports + topology.endpoint_count());
  free_at_.resize(outputs_.size());
  upstream_.resize(static_cast<std::size_t>(layout_.routers) * layout_.ports);
  clients_.resize(topology.endpoint_count());
  ejection_outputs_.resize(topology.endpoint_count());
  for (std::uint32_t queue = 0; queue < layout_.first_injection_queue; ++queue) {
    queues_[queue].room_bytes = static_cast<std::int32_t>(buffer_bytes_);
  }
  router_names_.reserve(layout_.routers);
  port_names_ = topology.port_names();
  for (RouterId router = 0; router < layout_.routers; ++router) {
    router_names_.push_back(topology.router_name(router));
    wire_router(topology, router);
  }
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) wire_endpoint(topology, node);
}

void PacketEngine::wire_router(const Topology& topology, RouterId router) {
  for (std::uint32_t port = 0; port < layout_.ports; ++port) {
    const PortRef next = topology.neighbour({router, port});
    if (!next.is_connected()) continue;
    const std::uint32_t output_index = router * layout_.ports + port;
    Output& output = outputs_[output_index];
    output.first_queue = layout_.first_queue(router);
    output.next_router = next.router;
    output.vc_mask = every_vc;
    output.stage = static_cast<std::uint8_t>(topology.link_class({router, port}));
    output.first_buffer = (next.router * layout_.ports + next.port) * layout_.virtual_channels;
    upstream_[next.router * layout_.ports + next.port] = output_index;
    links_.push_back(output_index);
  }
}

void PacketEngine::wire_endpoint(const Topology& topology, NodeId node) {
  const PortRef attachment = topology.attachment(node);
  const std::uint32_t ejection_output = attachment.router * layout_.ports + attachment.port;
  ejection_outputs_[node] = ejection_output;
  const std::uint32_t injection_output = layout_.injection_output(node);

  Output& ejection = outputs_[ejection_output];
  ejection.first_queue = layout_.first_queue(attachment.router);
  ejection.next_router = attachment.router;
  ejection.stage = static_cast<std::uint8_t>(stages_.size() - 2);
  ejection.first_buffer = layout_.first_ejection_buffer + node;
  queues_[ejection.first_buffer].room_bytes = static_cast<std::int32_t>(ejection_buffer_bytes_);

  Output& injection = outputs_[injection_output];
  injection.first_queue = layout_.first_queue(layout_.routers + node);
  injection.next_router = attachment.router;
  injection.vc_mask = every_vc;
  injection.stage = static_cast<std::uint8_t>(stages_.size() - 1);
  injection.first_buffer = ejection_output * layout_.virtual_channels;
  upstream_[ejection_output] = injection_output;
  for (std::uint32_t channel = 0; channel < layout_.card_channels; ++channel) {
    Queue& queue = queues_[injection.first_queue + channel];
    queue.room_bytes = static_cast<std::int32_t>(injection_buffer_bytes_);
  }
}

void PacketEngine::attach(NodeId node, NetworkClient& client) {
  clients_.at(node) = &client;
}

std::vector<std::string> PacketEngine::warnings() const {
  packet::Congestion congestion{.now = simulation_.now(), .ports_only = ports_only_};
  for (const Output& output : outputs_) {
    const Stage& stage = stages_[output.stage];
    const Time use = trust_.use(output.stage, output.busy, output.packets, output.wire_bytes);
    congestion.busiest = std::max(congestion.busiest, use);
    const Time unseen =
        packet::Trust::waiting(use, congestion.now) - packet::Trust::waiting(output.busy, congestion.now);
    congestion.moving += stage.header_latency * static_cast<std::int64_t>(output.packets);
    if (stage.kind == StageKind::ejection) {
      congestion.ejecting += output.busy;
      congestion.unseen_at_ports += unseen;
    } else {
      congestion.unseen_at_links += unseen;
    }
  }
  congestion.moving += congestion.ejecting;
  for (const Stage& stage : stages_) congestion.waiting += stage.waited;
  return trust_.warnings(congestion);
}

bool PacketEngine::list_rest(NodeId source, NodeId destination, RestState& state) {
  if (dimension_order_ == nullptr || takes_care_ || keeps_numbers_ || is_wormhole_ || takes_any_lane_ ||
      errors_ != nullptr) {
    return false;
  }
  list_way(source, destination, state);
  list_way(destination, source, state);
  state.total(ports_only_);
  for (Stage& stage : stages_) {
    state.total(stage.waited);
    state.rest_after(stage.credit_latency);
  }
  return true;
}

void PacketEngine::list_way(NodeId source, NodeId destination, RestState& state) {
  for (std::uint32_t at = layout_.injection_output(source);;) {
    Output& output = outputs_[at];
    state.total(output.busy);
    state.total(output.packets);
    state.total(output.wire_bytes);
    state.choice(output.last_granted);
    if (stages_[output.stage].kind == StageKind::ejection) return;
    at =
        output.next_router * layout_.ports + dimension_order_->step_from(output.next_place, destination).port;
  }
}

LinkStatistics PacketEngine::link_statistics(std::uint32_t link) const {
  const std::uint32_t number = links_.at(link);
  const Output& output = outputs_[number];
  const BitErrors::Link errors = errors_ ? errors_->link(number) : BitErrors::Link{};
  return {router_names_[number / layout_.ports] + port_names_[number % layout_.ports],
          output.packets,
          output.wire_bytes,
          output.busy,
          errors.corrupted,
          errors.retransmitted_bytes};
}

std::uint64_t PacketEngine::link_crossings() const {
  std::uint64_t packets = 0;
  for (const std::uint32_t output : links_) packets += outputs_[output].packets;
  return packets;
}

}  // namespace apenet
