// FlitSources: the injection ports of all nodes, from the cards' FIFOs into the routers, flit by flit.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// A node's injection port carries one packet at a time, a flit a cycle (or FlitTiming::local.flit_cycles).
// FIFOs of the card's channels take turns, packet by packet. A header needs a virtual channel of the router's
// local input that no packet is being sent to, and a credit there; of several, the one behind that taken
// last.
class FlitSources {
 public:
  // entries: per node, the port as the router's neighbour would see it.
  FlitSources(FlitFabric& fabric, const std::vector<FlitPort>& entries, std::uint32_t card_channels,
              std::int64_t fifo_bytes, bool is_lane, bool is_cut_through);

  // Free bytes of the FIFO.
  [[nodiscard]] std::int64_t room(NodeId node, std::uint16_t channel) const {
    return fifo(node, channel).room_bytes;
  }
  // Events::freed shall tell when that next grows.
  void await_room(NodeId node, std::uint16_t channel) { fifo(node, channel).is_room_awaited = true; }
  // The packet of that number, in the table already. packet: as there. Returns the room that is left.
  std::int64_t add(std::uint32_t index, const Packet& packet);
  // Of a packet added in this cycle: its last flit cannot leave before `tail`.
  void delay_tail(std::uint32_t packet, FlitCycle tail);

  // A FIFO that a tail has left.
  struct Freed {
    NodeId node = 0;
    std::uint16_t channel = 0;
    std::uint32_t wire_bytes = 0;
  };
  // What happened in a cycle.
  struct Events {
    std::vector<std::uint32_t> entered;  // packets whose header left, and had to wait for it
    std::vector<Freed> freed;            // where that was awaited
    std::vector<Freed> sent;  // whose last flit takes more than this cycle: free() is due behind it
  };

  // One cycle of every port that has something to send.
  void tick(FlitCycle cycle, Events& events);

  // Whether that was awaited.
  [[nodiscard]] bool free(const Freed& freed) {
    return free(fifo(freed.node, freed.channel), freed.wire_bytes);
  }

  // No port has sent, or waits for a time to come: until a credit or a packet arrives, nothing will.
  [[nodiscard]] bool is_at_rest() const { return !has_moved_; }
  template <typename Visit>
  void for_each_entry(Visit visit) {
    for (Port& port : ports_) visit(port.entry);
  }

 private:
  static constexpr std::uint32_t none = FlitPacket::none;
  struct Fifo {
    std::uint32_t head = none;
    std::uint32_t tail = none;
    std::int64_t room_bytes = 0;
    bool is_room_awaited = false;
  };
  // A cache line.
  struct alignas(64) Port {
    FlitCycle free_at = 0;             // first cycle of the next flit
    std::uint64_t idle = 0;            // virtual channels that no packet is being sent to
    std::uint64_t has_credit = 0;      // virtual channels
    std::uint32_t packet = none;       // on its way into the router
    std::uint32_t sent = 0;            // flits of it
    std::uint32_t packets = 0;         // that, and those in the FIFOs
    std::uint16_t card_channel = 0;    // served last
    std::uint8_t virtual_channel = 0;  // taken last
    FlitPort entry;                    // its wires into the router
    std::uint32_t first_credits = 0;   // where in credits_ those of its virtual channels are
  };

  void take_credits(FlitCycle cycle);
  void begin_packet(NodeId node, Port& port, FlitCycle cycle, Events& events);
  void go_on(NodeId node, Port& port, FlitCycle cycle, Events& events);
  [[nodiscard]] std::uint64_t allowed(std::uint64_t free, const Port& port, const FlitPacket& packet) const;
  [[nodiscard]] std::uint64_t usable(const Port& port, const Fifo& fifo, FlitCycle cycle);
  void send_flit(Port& port, std::uint32_t virtual_channel, Flit flit);
  [[nodiscard]] Fifo* next_fifo(NodeId node, Port& port, FlitCycle cycle);
  void end_packet(NodeId node, Port& port, Fifo& fifo, std::uint32_t wire_bytes, FlitCycle cycle,
                  Events& events);
  [[nodiscard]] Fifo& fifo(NodeId node, std::uint16_t channel) {
    return fifos_[std::size_t{node} * card_channels_ + channel];
  }
  [[nodiscard]] const Fifo& fifo(NodeId node, std::uint16_t channel) const {
    return fifos_[std::size_t{node} * card_channels_ + channel];
  }
  [[nodiscard]] static bool free(Fifo& fifo, std::uint32_t wire_bytes) {
    fifo.room_bytes += wire_bytes;
    if (!fifo.is_room_awaited) [[likely]]
      return false;
    fifo.is_room_awaited = false;
    return true;
  }

  FlitFabric& fabric_;
  std::uint32_t card_channels_;
  bool is_lane_;
  bool takes_any_;  // a packet: any virtual channel with a credit
  bool is_slow_;    // a flit takes more than a cycle
  bool has_moved_ = false;
  LargeArray<Port> ports_;              // per node
  std::vector<Fifo> fifos_;             // per node and card channel
  std::vector<std::uint16_t> credits_;  // per node and virtual channel
  // Of nodes with packets: who has been there for longer first. A list, since a loop over bits ends with a
  // branch that is mispredicted in every word.
  std::vector<NodeId> active_;
  NodeId* active_end_;
};

[[gnu::always_inline]] inline std::int64_t FlitSources::add(std::uint32_t index, const Packet& packet) {
  const NodeId node = packet.source;
  Fifo& fifo = this->fifo(node, packet.channel);
  APENET_CHECK(packet.wire_bytes <= fifo.room_bytes, "packet of %u bytes, room %lld in channel %u of node %u",
               packet.wire_bytes, static_cast<long long>(fifo.room_bytes), packet.channel, node);
  const std::int64_t room = fifo.room_bytes -= packet.wire_bytes;
  if (fifo.head == none) [[likely]] {
    fifo.head = index;
  } else {
    fabric_.packets[fifo.tail].next = index;
  }
  fifo.tail = index;
  if (ports_[node].packets++ == 0) *active_end_++ = node;
  has_moved_ = true;
  return room;
}

}  // namespace apenet
