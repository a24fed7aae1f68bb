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

namespace apenet {

struct LinkDescription {
  DataRate rate;  // payload, header and footer alike
  Time latency;   // serialiser, cable, deserialiser
};

// A parallel-ports generalised fat tree, PGFT(h; m; 1, w; 1, p) of Zahavi ("Fat-tree routing and node
// ordering providing contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72,
// 2012), of two or three levels of switches. Level 0 are the leaves.
struct FatTreeDescription {
  std::vector<std::uint32_t> children;  // m: below a switch of each level: nodes per leaf, leaves per ...
  std::vector<std::uint32_t> parents;   // w: different switches above a switch of each level but the last
  std::vector<std::uint32_t> cables;    // p: parallel cables to each of them
};

struct NetworkDescription {
  // none: the card needs no network (ideal).
  enum class Topology : std::uint8_t { none, torus, mesh, fat_tree, crossbar, graph };
  enum class Routing : std::uint8_t { dimension_order, minimal_adaptive, destination_mod, up_down, table };
  enum class Engine : std::uint8_t { packet };
  Topology topology = Topology::none;
  Routing routing = Routing::dimension_order;
  Engine engine = Engine::packet;
  std::vector<std::uint32_t> dims;  // torus, mesh: nodes per dimension, X first
  FatTreeDescription fat_tree;
  std::uint32_t nodes = 0;  // crossbar
  std::string graph;        // the text of the graph file: network/graph.hpp
  std::string table;        // the text of the table file: network/table_routing.hpp
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
};

}  // namespace apenet
