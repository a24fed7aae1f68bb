// FlitFabric: what routers, sources and sinks of the flit engine share: wires, packets in flight, routes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "network/flit/delay_line.hpp"
#include "network/flit_timing.hpp"
#include "network/network.hpp"
#include "network/network_trace.hpp"
#include "network/routing/routing.hpp"

namespace apenet {

// A flit in a buffer or on a wire: the number of its packet in the engine's table, whether it is the packet's
// first or last, and whether the packet does not fill the last. Four bytes, because the buffers are most of a
// router's memory.
class Flit {
 public:
  Flit() = default;
  Flit(std::uint32_t packet, bool is_head, bool is_tail, bool is_padded)
      : word_(packet << 3U | (is_padded ? 4U : 0U) | (is_tail ? 2U : 0U) | (is_head ? 1U : 0U)) {}
  [[nodiscard]] std::uint32_t packet() const { return word_ >> 3U; }
  [[nodiscard]] bool is_head() const { return (word_ & 1U) != 0; }
  [[nodiscard]] bool is_tail() const { return (word_ & 2U) != 0; }
  [[nodiscard]] bool is_padded() const { return (word_ & 4U) != 0; }  // a tail

  static constexpr std::uint32_t max_packets = 1U << 29U;

 private:
  std::uint32_t word_ = 0;
};

// What routers look at of a packet, apart from the rest of it so that four of them share a cache line.
struct FlitPacketRoute {
  std::uint32_t target = 0;  // where to: FlitRouteUnit::target
  std::uint32_t flits = 0;
  std::uint32_t wire_bytes = 0;
  std::uint16_t routers = 0;  // that its header has come to
  std::uint8_t lane = 0;      // number within its class, for ChannelSelection::lane
  std::uint8_t slowest = 0;   // stage of its path with the longest flit_cycles: index into flit_cycles
};

// Of a packet on wires of one flit a cycle.
struct FlitLength {
  std::uint32_t flits : 31 = 0;
  bool is_padded : 1 = false;  // it does not fill the last one
};

// A packet in flight: as its card handed it over, and what FlitSources must know of it while it is in a FIFO
// or on its way out. One cache line, since it is written when it comes and read when it goes.
struct alignas(64) FlitPacket {
  static constexpr std::uint32_t none = 0xffffffff;
  Packet packet;
  FlitCycle start = 0;  // its first flit can leave
  FlitCycle span = 0;   // the last flit leaves `span` cycles behind the first, or later
  std::uint32_t next = none;
  FlitLength length;
};
static_assert(sizeof(FlitPacket) == 64);

// A virtual channel's buffer at the end of a wire, or the credit counter that belongs to it: from the highest
// bit on the router, the port and the virtual channel, each in so many bits that FlitFabric says. For sources
// and sinks the node and the virtual channel. It is the index of arrays that have a power of two for each
// router and port, so that finding one, or what it belongs to, is a shift; numbers that no port or virtual
// channel has are not used.
using FlitPlace = std::uint32_t;

struct FlitArrival {
  FlitPlace place = 0;
  Flit flit;
};
struct FlitCredit {
  FlitPlace place = 0;
};

// What a router needs to know of one of its ports: where its wires lead, and how long they are.
struct FlitPort {
  // What is at the other end: a router, a card, or a router of another implementation (FlitSockets).
  enum class Kind : std::uint8_t { link, local, socket, unused };
  FlitPlace far_end = 0;  // virtual channel 0 of the port at the other end
  Kind kind = Kind::unused;
  std::uint8_t speed = 0;  // index into FlitFabric::flit_cycles
  // FlitFabric::flits_on_wires: as long as it takes from the switch's grant to the buffer at the other end.
  // Of a source: from the cycle in which it sends.
  std::uint32_t flit_wire = 0;
  // credits_on_wires: from the grant of a flit that came through this port to the use of its credit.
  std::uint32_t credit_wire = 0;
};

struct FlitLinkUse {
  std::uint64_t flits = 0;
  std::uint64_t packets = 0;        // headers
  std::uint64_t padding_bytes = 0;  // of the flits
};

// The first flit of an input virtual channel would cross the switch to an output virtual channel. One word,
// to be copied as one.
class FlitCrossing {
 public:
  FlitCrossing() = default;
  FlitCrossing(FlitPlace input, FlitPlace output) : word_(std::uint64_t{output} << 32U | input) {}

