// FlitSources: the injection ports of all nodes, numbered by FlitFabric::port_of(). They move flits from the
// cards' FIFOs into the routers.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "network/faults/halting_network.hpp"
#include "network/flit/fabric.hpp"

namespace apenet {

// An injection port sends one packet at a time, and one flit per FlitTiming::local.flit_cycles. Its FIFOs,
// one for each channel of the card, take turns, packet by packet, or the oldest packet goes first. A header
// needs a virtual channel of the router's local input that is idle, which means that no packet is being sent
// to it, and that has a credit. Of several, it takes the next one, round robin.
//
// The invariant that makes it fast: only ports with packets are in state_.active, and a tick visits no
// others.
class FlitSources {
 public:
  // entries: per port, the card's end.
  FlitSources(FlitFabric& fabric, const std::vector<FlitPort>& entries, std::int64_t fifo_bytes, bool is_lane,
              bool is_cut_through);

  // Free bytes of the FIFO.
  [[nodiscard]] std::int64_t room(NodeId node, std::uint16_t channel) const {
    return fifo(node, channel).room_bytes;
  }
  // Asks to be told when the FIFO's room next grows: by Events::freed, or by the result of free().
  void await_room(NodeId node, std::uint16_t channel) { fifo(node, channel).is_room_awaited = true; }
  // Appends packet `index` to its FIFO. The packet table must hold it already; `packet` equals its entry.
  // Returns the FIFO's free bytes.
  std::int64_t add(std::uint32_t index, const Packet& packet);
  // Requires a packet that was added in this cycle. The port cannot finish its last flit before `tail`.
  void delay_tail(std::uint32_t packet, FlitCycle tail);

  // A tail leaves this FIFO and frees its packet's bytes.
  struct Freed {
    NodeId node = 0;
    std::uint16_t channel = 0;
    std::uint32_t wire_bytes = 0;
  };
  // The events of a cycle.
  struct Events {
    std::vector<std::uint32_t> entered;  // packets whose header had to wait and has left
    std::vector<Freed> freed;            // FIFOs with more room for which await_room() was called
    std::vector<Freed> sent;             // slow tails: the caller must call free() when the tail has passed
  };

  // Runs one cycle of every port that has something to send.
  void tick(FlitCycle cycle, Events& events);

  // Frees the room of a packet. Returns whether await_room() was called for the FIFO.
  [[nodiscard]] bool free(const Freed& freed) {
    return free(fifo(freed.node, freed.channel), freed.wire_bytes);
  }

  // In the last tick no port sent a flit or waited for a known cycle, and no packet was added since: no port
  // sends before a credit or a packet arrives.
  [[nodiscard]] bool is_quiescent() const { return !state_.has_moved; }

  // For a halt. Puts these packets, which have begun to leave and are in the order of injection, in front of
  // their FIFOs, and resets the ports. A packet whose tail has left takes no room there: the card may have
  // used its room since.
  void take_back(const std::vector<std::uint32_t>& packets);
  // nullptr: none.
  void set_gate(InjectionGate* gate);
  // The packets whose header is in a FIFO.
  template <typename Visit>
  void for_each_waiting(Visit visit) const {
    for (const Fifo& fifo : state_.fifos) {
      for (std::uint32_t i = fifo.head; i != none; i = fabric_.state.packets[i].next) visit(i);
    }
  }
  template <typename Visit>
  void for_each_entry(Visit visit) {
    for (Port& port : ports_) visit(port.entry);
  }

