// FlitSinks: the ejection ports of all nodes, numbered by FlitFabric::port_of(). They move flits from the
// routers into the cards' ejection buffers, of which each port has one.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// A header reserves room for its whole packet in the port's ejection buffer. If there is room, each flit
// enters the buffer in the cycle in which it arrives, and its credit returns. Otherwise the packet waits in
// the port's virtual channel, and all later packets wait behind it: packets enter the buffer in the order in
// which their headers reach the front of a virtual channel.
class FlitSinks {
 public:
  // A packet whose last flit has entered the ejection buffer.
  struct Arrived {
    std::uint32_t packet = 0;
    FlitCycle head = 0;  // the cycle in which its first flit entered the buffer
  };

  // exits: per port, the card's end.
  FlitSinks(FlitFabric& fabric, const std::vector<FlitPort>& exits, std::int64_t buffer_bytes);

  // First admits waiting packets of the ports given to admit_next(), then receives the flits that arrive in
  // this cycle. Appends to `arrived` the packets whose tails enter the buffer, in that order.
  void tick(FlitCycle cycle, std::vector<Arrived>& arrived);
  // Frees room. Returns whether packets wait for it: the caller must then call admit_next() and have a tick
  // run.
  [[nodiscard]] bool release(std::uint32_t number, std::uint32_t bytes) {
    Port& port = ports_[number];
    port.state.room_bytes += bytes;
    APENET_CHECK(port.state.room_bytes <= buffer_bytes_,
                 "ejection port %u: more consumed than arrived, room %lld of %lld bytes", number,
                 static_cast<long long>(port.state.room_bytes), static_cast<long long>(buffer_bytes_));
    return port.state.waiting != 0;
  }
  // The next tick admits the port's waiting packets as far as there is room.
  void admit_next(std::uint32_t port) { state_.released.push_back(port); }
  [[nodiscard]] bool is_quiescent() const { return state_.released.empty(); }

  // The packet's header has entered the ejection buffer, its tail has not.
  [[nodiscard]] bool is_entering(std::uint32_t packet) const {
    return packet < state_.heads.size() && state_.heads[packet] != outside;
  }
  // Frees the room of a packet that tick() has admitted and that is taken back.
  void give_back(std::uint32_t port, std::uint32_t bytes) { ports_[port].state.room_bytes += bytes; }
  // Forgets all packets that wait or enter. Their room has been given back.
  void reset();
  template <typename Visit>
  void for_each_exit(Visit visit) {
    for (Port& port : ports_) visit(port.exit);
  }

  struct Port {
    struct State {
      std::int64_t room_bytes = 0;
      std::uint64_t waiting = 0;  // virtual channels whose packet waits for room
    };
    State state;
    FlitPort exit;  // the wires back to the router
  };
  static constexpr FlitCycle outside = -1;
  // The rest of the state is in the ports.
  struct State {
    std::vector<std::vector<std::uint8_t>> order;  // per port: Port::State::waiting in the order of admission
    std::vector<std::vector<Flit>> held;           // per port and virtual channel: flits that wait
    std::vector<FlitCycle> heads;  // per packet of several flits that enters: Arrived::head; else `outside`
    std::vector<std::uint32_t> released;  // ports
  };

 private:
  void receive(std::uint32_t number, std::uint32_t channel, Flit flit, FlitCycle cycle,
               std::vector<Arrived>& arrived);
  void admit_waiting(std::uint32_t number, FlitCycle cycle, std::vector<Arrived>& arrived);
  void accept_head(Port& port, std::uint32_t channel, Flit flit, std::uint32_t wire_bytes, FlitCycle cycle,
                   std::vector<Arrived>& arrived);
  void note_port(std::uint32_t packet, const Port& port);
  void return_credit(const Port& port, std::uint32_t channel);
  void note_head(std::uint32_t packet, FlitCycle cycle);
  void hold(std::uint32_t number, std::uint32_t channel, Flit flit);

  FlitFabric& fabric_;
  const std::int64_t buffer_bytes_;
  std::vector<Port> ports_;
  State state_;
};

}  // namespace apenet