  [[nodiscard]] FlitPlace input() const { return static_cast<FlitPlace>(word_); }
  // Unless it has lost.
  [[nodiscard]] FlitPlace output() const { return static_cast<FlitPlace>(word_ >> 32U); }
  // In this cycle: the highest bit, which no place has.
  [[nodiscard]] bool has_lost() const { return lost_count() != 0; }
  [[nodiscard]] std::size_t lost_count() const { return word_ >> 63U; }  // 1 or 0
  void lose() { word_ |= lost; }
  [[nodiscard]] FlitCrossing as_asked() const {
    FlitCrossing asked;
    asked.word_ = word_ & ~lost;
    return asked;
  }

 private:
  static constexpr std::uint64_t lost = std::uint64_t{1} << 63U;
  std::uint64_t word_ = 0;
};

// All that a flit that crosses a router needs of the ports of which it comes and goes: a cache line each.
struct alignas(64) FlitRouterPort {
  FlitPort wires;
  FlitPlace across = 0;  // plus the place of one of its virtual channels: that at the far end
  FlitLinkUse use;
  // The switch's round-robin pointers: who was served last. Reset: the last one, so that number 0 is first.
  static constexpr FlitPlace last = 0xffffffff;
  FlitPlace granted_input = last;     // as output: grant pointer; its virtual channel does not matter
  FlitCrossing accepted{last, last};  // as input: who asked on behalf of the port; and the accept pointer
};

// One instance an engine. Arrivals at routers, at sinks and credits are separate lines because they are read
// at separate times of a cycle.
struct FlitFabric {
  FlitFabric(const Simulation& simulation_, const FlitTiming& timing_, std::uint32_t router_count_,
             std::uint32_t ports_, std::uint32_t virtual_channels_, FlitCycle max_delay)
      : simulation(simulation_),
        timing(timing_),
        router_count(router_count_),
        ports(ports_),
        virtual_channels(virtual_channels_),
        virtual_channel_bits(static_cast<std::uint32_t>(std::bit_width(virtual_channels_ - 1))),
        port_bits(static_cast<std::uint32_t>(std::bit_width(ports_ - 1))),
        channel_bits(port_bits + virtual_channel_bits),
        channels(1U << channel_bits),
        port_table(static_cast<std::size_t>(router_count_) << port_bits),
        local_ports(router_count_),
        link_numbers(port_table.size()),
        flits_on_wires(max_delay, std::size_t{block_count()} + 2),
        credits_on_wires(max_delay, std::size_t{block_count()} + 2) {}

  // Routers are worked down in blocks of so many places (no router has more): what arrives at a block
  // and what its routers do with it then uses the same few lines of the first cache.
  static constexpr std::uint32_t block_bits = 11;
  [[nodiscard]] std::uint32_t block_count() const {
    return static_cast<std::uint32_t>(
        ((std::uint64_t{router_count} << channel_bits) + (1U << block_bits) - 1) >> block_bits);
  }

