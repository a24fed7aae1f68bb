// User-defined routing tables, read from a text file (APELink's routing is programmable: PoS(LAT2005)100,
// section 1).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "network/routing/route_table.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// One rule per line. For each router and destination, the first matching line applies:
//
//   ROUTERS DESTINATIONS PORT [CLASS]
//
//   ROUTERS       * or a router's name: leaf0, (0,1,0)
//   DESTINATIONS  * or a node number, or a range: 7, 4-7
//   PORT          +x, 12; CLASS 0 to 15, default 0
//
// On a torus or mesh both may be given by coordinates, each a number, a range or *: (*,0-1,2). The
// destination's own router needs no rule. `dims`: the dimensions of a cube, or empty.
//
// Throws std::invalid_argument. It names network.table_file and the line for a line that has no effect or
// cannot be parsed; and router and destination for a packet that matches no line, a port that leads nowhere,
// and a loop. Deadlock is checked elsewhere, as for every routing.
[[nodiscard]] std::unique_ptr<const RouteTable> read_table(std::string_view text, const Topology& topology,
                                                           const std::vector<std::uint32_t>& dims);

}  // namespace apenet
