// PacketEngine: from a topology to flat arrays.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "network/flit_timing.hpp"
#include "network/packet/engine.hpp"

namespace apenet {
namespace {

constexpr std::uint8_t every_vc = 0xff;

bool is_one_lane(const NetworkDescription& network) {
  return network.channel_selection == NetworkDescription::ChannelSelection::lane;
}

// Between the packets of one virtual channel, while the next header's route and channel are found: so long a
// router's output stands idle if a card channel has one lane, less what the link's slower clock hides. This
// engine knows nothing of it.
Time idle_between_packets(const NetworkDescription& network, const DataRate& rate) {
  const RouterPipeline& pipeline = network.pipeline;
  if (pipeline.clock_hz <= 0 || !is_one_lane(network)) return Time::zero();
  const ClockDomain clock{pipeline.clock_hz};
  const std::int64_t cycle_ps = clock.cycles(1).ps();  // rounded up: whole cycles are those nearest
  const std::int64_t flit_cycles = (rate.duration(flit_bytes_of(network)).ps() + cycle_ps / 2) / cycle_ps;
  const std::int64_t stages = pipeline.routing_delay_cycles + pipeline.vc_allocation_delay_cycles;
  return clock.cycles(std::max<std::int64_t>(stages - std::max<std::int64_t>(flit_cycles - 1, 0), 0));
}

// Measured: docs/models/flit-engine.md, "The packet engine under load". Flits of long packets amortise what
// their routers' allocators lose; where packets are short, or spread over several lanes, this engine, which
// knows no flits, is too fast.
double trusted_use(const NetworkParameters& parameters) {
  const NetworkDescription& network = parameters.description;
  if (network.buffer_bytes <= parameters.max_packet_wire_bytes) return 0.1;
  const bool idles = std::any_of(network.links.begin(), network.links.end(), [&](const auto& link) {
    return idle_between_packets(network, link.rate) > Time::zero();
  });
  if (idles) return 0.5;
  constexpr std::uint32_t long_flits = 8;
  const bool is_long = parameters.max_packet_wire_bytes >= long_flits * flit_bytes_of(network);
  return is_long && is_one_lane(network) ? 1 : 0.3;
}

}  // namespace

PacketEngine::PacketEngine(Simulation& simulation, const Topology& topology,
                           std::unique_ptr<const Routing> routing, const NetworkParameters& parameters)
    : simulation_(simulation),
      own_routing_(std::move(routing)),
      router_count_(topology.router_count()),
      ports_(topology.ports_per_router()),
      virtual_channels_(parameters.description.virtual_channels),
      card_channels_(parameters.card_channels),
      max_packet_wire_bytes_(parameters.max_packet_wire_bytes),
      trusted_use_(trusted_use(parameters)),
      flit_slowdown_(flit_slowdown(parameters.description)),
      router_latency_(parameters.description.router_latency),
      credit_latency_(parameters.description.credit_latency),
      buffer_bytes_(parameters.description.buffer_bytes),
      injection_buffer_bytes_(parameters.description.injection_buffer_bytes),
      ejection_buffer_bytes_(parameters.description.ejection_buffer_bytes),
      first_injection_queue_(topology.router_count() * ports_ * virtual_channels_),
      first_ejection_buffer_(first_injection_queue_ + topology.endpoint_count() * card_channels_),
      waiting_words_((std::max(ports_ * virtual_channels_, card_channels_) + 63) / 64) {
  use_routing(*own_routing_);
  wire(topology, parameters);
}

void PacketEngine::use_routing(const Routing& routing) {
  routing_ = &routing;
  dimension_order_ = dynamic_cast<const DimensionOrderRouting*>(routing_);
  is_memoryless_ = routing_->is_memoryless();
  lanes_ = virtual_channels_ / routing_->class_count();
  takes_care_ = gate_ != nullptr || dimension_order_ == nullptr;
}

void PacketEngine::wire(const Topology& topology, const NetworkParameters& parameters) {
  const NetworkDescription& description = parameters.description;
  for (const LinkDescription& link : description.links) {
    stages_.push_back({StageKind::link, link.bit_error_rate > 0, Serialisation(link.rate), link.latency,
                       link.latency + router_latency_, router_latency_, link.bit_error_rate,
                       credit_latency_});
  }
  for (const LinkDescription& link : description.links) {
    idle_between_packets_.push_back(idle_between_packets(description, link.rate));
  }
  idle_between_packets_.push_back(idle_between_packets(description, description.local_rate));
  idle_between_packets_.push_back(Time::zero());  // injection: no router's output
  const Serialisation local(description.local_rate);
  stages_.push_back({StageKind::ejection, false, local, description.local_latency, description.local_latency,
                     router_latency_, 0, credit_latency_});
  stages_.push_back({StageKind::injection, false, local, description.local_latency,
                     description.local_latency + router_latency_, Time::zero(), 0, Time::zero()});
  queues_.resize(std::size_t{first_ejection_buffer_} + topology.endpoint_count());
  const bool has_errors = std::any_of(description.links.begin(), description.links.end(),
                                      [](const LinkDescription& link) { return link.bit_error_rate > 0; });
  if (has_errors) {
    errors_ = std::make_unique<BitErrors>(simulation_.seed(), std::size_t{router_count_} * ports_);
  }
  outputs_.resize(static_cast<std::size_t>(router_count_) * ports_ + topology.endpoint_count());
  free_at_.resize(outputs_.size());
  waiting_more_.resize(outputs_.size() * (waiting_words_ - 1));
  upstream_.resize(static_cast<std::size_t>(router_count_) * ports_);
  clients_.resize(topology.endpoint_count());
  ejection_outputs_.resize(topology.endpoint_count());
  for (std::uint32_t queue = 0; queue < first_injection_queue_; ++queue) {
    queues_[queue].room_bytes = static_cast<std::int32_t>(description.buffer_bytes);
  }
  router_names_.reserve(router_count_);
  port_names_ = topology.port_names();
  for (RouterId router = 0; router < router_count_; ++router) {
    router_names_.push_back(topology.router_name(router));
    wire_router(topology, router);
  }
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) wire_endpoint(topology, node);
}

