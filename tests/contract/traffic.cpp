#include "contract/traffic.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace apenet::testing {

TrafficNode::TrafficNode(Simulation& simulation, Network& network, NodeId node, std::uint32_t channels,
                         Time consume_delay, Time dma_time)
    : simulation_(simulation),
      network_(network),
      node_(node),
      consume_delay_(consume_delay),
      dma_time_(dma_time),
      source_{EventKind::nic, node, 0},
      to_send_(channels),
      is_room_awaited_(channels) {
  network.attach(node, *this);
}

void TrafficNode::offer(const Packet& packet) {
  to_send_[packet.channel].push_back(packet);
  pump(packet.channel);
}

void TrafficNode::pump(std::uint16_t channel) {
  std::deque<Packet>& list = to_send_[channel];
  while (!list.empty() && list.front().wire_bytes <= network_.injection_room(node_, channel)) {
    const Packet packet = list.front();
    list.pop_front();
    network_.inject(packet, simulation_.now() + dma_time_);
  }
  if (list.empty()) return;
  is_room_awaited_[channel] = true;
  network_.await_injection_room(node_, channel);
}

void TrafficNode::injection_freed(std::uint16_t channel) {
  EXPECT_TRUE(is_room_awaited_[channel]) << "node " << node_ << ", channel " << channel;
  is_room_awaited_[channel] = false;
  pump(channel);
}

void TrafficNode::packet_arrived(const Packet& packet, Time head_time) {
  arrivals_.push_back({packet, head_time, simulation_.now()});
  if (consume_delay_ == Time::zero() && !is_held_) {
    network_.consumed(node_, packet);
    return;
  }
  to_consume_.push_back(packet);
  if (!is_held_) simulation_.schedule(source_, simulation_.now() + consume_delay_, *this);
}

void TrafficNode::hold_consumption(bool is_held) {
  is_held_ = is_held;
  if (is_held) return;
  for (std::size_t i = 0; i < to_consume_.size(); ++i) {
    simulation_.schedule(source_, simulation_.now() + consume_delay_, *this);
  }
}

void TrafficNode::handle_event(const Event& /*event*/) {
  const Packet packet = to_consume_.front();
  to_consume_.pop_front();
  network_.consumed(node_, packet);
}

bool TrafficNode::has_sent_all() const {
  for (const std::deque<Packet>& list : to_send_) {
    if (!list.empty()) return false;
  }
  return true;
}

Traffic::Traffic(const NetworkParameters& parameters, Time consume_delay, Time dma_time)
    : Traffic([&](Simulation& simulation) { return make_network(simulation, parameters); },
              parameters.fifos_of_node(), consume_delay, dma_time) {}

Traffic::Traffic(const std::function<std::unique_ptr<Network>(Simulation&)>& make,
                 std::uint32_t fifos_of_node, Time consume_delay, Time dma_time)
    : network_(make(simulation_)) {
  simulation_.attach_trace(&hash_);
  for (NodeId node = 0; node < network_->node_count(); ++node) {
    nodes_.push_back(
        std::make_unique<TrafficNode>(simulation_, *network_, node, fifos_of_node, consume_delay, dma_time));
  }
}

void Traffic::offer(NodeId source, NodeId destination, std::uint16_t channel, std::uint32_t wire_bytes) {
  Packet packet;
  packet.source = source;
  packet.destination = destination;
  packet.channel = channel;
  packet.wire_bytes = wire_bytes;
  packet.payload_bytes = wire_bytes;
  packet.message = offered_++;
  packet.sequence = sequence_[{source, destination, channel}]++;
  nodes_[source]->offer(packet);
}

void Traffic::expect_all_delivered() const {
  std::uint64_t delivered = 0;
  std::vector<bool> seen(offered_);
  std::map<std::tuple<NodeId, NodeId, std::uint16_t>, std::uint32_t> next;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    EXPECT_TRUE(nodes_[node]->has_sent_all()) << "node " << node << " could not send";
    for (const Arrival& arrival : nodes_[node]->arrivals()) {
      const Packet& packet = arrival.packet;
      EXPECT_EQ(packet.destination, node);
      ASSERT_LT(packet.message, offered_);
      EXPECT_FALSE(seen[packet.message]) << "packet " << packet.message << " arrived twice";
      seen[packet.message] = true;
      const std::uint32_t expected = next[{packet.source, node, packet.channel}]++;
      EXPECT_EQ(packet.sequence, expected)
          << "order from " << packet.source << " to " << node << " on channel " << packet.channel;
      ++delivered;
    }
  }
  EXPECT_EQ(delivered, offered_);
}

NetworkParameters small_network(TopologyDescription topology, std::uint32_t max_packet_wire_bytes) {
  NetworkParameters parameters;
  NetworkDescription& description = parameters.description;
  description.topology = std::move(topology);
  description.links.assign(description.topology.link_classes().size(),
                           {DataRate::bytes_per_second(1'000'000'000), Time::from_ns(10)});
  description.local_rate = DataRate::bytes_per_second(4'000'000'000);
  description.router_latency = Time::from_ns(5);
  description.credit_latency = Time::from_ns(10);
  description.virtual_channels = 2;
  description.buffer_bytes = max_packet_wire_bytes;
  description.injection_buffer_bytes = 4L * max_packet_wire_bytes;
  description.ejection_buffer_bytes = max_packet_wire_bytes;
  parameters.max_packet_wire_bytes = max_packet_wire_bytes;
  return parameters;
}

void offer_random(Traffic& traffic, const NetworkParameters& parameters, RandomStream& random, int packets) {
  const std::uint32_t nodes = traffic.network().node_count();
  for (int i = 0; i < packets; ++i) {
    traffic.offer(static_cast<NodeId>(random.below(nodes)), static_cast<NodeId>(random.below(nodes)),
                  static_cast<std::uint16_t>(random.below(parameters.fifos_of_node())),
                  static_cast<std::uint32_t>(1 + random.below(parameters.max_packet_wire_bytes)));
  }
}

}  // namespace apenet::testing
