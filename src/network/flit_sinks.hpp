// FlitSinks: the ejection ports of all nodes, from the routers into the cards' ejection buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "network/flit_fabric.hpp"

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
  FlitSinks(FlitFabric& fabric, std::vector<FlitPort> exits, std::int64_t buffer_bytes);

  // What arrives in this cycle. arrived: the packets of which it is the tail, in the order of their arrival.
  void tick(FlitCycle cycle, std::vector<Arrived>& arrived);
  // Space is free again; waiting packets go on at the next tick.
  void release(NodeId node, std::uint32_t bytes);
  [[nodiscard]] bool is_at_rest() const { return released_.empty(); }
  [[nodiscard]] std::int64_t room(NodeId node) const { return room_bytes_[node]; }
  template <typename Visit>
  void for_each_exit(Visit visit) {
    for (FlitPort& exit : exits_) visit(exit);
  }

 private:
  void receive(NodeId node, std::uint32_t channel, Flit flit, FlitCycle cycle);
  void admit_waiting(NodeId node, FlitCycle cycle);
  void accept(NodeId node, std::uint32_t channel, Flit flit, FlitCycle cycle);

  FlitFabric& fabric_;
  std::vector<std::int64_t> room_bytes_;          // per node
  std::vector<std::uint64_t> waiting_;            // per node: virtual channels whose packet waits for room
  std::vector<std::vector<std::uint8_t>> order_;  // per node: those channels, first come first
  std::vector<std::vector<Flit>> held_;           // per node and virtual channel: flits without room
  std::vector<FlitCycle> heads_;                  // per packet of several flits: arrival of the first
  std::vector<NodeId> released_;
  std::vector<FlitPort> exits_;              // per node: its wires back to the router
  std::vector<Arrived>* arrived_ = nullptr;  // of the tick that runs
};

}  // namespace apenet
