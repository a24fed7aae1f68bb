#include "network/routing/resequencer.hpp"

#include <algorithm>
#include <utility>

#include "kernel/check.hpp"

namespace apenet {

Resequencer::Resequencer(const Simulation& simulation, std::unique_ptr<Network> network)
    : simulation_(simulation), network_(std::move(network)), ports_(network_->node_count()) {
  for (NodeId node = 0; node < ports_.size(); ++node) {
    ports_[node].owner = this;
    ports_[node].node = node;
    network_->attach(node, ports_[node]);
  }
}

void Resequencer::attach(NodeId node, NetworkClient& client) {
  ports_.at(node).client = &client;
}

std::int64_t Resequencer::inject(const Packet& packet, Time tail_time) {
  Packet numbered = packet;
  numbered.order = ports_[packet.source].state.injected[flow_key(packet.destination, packet.channel)]++;
  return network_->inject(numbered, tail_time);
}

void Resequencer::arrived(Port& port, const Packet& packet, Time head_time) {
  Arriving& flow = port.state.arriving[flow_key(packet.source, packet.channel)];
  APENET_CHECK(packet.order >= flow.next, "packet %u of %u to %u on channel %u arrives twice", packet.order,
               packet.source, packet.destination, packet.channel);
  if (packet.order != flow.next) {
    hold(port, flow, packet);
    return;
  }
  ++flow.next;
  port.client->packet_arrived(packet, head_time);
  give_held(port, flow);
}

void Resequencer::hold(Port& port, Arriving& flow, const Packet& packet) {
  const bool is_new = flow.held.emplace(packet.order, packet).second;
  APENET_CHECK(is_new, "packet %u of %u to %u on channel %u arrives twice", packet.order, packet.source,
               packet.destination, packet.channel);
  ++use_.held_packets;
  port.state.held_bytes += packet.wire_bytes;
  use_.peak_bytes = std::max(use_.peak_bytes, port.state.held_bytes);
  network_->consumed(port.node, packet);
}

void Resequencer::give_held(Port& port, Arriving& flow) {
  while (!flow.held.empty() && flow.held.begin()->first == flow.next) {
    const Packet packet = flow.held.begin()->second;
    flow.held.erase(flow.held.begin());
    port.state.held_bytes -= packet.wire_bytes;
    flow.given_back.insert(packet.order);
    ++flow.next;
    port.client->packet_arrived(packet, simulation_.now());
  }
}

void Resequencer::consumed(NodeId node, const Packet& packet) {
  Arriving& flow = ports_[node].state.arriving[flow_key(packet.source, packet.channel)];
  if (flow.given_back.erase(packet.order) == 0) network_->consumed(node, packet);
}

}  // namespace apenet
