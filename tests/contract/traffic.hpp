// Traffic: cards that only send and receive packets, for tests of networks.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "kernel/random.hpp"
#include "kernel/simulation.hpp"
#include "network/make_network.hpp"
#include "network/network.hpp"

namespace apenet::testing {

struct Arrival {
  Packet packet;
  Time head_time;
  Time tail_time;
};

// One node: per channel a list of packets, which are injected as room allows. Arriving packets are consumed
// `consume_delay` later.
class TrafficNode final : public NetworkClient, private EventHandler {
 public:
  TrafficNode(Simulation& simulation, Network& network, NodeId node, std::uint32_t channels,
              Time consume_delay, Time dma_time);
  // Appends to the list of the packet's channel. The packet is injected when it is first in the list and has
  // room.
  void offer(const Packet& packet);
  // While held, the node consumes nothing.
  void hold_consumption(bool is_held);

  void packet_arrived(const Packet& packet, Time head_time) override;
  void injection_freed(std::uint16_t channel) override;

  [[nodiscard]] const std::vector<Arrival>& arrivals() const { return arrivals_; }
  [[nodiscard]] bool has_sent_all() const;

 private:
  void handle_event(const Event& event) override;
  void pump(std::uint16_t channel);

  Simulation& simulation_;
  Network& network_;
  NodeId node_;
  Time consume_delay_;
  Time dma_time_;  // from a packet's header in the injection buffer until its tail is there
  EventSource source_;
  bool is_held_ = false;
  std::vector<std::deque<Packet>> to_send_;  // per channel
  std::vector<bool> is_room_awaited_;        // per channel
  std::deque<Packet> to_consume_;
  std::vector<Arrival> arrivals_;
};

// A network with a TrafficNode on every node, and checks of the properties that every engine must have.
class Traffic {
 public:
  Traffic(const NetworkParameters& parameters, Time consume_delay = Time::zero(),
          Time dma_time = Time::zero());
  // On a network that the caller makes.
  Traffic(const std::function<std::unique_ptr<Network>(Simulation&)>& make, std::uint32_t fifos_of_node,
          Time consume_delay = Time::zero(), Time dma_time = Time::zero());

  [[nodiscard]] Simulation& simulation() { return simulation_; }
  [[nodiscard]] Network& network() { return *network_; }
  [[nodiscard]] TrafficNode& node(NodeId node) { return *nodes_[node]; }
  [[nodiscard]] std::uint64_t trace_hash() const { return hash_.value(); }

  void offer(NodeId source, NodeId destination, std::uint16_t channel, std::uint32_t wire_bytes);
  void run() { simulation_.run(); }
  // Checks that every packet was delivered exactly once, to its destination, in order per (source,
  // destination, channel), and that nothing is left. Reports through GoogleTest.
  void expect_all_delivered() const;

 private:
  Simulation simulation_;
  TraceHash hash_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<TrafficNode>> nodes_;
  std::uint64_t offered_ = 0;
  std::map<std::tuple<NodeId, NodeId, std::uint16_t>, std::uint32_t> sequence_;  // packets offered per flow
};

// Packets of random sizes between random nodes, over random channels.
void offer_random(Traffic& traffic, const NetworkParameters& parameters, RandomStream& random, int packets);

// A small network with round numbers: 1 byte/ns links of 10 ns, routers of 5 ns, buffers of one packet.
[[nodiscard]] NetworkParameters small_network(TopologyDescription topology,
                                              std::uint32_t max_packet_wire_bytes);

}  // namespace apenet::testing
