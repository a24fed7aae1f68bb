// Routing tables of the user's, read from a text file (APELink's routing is programmable: PoS(LAT2005)100,
// section 1).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "network/routing/route_table.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// One rule a line; for each router and destination the first line that matches decides:
//
//   ROUTERS DESTINATIONS PORT [CLASS]
//
//   ROUTERS       * or a router's name: leaf0, (0,1,0)
//   DESTINATIONS  * or a node's number, or a range: 7, 4-7
//   PORT          +x, 12; CLASS 0 to 15, without it 0
//
// On a torus or mesh both may be given by coordinates, each a number, a range or *: (*,0-1,2). At the
// destination's own router nothing needs to be said. `dims` are those of a cube, or empty.
//
// Throws std::invalid_argument naming network.table_file and the line, for a line that decides nothing and
// for one that cannot be read; and naming router and destination, for a packet that finds no line, a port
// that leads nowhere, and a loop. Deadlock is checked elsewhere, as for every routing.
[[nodiscard]] std::unique_ptr<const RouteTable> read_table(std::string_view text, const Topology& topology,
                                                           const std::vector<std::uint32_t>& dims);

}  // namespace apenet
