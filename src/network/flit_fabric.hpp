// FlitFabric: what routers, sources and sinks of the flit engine share: wires, packets in flight, routes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/simulation.hpp"
#include "network/flit_delay_line.hpp"
#include "network/flit_timing.hpp"
#include "network/network.hpp"
#include "network/network_trace.hpp"
#include "network/routing.hpp"

namespace apenet {

// A flit in a buffer or on a wire: the number of its packet in the engine's table, and whether it is the
// packet's first or last. Four bytes, because the buffers are most of a router's memory.
class Flit {
 public:
  Flit() = default;
  Flit(std::uint32_t packet, bool is_head, bool is_tail)
      : word_(packet << 2U | (is_tail ? 2U : 0U) | (is_head ? 1U : 0U)) {}
  [[nodiscard]] std::uint32_t packet() const { return word_ >> 2U; }
  [[nodiscard]] bool is_head() const { return (word_ & 1U) != 0; }
  [[nodiscard]] bool is_tail() const { return (word_ & 2U) != 0; }

  static constexpr std::uint32_t max_packets = 1U << 30U;

 private:
  std::uint32_t word_ = 0;
};

// What routers look at of a packet, apart from the rest of it so that four of them share a cache line.
struct FlitPacketRoute {
  NodeId destination = 0;
  std::uint32_t flits = 0;
  std::uint32_t wire_bytes = 0;
  std::uint16_t hops = 0;    // links for which it was routed so far
  std::uint8_t lane = 0;     // number within its class, for ChannelSelection::lane
  std::uint8_t slowest = 0;  // stage of its path with the longest flit_cycles: index into flit_cycles
};

// A virtual channel's buffer at the end of a wire, or the credit counter that belongs to it.
struct FlitPlace {
  std::uint32_t router = 0;  // or node, for sources and sinks
  std::uint16_t channel =
      0;  // port * virtual channels + virtual channel; of sources and sinks, the latter alone
};

struct FlitArrival {
  FlitPlace place;
  Flit flit;
};

// What a router needs to know of one of its ports: where its wires lead, and how long they are.
struct FlitPort {
  // What is at the other end: a router, a card, or a router of another implementation (FlitSockets).
  enum class Kind : std::uint8_t { unused, link, local, socket };
  std::uint32_t neighbour = 0;          // router; or node, of a local port
  std::uint16_t neighbour_channel = 0;  // virtual channel 0 of the port at the other end
  Kind kind = Kind::unused;
  std::uint8_t speed = 0;          // index into FlitFabric::flit_cycles
  std::uint32_t flit_delay = 0;    // switch grant to arrival in the buffer at the other end, in cycles
  std::uint32_t credit_delay = 0;  // switch grant of a flit from this input to use of its credit upstream
};

struct FlitLinkUse {
  std::uint64_t flits = 0;
  std::uint64_t packets = 0;
  std::uint64_t wire_bytes = 0;
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
        channels(ports_ * virtual_channels_),
        port_table(static_cast<std::size_t>(router_count_) * ports_),
        local_ports(router_count_),
        link_use(port_table.size()),
        link_numbers(port_table.size()),
        arrivals(max_delay),
        sink_arrivals(max_delay),
        socket_arrivals(max_delay),
        credits(max_delay),
        source_credits(max_delay),
        socket_credits(max_delay) {}

  void send(FlitPort::Kind kind, FlitCycle arrives, const FlitArrival& arrival) {
    if (kind == FlitPort::Kind::link) {
      arrivals.push(arrives, arrival);
    } else if (kind == FlitPort::Kind::local) {
      sink_arrivals.push(arrives, arrival);
    } else {
      socket_arrivals.push(arrives, arrival);
    }
  }
  void send_credit(FlitPort::Kind kind, FlitCycle arrives, const FlitPlace& place) {
    if (kind == FlitPort::Kind::link) {
      credits.push(arrives, place);
    } else if (kind == FlitPort::Kind::local) {
      source_credits.push(arrives, place);
    } else {
      socket_credits.push(arrives, place);
    }
  }
  // A flit leaves through a router's port, by its index in the port table. wire_bytes: of its packet.
  void count_flit(std::size_t port_index, Flit flit, std::uint32_t wire_bytes) {
    FlitLinkUse& use = link_use[port_index];
    ++use.flits;
    if (!flit.is_head()) return;
    if (simulation.is_traced()) [[unlikely]]
      trace_head(port_index, flit.packet());
    ++use.packets;
    use.wire_bytes += wire_bytes;
  }
  // A link is taken to be busy for as long as the packet's flits need one behind the other: what they wait
  // for on their way is not known yet.
  void trace_head(std::size_t port_index, std::uint32_t index) const {
    const Packet& packet = packets[index];
    const FlitPort& port = port_table[port_index];
    const bool is_link = port.kind != FlitPort::Kind::local;
    const Time now = simulation.now();
    const Time span = timing.time(static_cast<FlitCycle>(routes[index].flits) * flit_cycles[port.speed]);
    simulation.trace(network_record(is_link ? NetworkTrace::crossed : NetworkTrace::ejected, now,
                                    is_link ? now + span : Time::zero(),
                                    is_link ? link_numbers[port_index] : packet.destination, packet.source,
                                    packet.message, packet.sequence, packet.wire_bytes));
  }
  // A packet's way leads through that port.
  void count_hop(std::size_t port_index, bool is_local, FlitPacketRoute& route) const {
    if (flit_cycles.size() > 1) route.slowest = std::max(route.slowest, port_table[port_index].speed);
    if (!is_local) ++route.hops;
  }

  [[nodiscard]] bool are_wires_empty() const {
    return arrivals.empty() && sink_arrivals.empty() && socket_arrivals.empty() && credits.empty() &&
           source_credits.empty() && socket_credits.empty();
  }

  [[nodiscard]] const FlitPort& port(std::uint32_t router, std::uint32_t number) const {
    return port_table[std::size_t{router} * ports + number];
  }

  [[nodiscard]] bool is_local(std::uint32_t router, std::uint32_t number) const {
    return (local_ports[router] >> number & 1) != 0;
  }

  const Simulation& simulation;
  FlitTiming timing;
  std::uint32_t router_count;
  std::uint32_t ports;
  std::uint32_t virtual_channels;
  std::uint32_t channels;  // virtual channels of a router: ports * virtual_channels
  bool is_cut_through = false;
  std::vector<FlitPort> port_table;  // per router and port
  std::vector<std::uint64_t>
      local_ports;  // per router, a bit each: port_table says the same, in 100 times the room
  std::vector<FlitLinkUse> link_use;        // per router and port
  std::vector<std::uint32_t> link_numbers;  // per router and port: in Network::link_statistics
  std::vector<std::uint32_t> flit_cycles;   // per speed, the slowest last
  // The packets in flight, by the number that their flits carry.
  std::vector<Packet> packets;  // as their cards handed them over
  std::vector<FlitPacketRoute> routes;
  DelayLine<FlitArrival> arrivals;       // in routers
  DelayLine<FlitArrival> sink_arrivals;  // in the ejection ports of nodes
  DelayLine<FlitArrival> socket_arrivals;
  DelayLine<FlitPlace> credits;         // for routers
  DelayLine<FlitPlace> source_credits;  // for the injection ports of nodes
  DelayLine<FlitPlace> socket_credits;
};

}  // namespace apenet
