// Reads a free graph of routers from a text file.
#pragma once

#include <string>
#include <vector>

#include "network/topology/description.hpp"

namespace apenet {

struct GraphDescription {
  [[nodiscard]] static TopologyKind kind();
  std::string text;                     // text of the graph file
  std::vector<std::string> link_names;  // names of the link classes from 1 on; 0: cables without a name
};

inline void list_fields(schema::Fields& fields, GraphDescription& graph) {
  using namespace schema::ranges;
  fields("graph_file", graph.text, text_of_file, "file with routers, nodes and cables");
  fields.tables("links", graph.link_names);
}

// One statement per line:
//
//   router NAME PORTS         a router with ports 0 .. PORTS-1
//   node NAME:PORT            the next node, attached to this port; NAME:4-7 for four nodes
//   cable NAME:PORT NAME:PORT [LINK]   both directions; LINK is one of link_names; default: the default link
//   unused NAME:PORT          nothing is attached here; also NAME:4-7
//
// A router must be declared before it is used. Every port is used once or declared unused. No cable connects
// a router to itself. Every router can be reached from every other one. Names consist of letters, digits and
// ( ) , . _ + -.
// Throws std::invalid_argument, which names network.graph_file, the line and what was expected.
[[nodiscard]] Topology make_topology(const GraphDescription& graph);
[[nodiscard]] std::vector<std::string> link_sections(const GraphDescription& graph);

}  // namespace apenet
