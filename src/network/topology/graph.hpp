// A free graph of routers, read from a text file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "network/topology/topology.hpp"

namespace apenet {

// One statement a line:
//
//   router NAME PORTS         a router with ports 0 .. PORTS-1
//   node NAME:PORT            the next node, attached to this port; NAME:4-7 for four nodes
//   cable NAME:PORT NAME:PORT [LINK]   both directions; LINK is one of link_names, none: the default link
//   unused NAME:PORT          nothing is plugged in here; also NAME:4-7
//
// A router is declared before it is used. Every port is used once, or declared unused; no cable ends where it
// begins; every router is reached from every other one. Names are made of letters, digits and ( ) , . _ + -.
// Throws std::invalid_argument naming network.graph_file, the line and what was expected.
[[nodiscard]] Topology read_graph(std::string_view text, const std::vector<std::string>& link_names);

}  // namespace apenet
