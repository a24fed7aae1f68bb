// Resequencer: restores packet order after a routing that does not keep it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/network.hpp"

namespace apenet {

// A network that wraps another one. Packets of one (source, destination, channel) are numbered at injection.
// At the destination, a packet that arrives too early is taken out of the ejection buffer and held until all
// packets before it have arrived. A held packet therefore never blocks the packet it waits for, and cards see
// packets in order, whatever paths they took. The buffer for held packets is assumed unbounded; the capacity
// it would need is counted (ReorderUse).
//
// A packet that arrives in order passes through: it stays in the ejection buffer until the card has consumed
// it. A held packet is passed to the card right after its predecessor, header and tail at the same time.
class Resequencer final : public Network {
 public:
  Resequencer(const Simulation& simulation, std::unique_ptr<Network> network);

  [[nodiscard]] std::uint32_t node_count() const override { return network_->node_count(); }
  void attach(NodeId node, NetworkClient& client) override;
  [[nodiscard]] std::int64_t injection_room(NodeId node, std::uint16_t channel) const override {
    return network_->injection_room(node, channel);
  }
  void await_injection_room(NodeId node, std::uint16_t channel) override {
    network_->await_injection_room(node, channel);
  }
  void prepare(NodeId node, std::uint16_t channel) const override { network_->prepare(node, channel); }
  [[nodiscard]] bool is_empty() const override { return network_->is_empty(); }
  void take_routes(const Routing* routing) override { network_->take_routes(routing); }
  std::int64_t inject(const Packet& packet, Time tail_time) override;
  void consumed(NodeId node, const Packet& packet) override;
  [[nodiscard]] std::uint32_t link_count() const override { return network_->link_count(); }
  [[nodiscard]] LinkStatistics link_statistics(std::uint32_t link) const override {
    return network_->link_statistics(link);
  }
  [[nodiscard]] std::uint64_t link_crossings() const override { return network_->link_crossings(); }
  [[nodiscard]] ReorderUse reorder_use() const override { return use_; }
  [[nodiscard]] std::vector<PortUse> port_use() const override { return network_->port_use(); }
  [[nodiscard]] std::vector<std::string> warnings() const override { return network_->warnings(); }
  void begin(Time zero) override { network_->begin(zero); }
  [[nodiscard]] FaultUse fault_use() const override { return network_->fault_use(); }
  [[nodiscard]] std::size_t faults_ahead() const override { return network_->faults_ahead(); }
  [[nodiscard]] bool has_packets_at_risk() const override { return network_->has_packets_at_risk(); }

  // Identifies a flow: (other node, channel).
  using FlowKey = std::uint64_t;
  static FlowKey flow_key(NodeId other, std::uint16_t channel) {
    return std::uint64_t{other} << 16U | channel;
  }

  struct Arriving {
    std::uint32_t next = 0;                // number of the next packet for the card
    std::map<std::uint32_t, Packet> held;  // by packet number
    // Held packets already passed to the card; they have left the ejection buffer.
    std::unordered_set<std::uint32_t> given_back;
  };

  struct Port final : public NetworkClient {
    void packet_arrived(const Packet& packet, Time head_time) override {
      owner->arrived(*this, packet, head_time);
    }
    void injection_freed(std::uint16_t channel) override { client->injection_freed(channel); }
    void packet_entered(const Packet& packet, Time head_time) override {
      client->packet_entered(packet, head_time);
    }

    Resequencer* owner = nullptr;
    NodeId node = 0;
    NetworkClient* client = nullptr;
    struct State {
      std::unordered_map<FlowKey, std::uint32_t> injected;  // packet counts, by destination and channel
      std::unordered_map<FlowKey, Arriving> arriving;       // by source and channel
      std::int64_t held_bytes = 0;
    };
    State state;
  };

 private:
  void arrived(Port& port, const Packet& packet, Time head_time);
  void hold(Port& port, Arriving& flow, const Packet& packet);
  void give_held(Port& port, Arriving& flow);

  const Simulation& simulation_;
  std::unique_ptr<Network> network_;
  std::vector<Port> ports_;
  ReorderUse use_;
};

}  // namespace apenet
