// FlitSinks: the ejection ports of all nodes, from the routers into the cards' ejection buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// A flit that arrives goes on into the node's ejection buffer at once, and its credit returns, if the buffer
// has room for all of its packet; the header reserves it. Otherwise the packet waits in the port's virtual
// channel, and every later one behind it: packets enter the buffer in the order of their headers.
class FlitSinks {
 public:
  // A packet all of which is in the ejection buffer.
  struct Arrived {
    std::uint32_t packet = 0;
    FlitCycle head = 0;  // the cycle in which its first flit arrived
  };

  // exits: per node, the port as the router's neighbour would see it.
  FlitSinks(FlitFabric& fabric, const std::vector<FlitPort>& exits, std::int64_t buffer_bytes);

  // What arrives in this cycle. arrived: the packets of which it is the tail, in the order of their arrival.
  void tick(FlitCycle cycle, std::vector<Arrived>& arrived);
  // Space is free again. Whether packets wait for it: then they shall be admitted at the next tick.
  [[nodiscard]] bool release(NodeId node, std::uint32_t bytes) {
    Port& port = ports_[node];
    port.room_bytes += bytes;
    APENET_CHECK(port.room_bytes <= buffer_bytes_,
                 "node %u consumed more than arrived: room %lld of %lld bytes", node,
                 static_cast<long long>(port.room_bytes), static_cast<long long>(buffer_bytes_));
    return port.waiting != 0;
  }
  void admit_next(NodeId node) { released_.push_back(node); }
  [[nodiscard]] bool is_at_rest() const { return released_.empty(); }
  template <typename Visit>
  void for_each_exit(Visit visit) {
    for (Port& port : ports_) visit(port.exit);
  }

 private:
  struct Port {
    std::int64_t room_bytes = 0;
    std::uint64_t waiting = 0;  // virtual channels whose packet waits for room
    FlitPort exit;              // its wires back to the router
  };

  void receive(NodeId node, std::uint32_t channel, Flit flit, FlitCycle cycle, std::vector<Arrived>& arrived);
  void admit_waiting(NodeId node, FlitCycle cycle, std::vector<Arrived>& arrived);
  void accept_head(Port& port, std::uint32_t channel, Flit flit, std::uint32_t wire_bytes, FlitCycle cycle,
                   std::vector<Arrived>& arrived);
  void return_credit(const Port& port, std::uint32_t channel);
  void note_head(std::uint32_t packet, FlitCycle cycle);
  void hold(NodeId node, std::uint32_t channel, Flit flit);

  FlitFabric& fabric_;
  std::int64_t buffer_bytes_;
  std::vector<Port> ports_;                       // per node
  std::vector<std::vector<std::uint8_t>> order_;  // per node: channels of Port::waiting, first come first
  std::vector<std::vector<Flit>> held_;           // per node and virtual channel: flits without room
  std::vector<FlitCycle> heads_;                  // per packet of several flits: arrival of the first
  std::vector<NodeId> released_;
};

}  // namespace apenet
