// FlitFabric: what the flit engine's routers, sources and sinks share: wires, packets in flight, routes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "kernel/check.hpp"
#include "kernel/large_array.hpp"
#include "kernel/simulation.hpp"
#include "network/flit/delay_line.hpp"
#include "network/flit/timing.hpp"
#include "network/network.hpp"
#include "network/network_trace.hpp"
#include "network/routing/injection_fifos.hpp"
#include "network/routing/routing.hpp"

namespace apenet {

// A flit in a buffer or on a wire: the number of its packet in the packet table, whether it is the packet's
// first or last flit, and whether it is padded because the packet does not fill it. Four bytes, because the
// buffers are most of a router's memory.
class Flit {
 public:
  Flit() = default;
  Flit(std::uint32_t packet, bool is_head, bool is_tail, bool is_padded)
      : word_(packet << 3U | (is_padded ? 4U : 0U) | (is_tail ? 2U : 0U) | (is_head ? 1U : 0U)) {}
  [[nodiscard]] std::uint32_t packet() const { return word_ >> 3U; }
  [[nodiscard]] bool is_head() const { return (word_ & 1U) != 0; }
  [[nodiscard]] bool is_tail() const { return (word_ & 2U) != 0; }
  [[nodiscard]] bool is_padded() const { return (word_ & 4U) != 0; }  // only tails
  bool operator==(const Flit&) const = default;

  static constexpr std::uint32_t max_packets = 1U << 29U;

 private:
  std::uint32_t word_ = 0;
};

// The part of a packet that routers read. Separate from FlitPacket, so that four share a cache line.
struct FlitPacketRoute {
  std::uint32_t target = 0;  // its destination as FlitRouteUnit::target() encodes it
  std::uint32_t flits = 0;
  std::uint32_t wire_bytes = 0;
  std::uint16_t routers = 0;  // that its header has reached
  std::uint8_t lane = 0;      // for ChannelSelection::lane; modulo the lanes of a class
  std::uint8_t slowest = 0;   // index into flit_cycles: the slowest port of its path so far
};

// A packet's length.
struct FlitLength {
  std::uint32_t flits : 31 = 0;
  bool is_padded : 1 = false;  // the packet does not fill its last flit

  // A bit-field has no reference, so that its fields cannot be listed.
  friend bool is_same_state(const FlitLength& left, Moment /*at*/, const FlitLength& right, Moment /*at*/) {
    return left.flits == right.flits && left.is_padded == right.is_padded;
  }
};

// A packet in flight: as its card injected it, and what FlitSources needs to know until its tail has left.
// One cache line, because it is written at injection and read at delivery.
struct alignas(64) FlitPacket {
  static constexpr std::uint32_t none = 0xffffffff;
  Packet packet;
  FlitCycle start = 0;        // its first flit can leave
  FlitCycle span = 0;         // its last flit cannot leave before start + span
  std::uint32_t next = none;  // in its FIFO, or the next free entry
  FlitLength length;
};
static_assert(sizeof(FlitPacket) == 64);

// The address of a virtual channel of a port: at an input it means the buffer, at an output the credit
// counter for the buffer at the far end. From the highest bit down it consists of router, port and virtual
// channel, in fields whose widths FlitFabric sets. At sources and sinks it consists of the node's port and
// virtual channel. It indexes arrays with a power of two of entries per router and per port, so that address
// arithmetic is shifts and masks. Entries beyond the last port or virtual channel are unused.
using FlitPlace = std::uint32_t;

struct FlitArrival {
  FlitPlace place = 0;
  Flit flit;
};
struct FlitCredit {
  FlitPlace place = 0;
};

enum class FlitPortKind : std::uint8_t { link, local, socket, unused };

// The wires of a port: far end and delays.
struct FlitPort {
  // The kind of the far end: a router, a card, or a router of another implementation (FlitSockets).
  FlitPlace far_end = 0;  // virtual channel 0 of the port at the far end
  FlitPortKind kind = FlitPortKind::unused;
  std::uint8_t speed = 0;  // index into FlitFabric::flit_cycles
  // A wire of FlitFabric::flits_on_wires. Its delay is the time from the switch's grant (at a source: from
  // sending) until the flit is in the buffer at the far end.
  std::uint32_t flit_wire = 0;
  // A wire of FlitFabric::credits_on_wires. Its delay is the time from the grant of a flit that came through
  // this port (at a sink: from its admission) until the far end can use the credit.
  std::uint32_t credit_wire = 0;
};

struct FlitLinkUse {
  std::uint64_t flits = 0;
  std::uint64_t packets = 0;        // counted by their headers
  std::uint64_t padding_bytes = 0;  // in these flits
};

// A request to move the first flit of an input virtual channel through the switch to an output virtual
// channel, or the grant of it. One word, so that a copy is one move.
class FlitCrossing {
 public:
  FlitCrossing() = default;
  FlitCrossing(FlitPlace input, FlitPlace output) : word_(std::uint64_t{output} << 32U | input) {}