  static constexpr std::uint32_t none = FlitPacket::none;
  struct Fifo {
    std::uint32_t head = none;
    std::uint32_t tail = none;
    std::int64_t room_bytes = 0;
    std::uint32_t resent = 0;  // the first packets, the one that leaves included: they take no room
    bool is_room_awaited = false;
  };
  // One cache line.
  struct alignas(64) Port {
    struct State {
      FlitCycle free_at = 0;             // first cycle in which the next flit can leave
      std::uint64_t idle = 0;            // virtual channels that no packet is being sent to
      std::uint64_t has_credit = 0;      // virtual channels with a credit
      std::uint32_t packet = none;       // being sent
      std::uint32_t sent = 0;            // flits of this packet
      std::uint32_t packets = 0;         // in the FIFOs, and the one being sent
      std::uint16_t card_channel = 0;    // the channel whose FIFO was served last
      std::uint8_t virtual_channel = 0;  // taken last
    };
    State state;
    FlitPort entry;                   // the wires into the router
    std::uint32_t first_credits = 0;  // index into State::credits: virtual channel 0
  };
  // The rest of the state is in the ports.
  struct State {
    bool has_moved = false;              // !is_quiescent()
    std::vector<Fifo> fifos;             // per port and card channel
    std::vector<std::uint16_t> credits;  // per port and virtual channel
    std::uint64_t resent = 0;            // sum over all FIFOs
    InjectionGate* gate = nullptr;
    // Ports with packets, in the order in which they came to have some. A list, because a loop over bits
    // would mispredict the branch at the end of every word.
    std::vector<std::uint32_t> active;
    std::size_t active_count = 0;  // number of valid entries; the others are void
  };

 private:
  void reset_ports();
  void take_credits(FlitCycle cycle);
  void begin_packet(std::uint32_t number, Port& port, FlitCycle cycle, Events& events);
  void go_on(std::uint32_t number, Port& port, FlitCycle cycle, Events& events);
  [[nodiscard]] std::uint64_t allowed(std::uint64_t free, const Port& port, const FlitPacket& packet) const;
  [[nodiscard]] std::uint64_t usable(const Port& port, const Fifo& fifo, FlitCycle cycle);
  void send_flit(Port& port, std::uint32_t virtual_channel, Flit flit);
  [[nodiscard]] Fifo* next_fifo(std::uint32_t number, Port& port, FlitCycle cycle);
  [[nodiscard]] bool is_older(const Fifo& one, const Fifo& other) const;
  void end_packet(std::uint32_t number, Port& port, Fifo& fifo, std::uint32_t wire_bytes, FlitCycle cycle,
                  Events& events);
  void end_with_care(std::uint32_t number, Port& port, Fifo& fifo, std::uint32_t wire_bytes, FlitCycle cycle,
                     Events& events);
  [[nodiscard]] Freed freed(std::uint32_t number, const Port& port, std::uint32_t wire_bytes) const;
  // channel: Packet::channel, which counts the card's channels of one port after those of another.
  [[nodiscard]] Fifo& fifo(NodeId node, std::uint16_t channel) {
    return state_.fifos[std::size_t{node} * fifos_of_node_ + channel];
  }
  [[nodiscard]] const Fifo& fifo(NodeId node, std::uint16_t channel) const {
    return state_.fifos[std::size_t{node} * fifos_of_node_ + channel];
  }
  [[nodiscard]] static bool free(Fifo& fifo, std::uint32_t wire_bytes) {
    fifo.room_bytes += wire_bytes;
    if (!fifo.is_room_awaited) [[likely]]
      return false;
    fifo.is_room_awaited = false;
    return true;
  }

  FlitFabric& fabric_;
  const std::uint32_t card_channels_;
  const std::uint32_t fifos_of_node_;
  const bool is_lane_;
  const bool is_slow_;  // a flit takes more than one cycle
  struct Memo {
    bool takes_any = false;       // a packet can take any idle virtual channel with a credit
    bool ends_with_care = false;  // is_slow_, or State::resent > 0
  };
  LargeArray<Port> ports_;
  State state_;
  Memo memo_;
};

[[gnu::always_inline]] inline std::int64_t FlitSources::add(std::uint32_t index, const Packet& packet) {
  const std::uint32_t port = fabric_.injection_port(packet);
  Fifo& fifo = this->fifo(packet.source, packet.channel);
  APENET_CHECK(packet.wire_bytes <= fifo.room_bytes, "packet of %u bytes, room %lld in channel %u of node %u",
               packet.wire_bytes, static_cast<long long>(fifo.room_bytes), packet.channel, packet.source);
  const std::int64_t room = fifo.room_bytes -= packet.wire_bytes;
  if (fifo.head == none) [[likely]] {
    fifo.head = index;
  } else {
    fabric_.state.packets[fifo.tail].next = index;
  }
  fifo.tail = index;
  if (ports_[port].state.packets++ == 0) state_.active[state_.active_count++] = port;
  state_.has_moved = true;
  return room;
}

}  // namespace apenet
