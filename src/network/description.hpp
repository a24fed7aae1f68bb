// NetworkDescription: links, routers and their arrangement as plain data, before anything is wired.
//
// Every field is in base units. The names in errors are those of the TOML files: network.dims,
// router.buffer_bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"
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
  fields("word_bytes", link.rate.bytes, count, "what one direction moves in word_cycles");
  fields("word_cycles", link.rate.per_cycles, count, "clocks in which one direction moves word_bytes");
  fields("latency_ns", link.latency, not_negative, "serialiser, cable, deserialiser");
  fields("bit_error_rate", link.bit_error_rate, probability.optional(),
         "probability that a bit arrives wrong");
}

// A parallel-ports generalised fat tree, PGFT(h; m; 1, w; 1, p) of Zahavi ("Fat-tree routing and node
// ordering providing contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72,
// 2012), of two or three levels of switches. Level 0 are the leaves.
struct FatTreeDescription {
  std::vector<std::uint32_t> children;  // m: below a switch of each level: nodes per leaf, leaves per ...
  std::vector<std::uint32_t> parents;   // w: different switches above a switch of each level but the last
  std::vector<std::uint32_t> cables;    // p: parallel cables to each of them
};

// The inside of a router as the flit engine runs it (docs/models/flit-engine.md). What router_latency leaves
// over beyond these stages is the depth of the buffer write stage.
struct RouterPipeline {
  static constexpr std::uint32_t from_latency = 0xffffffff;

  std::int64_t clock_hz = 0;     // of the router: a cycle of the engine
  std::uint32_t flit_bytes = 0;  // 0: what the first link moves at a time (LinkDescription::rate.bytes)
  std::uint32_t routing_delay_cycles = 1;  // 0: looked up one router ahead
  std::uint32_t vc_allocation_delay_cycles = 1;
  std::uint32_t switch_allocation_delay_cycles = 1;
  std::uint32_t switch_traversal_delay_cycles = 1;
  // From a credit's arrival at the upstream router to its use; from_latency: what credit_latency asks for.
  std::uint32_t credit_delay_cycles = from_latency;
};

struct NetworkDescription {
  // none: the card needs no network (ideal).
  enum class Topology : std::uint8_t { none, torus, mesh, fat_tree, crossbar, graph };
  enum class Routing : std::uint8_t {
    dimension_order,
    dimension_order_entry_class,
    minimal_adaptive,
    destination_mod,
    up_down,
    table
  };
  enum class Engine : std::uint8_t { packet, flit };
  // Of a blocked packet: all in one buffer, or spread over the routers behind its header.
  enum class Switching : std::uint8_t { virtual_cut_through, wormhole };
  // Which virtual channel within its class a packet takes: one fixed by the card's channel, or any free one.
  enum class ChannelSelection : std::uint8_t { lane, any };
  Topology topology = Topology::none;
  Routing routing = Routing::dimension_order;
  Engine engine = Engine::packet;
  std::vector<std::uint32_t> dims;  // torus, mesh: nodes per dimension, X first
  FatTreeDescription fat_tree;
  std::uint32_t nodes = 0;  // crossbar
  std::string graph;        // the text of the graph file: network/topology/graph.hpp
  std::string table;        // the text of the table file: network/routing/table_routing.hpp
  // Cubes: one per dimension. Fat trees: one per level, of the cables above its switches. Graphs: that of
  // cables without a name, then the named ones. Crossbars: none.
  std::vector<LinkDescription> links;
  std::vector<std::string> link_names;      // graphs: of links[1] and on
  DataRate local_rate;                      // injection and ejection port of the router
  Time local_latency;                       // of these ports: of the cable where card and router are apart
  Time router_latency;                      // header arrival to header departure
  Time credit_latency;                      // tail leaves a buffer to credit usable upstream
  std::uint32_t virtual_channels = 2;       // per link, dateline classes included
  std::int64_t buffer_bytes = 0;            // per virtual channel and input port
  std::int64_t injection_buffer_bytes = 0;  // per card channel
  std::int64_t ejection_buffer_bytes = 0;   // per node
  Switching switching = Switching::virtual_cut_through;
  ChannelSelection channel_selection = ChannelSelection::lane;
  RouterPipeline pipeline;
  Time reconfiguration = Time::from_ns(1'000'000);
  std::vector<std::string> faults;  // network/faults/fault_schedule.hpp
};

// The keys of [network]. Which of them belong to a topology: topology_keys() in network/describe.hpp.
inline void list_fields(schema::Fields& fields, NetworkDescription& network) {
  using namespace schema::ranges;
  fields("topology", network.topology,
         schema::Choice{"none", "torus", "mesh", "fat-tree", "crossbar", "graph"}, "shape of the network");
  fields("dims", network.dims, schema::List{count, 1, 6}.optional(), "nodes along each dimension, X first");
  fields("children", network.fat_tree.children, schema::List{count, 2, 3}.optional(),
         "nodes of a leaf, leaves below a switch of the next level, and so on");
  fields("parents", network.fat_tree.parents, schema::List{count, 1, 2}.optional(),
         "switches above a switch of each level but the last");
  fields("cables", network.fat_tree.cables, schema::List{count, 1, 2}.optional(),
         "parallel cables to each parent, of each level but the last; absent: 1");
  fields("nodes", network.nodes, count.or_another_key(), "nodes of a crossbar");
  fields("graph_file", network.graph, text_of_file.optional(), "file with routers, nodes and cables");
  fields("routing", network.routing,
         schema::Choice{"dimension-order", "dimension-order-entry-class", "minimal-adaptive",
                        "destination-mod", "up-down", "table"}
             .optional(),
         "how packets find their way");
  fields("table_file", network.table, text_of_file.optional(), "file with the routes of routing = \"table\"");
  fields("reconfiguration_us", network.reconfiguration, not_negative.optional(),
         "from a fault until the network runs with routes around it");
}

}  // namespace apenet