  [[nodiscard]] FlitPlace input() const { return static_cast<FlitPlace>(word_); }
  // Requires !has_lost().
  [[nodiscard]] FlitPlace output() const { return static_cast<FlitPlace>(word_ >> 32U); }
  // The switch allocator refused the request in this cycle. Stored in the highest bit, which no place uses.
  [[nodiscard]] bool has_lost() const { return lost_count() != 0; }
  [[nodiscard]] std::size_t lost_count() const { return word_ >> 63U; }  // 1 or 0
  void lose() { word_ |= lost; }
  [[nodiscard]] FlitCrossing as_asked() const {
    FlitCrossing asked;
    asked.word_ = word_ & ~lost;
    return asked;
  }
  bool operator==(const FlitCrossing&) const = default;

 private:
  static constexpr std::uint64_t lost = std::uint64_t{1} << 63U;
  std::uint64_t word_ = 0;
};

// The part of a router's port that a flit reads and writes when it enters or leaves: one cache line.
struct alignas(64) FlitRouterPort {
  // The switch allocator's pointers: who was served last. Their reset value `last` makes number 0 the first.
  static constexpr FlitPlace last = 0xffffffff;
  struct State {
    FlitCrossing accepted{last, last};  // as input: the virtual channel served last, and the accept pointer
    FlitPlace granted_input = last;     // as output: the grant pointer; its virtual channel does not matter
  };

  State state;
  FlitLinkUse use;
  FlitPort wires;
  FlitPlace across = 0;  // place at the far end minus place at this end, the same for all virtual channels
};
static_assert(sizeof(FlitRouterPort) == 64);

class FlitRetries;

// One instance per engine. Flits and credits have separate delay lines, and every reader has separate lists,
// because they are read at different times of a cycle.
struct FlitFabric {
  FlitFabric(const Simulation& simulation_, const NetworkParameters& parameters, std::uint32_t router_count_,
             std::uint32_t ports_, FlitCycle max_delay)
      : simulation(simulation_),
        timing(make_flit_timing(parameters)),
        router_count(router_count_),
        ports(ports_),
        virtual_channels(parameters.description.virtual_channels),
        ports_of_node(parameters.description.local_ports()),
        card_channels(parameters.card_channels),
        ejection_ports(parameters.description, parameters.card_channels),
        virtual_channel_bits(static_cast<std::uint32_t>(std::bit_width(virtual_channels - 1))),
        port_bits(static_cast<std::uint32_t>(std::bit_width(ports_ - 1))),
        channel_bits(port_bits + virtual_channel_bits),
        channels(1U << channel_bits),
        port_table(static_cast<std::size_t>(router_count_) << port_bits),
        local_ports(router_count_),
        link_numbers(port_table.size()),
        flits_on_wires(max_delay, std::size_t{block_count()} + 2),
        credits_on_wires(max_delay, std::size_t{block_count()} + 2) {}

