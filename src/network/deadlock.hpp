// The deadlock check: is the channel-dependency graph of a routing acyclic?
#pragma once

#include <string>

#include "network/routing.hpp"
#include "network/topology.hpp"

namespace apenet {

// A cycle of channels each of which waits for the next, as "(0)+x class 0 -> (1)+x class 0 -> (0)+x class 0";
// empty when there is none, which is sufficient and, for a routing without choice, necessary for freedom from
// deadlock (Dally and Seitz, 1987). Every router that can hold a packet for a destination counts as a start.
// Time and memory: routers x endpoints steps.
[[nodiscard]] std::string find_dependency_cycle(const Topology& topology, const Routing& routing);

}  // namespace apenet
