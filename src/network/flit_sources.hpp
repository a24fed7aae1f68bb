// FlitSources: the injection ports of all nodes, from the cards' FIFOs into the routers, flit by flit.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit_fabric.hpp"

namespace apenet {

// A node's injection port carries one packet at a time, a flit a cycle (or FlitTiming::local.flit_cycles).
// FIFOs of the card's channels take turns, packet by packet. A header needs a virtual channel of the router's
// local input that no packet is being sent to, and a credit there; of several, the one behind that taken
// last.
class FlitSources {
 public:
  // A packet whose tail has left its FIFO.
  struct Sent {
    NodeId node = 0;
    std::uint16_t channel = 0;
    std::uint32_t wire_bytes = 0;
  };

  // entries: per node, the port as the router's neighbour would see it.
  FlitSources(FlitFabric& fabric, std::vector<FlitPort> entries, std::uint32_t card_channels, bool is_lane);

  // A packet whose header can leave from `start` on, and whose last flit not before `tail`.
  void add(std::uint32_t packet, FlitCycle start, FlitCycle tail);

  // What happened in a cycle.
  struct Events {
    std::vector<std::uint32_t> entered;  // packets whose header left, and had to wait for it
    std::vector<Sent> sent;
  };

  // One cycle of every port that has something to send.
  void tick(FlitCycle cycle, Events& events);

  // No port has sent, or waits for a time to come: until a credit or a packet arrives, nothing will.
  [[nodiscard]] bool is_at_rest() const { return !has_moved_; }
  template <typename Visit>
  void for_each_entry(Visit visit) {
    for (FlitPort& entry : entries_) visit(entry);
  }

 private:
  static constexpr std::uint32_t none = FlitPacket::none;
  struct Fifo {
    std::uint32_t head = none;
    std::uint32_t tail = none;
  };
  struct Port {
    FlitCycle free_at = 0;             // first cycle of the next flit
    std::uint64_t idle = 0;            // virtual channels that no packet is being sent to
    std::uint64_t has_credit = 0;      // virtual channels
    std::uint32_t packet = none;       // on its way into the router
    std::uint32_t sent = 0;            // flits of it
    std::uint32_t waiting = 0;         // packets in the FIFOs
    std::uint16_t card_channel = 0;    // served last
    std::uint8_t virtual_channel = 0;  // taken last
  };

  void take_credits(FlitCycle cycle);
  void begin_packet(NodeId node, Port& port, FlitCycle cycle, Events& events);
  void go_on(NodeId node, Port& port, FlitCycle cycle, Events& events);
  [[nodiscard]] std::uint64_t usable(NodeId node, const Port& port, std::uint32_t packet) const;
  void send_flit(NodeId node, Port& port, Flit flit, FlitCycle cycle);

  FlitFabric& fabric_;
  std::uint32_t card_channels_;
  bool is_lane_;
  bool has_moved_ = false;
  std::vector<Port> ports_;             // per node
  std::vector<Fifo> fifos_;             // per node and card channel
  std::vector<std::uint16_t> credits_;  // per node and virtual channel
  std::vector<std::uint64_t> active_;   // a bit each node: a packet waits or is being sent
  std::vector<FlitPort> entries_;       // per node: its wires into the router
};

}  // namespace apenet