  // The list of the wires that arrive at a block of routers (by its number), at the cards, at the sockets.
  [[nodiscard]] std::uint32_t list_of_cards() const { return block_count(); }
  [[nodiscard]] std::uint32_t list_of_sockets() const { return block_count() + 1; }
  [[nodiscard]] std::uint32_t list_of(const FlitPort& port) const {
    if (port.kind == FlitPort::Kind::link) return port.far_end >> block_bits;
    return port.kind == FlitPort::Kind::local ? list_of_cards() : list_of_sockets();
  }
  // Gives the port its wires, so many cycles long.
  void connect(FlitPort& port, FlitCycle flit_delay, FlitCycle credit_delay) {
    port.flit_wire = flits_on_wires.wire(list_of(port), flit_delay);
    port.credit_wire = credits_on_wires.wire(list_of(port), credit_delay);
  }
  // A header leaves through a router's port, by its index in the port table. A link is taken to be busy for
  // as long as the packet's flits need one behind the other: what they wait for on their way is not known
  // yet.
  void trace_head(std::size_t port_index, std::uint32_t index) const {
    const Packet& packet = packets[index].packet;
    const FlitPort& port = port_table[port_index].wires;
    const bool is_link = port.kind != FlitPort::Kind::local;
    const Time now = simulation.now();
    const Time span = timing.time(static_cast<FlitCycle>(routes[index].flits) * flit_cycles[port.speed]);
    simulation.trace(network_record(is_link ? NetworkTrace::crossed : NetworkTrace::ejected, now,
                                    is_link ? now + span : Time::zero(),
                                    is_link ? link_numbers[port_index] : packet.destination, packet.source,
                                    packet.message, packet.sequence, packet.wire_bytes));
  }
  [[nodiscard]] FlitLength length(std::uint32_t wire_bytes) const {
    return {.flits = timing.flits(wire_bytes), .is_padded = wire_bytes % timing.flit_bytes != 0};
  }
  [[nodiscard]] std::uint64_t padding_bytes(const FlitPacket& packet) const {
    return std::uint64_t{packet.length.flits} * timing.flit_bytes - packet.packet.wire_bytes;
  }
  // A flit leaves through that port. Its packet's record is hardly ever asked: it is seldom in the cache.
  void count(FlitLinkUse& use, Flit flit) const {
    ++use.flits;
    use.packets += flit.is_head() ? 1 : 0;
    if (flit.is_padded()) use.padding_bytes += padding_bytes(packets[flit.packet()]);
  }
  // A packet's way leads through that port.
  static void note_port(const FlitPort& port, FlitPacketRoute& route) {
    route.slowest = std::max(route.slowest, port.speed);
  }

  [[nodiscard]] bool are_wires_empty() const { return flits_on_wires.empty() && credits_on_wires.empty(); }

  [[nodiscard]] const FlitPort& port(std::uint32_t router, std::uint32_t number) const {
    return port_table[port_index(router, number)].wires;
  }
  [[nodiscard]] std::size_t port_index(std::uint32_t router, std::uint32_t number) const {
    return std::size_t{router} << port_bits | number;
  }

  // Of a port's virtual channel 0.
  [[nodiscard]] FlitPlace place(std::uint32_t router, std::uint32_t port) const {
    APENET_CHECK(std::uint64_t{router} << channel_bits >> 31U == 0, "router or node %u, %u channels each",
                 router, channels);
    return router << channel_bits | port << virtual_channel_bits;
  }
  [[nodiscard]] std::uint32_t router_of(FlitPlace place) const { return place >> channel_bits; }
  // Port and virtual channel: below `channels`.
  [[nodiscard]] std::uint32_t channel_of(FlitPlace place) const { return place & (channels - 1); }
  [[nodiscard]] std::uint32_t port_of_channel(std::uint32_t channel) const {
    return channel >> virtual_channel_bits;
  }
  [[nodiscard]] std::uint32_t virtual_channel_of(FlitPlace place) const {
    return place & ((1U << virtual_channel_bits) - 1);
  }

  [[nodiscard]] bool is_local(std::uint32_t router, std::uint32_t number) const {
    return (local_ports[router] >> number & 1) != 0;
  }

  const Simulation& simulation;
  FlitTiming timing;
  std::uint32_t router_count;
  std::uint32_t ports;
  std::uint32_t virtual_channels;
  // Of a FlitPlace: the virtual channel, above it the port, both together; and how many there are of those.
  std::uint32_t virtual_channel_bits;
  std::uint32_t port_bits;
  std::uint32_t channel_bits;
  std::uint32_t channels;
  bool is_cut_through = false;
  LargeArray<FlitRouterPort> port_table;  // by port_index
  std::vector<std::uint64_t>
      local_ports;  // per router, a bit each: port_table says the same, in 100 times the room
  std::vector<std::uint32_t> link_numbers;  // as port_table: in Network::link_statistics
  std::vector<std::uint32_t> flit_cycles;   // per speed, the slowest last
  // The packets in flight, by the number that their flits carry.
  LargeArray<FlitPacket> packets;
  std::vector<FlitPacketRoute> routes;
  DelayLine<FlitArrival> flits_on_wires;
  DelayLine<FlitCredit> credits_on_wires;
};

}  // namespace apenet