  // A block of routers has 2^block_bits places; no router has more. The engine computes a cycle block by
  // block, so that a block's arrivals and registers stay in the first-level cache.
  static constexpr std::uint32_t block_bits = 11;
  [[nodiscard]] std::uint32_t block_count() const {
    return static_cast<std::uint32_t>(
        ((std::uint64_t{router_count} << channel_bits) + (1U << block_bits) - 1) >> block_bits);
  }

  // The lists of both delay lines: one per block of routers, by its number, then one for the cards and one
  // for the sockets.
  [[nodiscard]] std::uint32_t list_of_cards() const { return block_count(); }
  [[nodiscard]] std::uint32_t list_of_sockets() const { return block_count() + 1; }
  [[nodiscard]] std::uint32_t list_of(const FlitPort& port) const {
    if (port.kind == FlitPortKind::link) return port.far_end >> block_bits;
    return port.kind == FlitPortKind::local ? list_of_cards() : list_of_sockets();
  }
  // Gives the port wires with these delays.
  void connect(FlitPort& port, FlitCycle flit_delay, FlitCycle credit_delay) {
    port.flit_wire = flits_on_wires.wire(list_of(port), flit_delay);
    port.credit_wire = credits_on_wires.wire(list_of(port), credit_delay);
  }
  // Puts on the port's wire a flit that its switch has granted; as DelayLine::push_late().
  void send(std::size_t port_index, FlitCycle later, const FlitArrival& arrival) {
    if (retries != nullptr) [[unlikely]] {
      send_with_errors(port_index, later, arrival);
    } else {
      flits_on_wires.push_late(port_table[port_index].wires.flit_wire, later, arrival);
    }
  }
  void send_with_errors(std::size_t port_index, FlitCycle later, const FlitArrival& arrival);

  // Traces a header that leaves through a router's port. The record shows a link as busy for the packet's
  // flits without gaps, because it is not known yet what the later flits will wait for.
  void trace_head(std::size_t port_index, std::uint32_t index) const {
    const Packet& packet = state.packets[index].packet;
    const FlitPort& port = port_table[port_index].wires;
    const bool is_link = port.kind != FlitPortKind::local;
    const Time now = simulation.now();
    const Time span =
        timing.time(static_cast<FlitCycle>(state.routes[index].flits) * flit_cycles[port.speed]);
    simulation.trace(network_record(is_link ? NetworkTrace::crossed : NetworkTrace::ejected, now,
                                    is_link ? now + span : Time::zero(), rail,
                                    is_link ? link_numbers[port_index] : packet.destination, packet.source,
                                    packet.message, packet.sequence, packet.wire_bytes));
  }
  [[nodiscard]] FlitLength length(std::uint32_t wire_bytes) const {
    return {.flits = timing.flits(wire_bytes), .is_padded = wire_bytes % timing.flit_bytes != 0};
  }
  [[nodiscard]] std::uint64_t padding_bytes(const FlitPacket& packet) const {
    return std::uint64_t{packet.length.flits} * timing.flit_bytes - packet.packet.wire_bytes;
  }
  // Counts a flit that leaves through a port. It reads the packet's entry for padded tails only, because that
  // entry is seldom in the cache.
  void count(FlitLinkUse& use, Flit flit) const {
    ++use.flits;
    use.packets += flit.is_head() ? 1 : 0;
    if (flit.is_padded()) use.padding_bytes += padding_bytes(state.packets[flit.packet()]);
  }
  // The turn of a packet in arbitration by age: the smaller, the older. Packets that wait for more than 2^31
  // later ones are equally old.
  [[nodiscard]] std::uint32_t turn_by_age(std::uint32_t packet) const {
    constexpr std::uint64_t most = (std::uint64_t{1} << 31U) - 1;
    return static_cast<std::uint32_t>(most - std::min(state.next_number - state.numbers[packet], most));
  }
  // Records that a packet's path uses this port.
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

