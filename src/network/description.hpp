// NetworkDescription: links, routers and their arrangement as plain data, before anything is wired.
//
// Every field is in base units. The names in errors are those of the TOML files: network.dims,
// router.buffer_bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
#include "network/topology/description.hpp"
#include "schema/fields.hpp"

namespace apenet {

struct LinkDescription {
  DataRate rate;  // payload, header and footer alike
  Time latency;
  double bit_error_rate = 0;
};

inline void list_fields(schema::Fields& fields, LinkDescription& link) {
  using namespace schema::ranges;
  fields("clock_mhz", link.rate.frequency_hz, positive, "clock of the link");
  fields("word_bytes", link.rate.bytes, count, "bytes that one direction moves in word_cycles");
  fields("word_cycles", link.rate.per_cycles, count, "clocks in which one direction moves word_bytes");
  fields("latency_ns", link.latency, not_negative, "serialiser, cable, deserialiser");
  fields("bit_error_rate", link.bit_error_rate, probability.optional(),
         "probability that a bit arrives wrong");
}

// The inside of a router as the flit engine runs it (docs/models/flit-engine.md). What router_latency leaves
// over beyond these stages is the depth of the buffer write stage.
struct RouterPipeline {
  static constexpr std::uint32_t from_latency = 0xffffffff;

  std::int64_t clock_hz = 0;     // the router's clock: a cycle of the engine
  std::uint32_t flit_bytes = 0;  // 0: what the first link moves at a time (LinkDescription::rate.bytes)
  std::uint32_t routing_delay_cycles = 1;  // 0: looked up one router ahead
  std::uint32_t vc_allocation_delay_cycles = 1;
  std::uint32_t switch_allocation_delay_cycles = 1;
  std::uint32_t switch_traversal_delay_cycles = 1;
  // From a credit's arrival at the upstream router to its use; from_latency: what credit_latency asks for.
  std::uint32_t credit_delay_cycles = from_latency;
};

// Which of its node's injection FIFOs a packet takes, where there are several (docs/models/network.md).
enum class InjectionRule : std::uint8_t { direction, destination, queue, least_loaded };

struct NetworkDescription {
  enum class Engine : std::uint8_t { packet, flit };
  // Place of a blocked packet: all of it in one buffer, or spread over the routers behind its header.
  enum class Switching : std::uint8_t { virtual_cut_through, wormhole };
  // Virtual channel of a packet within its class: one fixed by the card's channel, or any free one.
  enum class ChannelSelection : std::uint8_t { lane, any };
  // Choice of an arbiter among several packets: round robin, or the one injected first.
  enum class Arbitration : std::uint8_t { round_robin, age };
  TopologyDescription topology;
  std::string routing = "dimension-order";  // one of routing_names(): network/routing/arrangement.hpp
  Engine engine = Engine::packet;
  std::string table;                   // the text of the table file: network/routing/table_routing.hpp
  std::vector<LinkDescription> links;  // one for each of topology.link_classes()
  DataRate local_rate;                 // injection and ejection port of the router
  Time local_latency;                  // latency of these ports: of the cable where card and router are apart
  Time router_latency;                 // header arrival to header departure
  Time credit_latency;                 // tail leaves a buffer to credit usable upstream
  std::uint32_t virtual_channels = 2;  // per link, dateline classes included
  std::int64_t buffer_bytes = 0;       // per virtual channel and input port
  std::int64_t injection_buffer_bytes = 0;  // per card channel and injection FIFO
  std::int64_t ejection_buffer_bytes = 0;   // per ejection port
  // For each channel of a node's card. Each FIFO has an injection port of its own into the router.
  std::uint32_t injection_fifos = 1;
  InjectionRule injection_rule = InjectionRule::direction;
  std::uint32_t ejection_ports = 1;  // per node
  Switching switching = Switching::virtual_cut_through;
  ChannelSelection channel_selection = ChannelSelection::lane;
  Arbitration arbitration = Arbitration::round_robin;
  RouterPipeline pipeline;
  Time reconfiguration = Time::from_ns(1'000'000);
  std::vector<std::string> faults;  // network/faults/fault_schedule.hpp

  // Ports of a router towards one node; each has an input and an output, of which one may be unused.
  [[nodiscard]] std::uint32_t local_ports() const { return std::max(injection_fifos, ejection_ports); }
};

// Everything that an engine needs to build a network: the machine's description, and the parameters that
// depend on the card.
struct NetworkParameters {
  NetworkDescription description;
  std::uint32_t card_channels = 1;
  // The largest Packet::wire_bytes; every buffer must hold one such packet.
  std::uint32_t max_packet_wire_bytes = 0;
  // Cards rely on the packet order of network.hpp. A generator of independent packets does not, and then the
  // network is measured without the Resequencer.
  bool needs_order = true;
  // Number of the network among those of a node. Part of the order of events, and of the trace.
  std::uint8_t rail = 0;

  // The FIFOs of all channels of the card; Packet::channel is smaller. FIFO f of channel c is
  // f * card_channels + c.
  [[nodiscard]] std::uint32_t fifos_of_node() const { return description.injection_fifos * card_channels; }
};

}  // namespace apenet