void PacketEngine::wire_router(const Topology& topology, RouterId router) {
  for (std::uint32_t port = 0; port < ports_; ++port) {
    const PortRef next = topology.neighbour({router, port});
    if (!next.is_connected()) continue;
    const std::uint32_t output_index = router * ports_ + port;
    Output& output = outputs_[output_index];
    output.first_queue = first_queue(router);
    output.next_router = next.router;
    output.next_outputs = next.router * ports_;
    output.vc_mask = every_vc;
    output.stage = static_cast<std::uint8_t>(topology.link_class({router, port}));
    output.first_buffer = (next.router * ports_ + next.port) * virtual_channels_;
    upstream_[next.router * ports_ + next.port] = output_index;
    links_.push_back(output_index);
  }
}

void PacketEngine::wire_endpoint(const Topology& topology, NodeId node) {
  const PortRef attachment = topology.attachment(node);
  const std::uint32_t ejection_output = attachment.router * ports_ + attachment.port;
  ejection_outputs_[node] = ejection_output;
  const std::uint32_t injection_output = router_count_ * ports_ + node;

  Output& ejection = outputs_[ejection_output];
  ejection.first_queue = first_queue(attachment.router);
  ejection.next_router = attachment.router;
  ejection.next_outputs = attachment.router * ports_;
  ejection.stage = static_cast<std::uint8_t>(stages_.size() - 2);
  ejection.first_buffer = first_ejection_buffer_ + node;
  queues_[ejection.first_buffer].room_bytes = static_cast<std::int32_t>(ejection_buffer_bytes_);

  Output& injection = outputs_[injection_output];
  injection.first_queue = first_queue(router_count_ + node);
  injection.next_router = attachment.router;
  injection.next_outputs = attachment.router * ports_;
  injection.vc_mask = every_vc;
  injection.stage = static_cast<std::uint8_t>(stages_.size() - 1);
  injection.first_buffer = ejection_output * virtual_channels_;
  upstream_[ejection_output] = injection_output;
  for (std::uint32_t channel = 0; channel < card_channels_; ++channel) {
    Queue& queue = queues_[injection.first_queue + channel];
    queue.room_bytes = static_cast<std::int32_t>(injection_buffer_bytes_);
  }
}

void PacketEngine::attach(NodeId node, NetworkClient& client) {
  clients_.at(node) = &client;
}

std::vector<std::string> PacketEngine::warnings() const {
  Time busiest;
  for (const Output& output : outputs_) {
    const auto packets = static_cast<std::int64_t>(output.packets);
    busiest = std::max(busiest, output.busy + idle_between_packets_[output.stage] * packets);
  }
  busiest = std::min(busiest, simulation_.now());
  const double use = simulation_.now() == Time::zero()
                         ? 0
                         : static_cast<double>(busiest.ps()) / static_cast<double>(simulation_.now().ps());
  if (use <= trusted_use_) return {};
  const auto percent = [](double share) { return std::to_string(std::lround(100 * share)) + " %"; };
  constexpr double tolerable_slowdown = 1.1;
  const std::string where_to_look =
      flit_slowdown_ <= tolerable_slowdown
          ? " (--engine flit)"
          : ", which is no reference here: its links would be " + percent(flit_slowdown_ - 1) +
                " slower than this machine's, since router.flit_bytes is not what they move in whole cycles";
  return {"the busiest link or port of a router was used " + percent(use) + " of the time: above " +
          percent(trusted_use_) +
          " the packet engine's latencies may deviate by more than 10 % from the flit engine's" +
          where_to_look};
}

LinkStatistics PacketEngine::link_statistics(std::uint32_t link) const {
  const std::uint32_t number = links_.at(link);
  const Output& output = outputs_[number];
  const BitErrors::Link errors = errors_ ? errors_->link(number) : BitErrors::Link{};
  return {router_names_[number / ports_] + port_names_[number % ports_],
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