  // The place of the port's virtual channel 0.
  [[nodiscard]] FlitPlace place(std::uint32_t router, std::uint32_t port) const {
    APENET_CHECK(std::uint64_t{router} << channel_bits >> 31U == 0, "router or node %u, %u channels each",
                 router, channels);
    return router << channel_bits | port << virtual_channel_bits;
  }
  [[nodiscard]] std::uint32_t router_of(FlitPlace place) const { return place >> channel_bits; }
  // Port and virtual channel, a number below `channels`.
  [[nodiscard]] std::uint32_t channel_of(FlitPlace place) const { return place & (channels - 1); }
  [[nodiscard]] std::uint32_t port_of_channel(std::uint32_t channel) const {
    return channel >> virtual_channel_bits;
  }
  // The injection or ejection port of a node.
  [[nodiscard]] std::uint32_t port_of(NodeId node, std::uint32_t number) const {
    return ports_of_node == 1 ? node : node * ports_of_node + number;
  }
  [[nodiscard]] std::uint32_t injection_port(const Packet& packet) const {
    return ports_of_node == 1 ? packet.source : port_of(packet.source, packet.channel / card_channels);
  }
  // The channel of the card whose packets are in this FIFO.
  [[nodiscard]] std::uint32_t card_channel(std::uint16_t channel) const {
    return ports_of_node == 1 ? channel : channel % card_channels;
  }
  [[nodiscard]] std::uint32_t virtual_channel_of(FlitPlace place) const {
    return place & ((1U << virtual_channel_bits) - 1);
  }

  // The virtual channel behind a router's output, or of its input, belongs to a ring with a bubble.
  [[nodiscard]] bool is_in_ring(FlitPlace place) const {
    return (ring_channels >> virtual_channel_of(place) & 1U) != 0 &&
           !is_local(router_of(place), port_of_channel(channel_of(place)));
  }

  [[nodiscard]] bool is_local(std::uint32_t router, std::uint32_t number) const {
    return (local_ports[router] >> number & 1) != 0;
  }

  const Simulation& simulation;
  FlitTiming timing;
  std::uint32_t router_count;
  std::uint32_t ports;
  std::uint32_t virtual_channels;
  std::uint8_t rail = 0;  // NetworkParameters
  // Ports between a node and its router. They are numbered through all nodes, and that number is what a
  // FlitPlace at sources and sinks has in place of a router.
  std::uint32_t ports_of_node;
  std::uint32_t card_channels;  // NetworkParameters
  EjectionPorts ejection_ports;
  // Widths of the fields of a FlitPlace: virtual channel, port, both together. channels is 2^channel_bits.
  std::uint32_t virtual_channel_bits;
  std::uint32_t port_bits;
  std::uint32_t channel_bits;
  std::uint32_t channels;
  bool is_cut_through = false;
  // Rings with a bubble (Routing::bubble_class): flits of a slot, and the virtual channels of the rings, a
  // bit for each; 0 without.
  std::uint32_t slot_flits = 0;
  std::uint64_t ring_channels = 0;
  bool is_by_age = false;                 // arbitration
  LargeArray<FlitRouterPort> port_table;  // by port_index
  // Per router: the ports to cards, one bit each. port_table has the same information in far more memory.
  std::vector<std::uint64_t> local_ports;
  std::vector<std::uint32_t> link_numbers;  // as port_table: number for Network::link_statistics
  std::vector<std::uint32_t> flit_cycles;   // per speed: cycles per flit, the slowest last
  struct State {
    // The packet table: packets in flight, by the number that their flits carry.
    LargeArray<FlitPacket> packets;
    std::vector<FlitPacketRoute> routes;
    std::vector<std::uint64_t> numbers;  // per packet, in the order of injection; only if somebody asks
    std::uint64_t next_number = 0;
  };
  State state;
  DelayLine<FlitArrival> flits_on_wires;
  DelayLine<FlitCredit> credits_on_wires;
  FlitRetries* retries = nullptr;  // retries of the links; nullptr: none has bit errors
};

}  // namespace apenet
