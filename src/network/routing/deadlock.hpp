// The deadlock check: can packets wait for each other in a circle?
#pragma once

#include <cstdint>
#include <string>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

struct DeadlockReport {
  std::string cycle;               // find_dependency_cycle; the rest counts what was looked at
  std::uint64_t channels = 0;      // (link, class) that packets wait for
  std::uint64_t dependencies = 0;  // pairs of them
  std::uint32_t factors = 0;       // smaller networks that stand for this one; 0: itself
  bool has_escape = false;         // adaptive: the channels are the escape channels

  // "no cycle among 96 dependencies of 64 channels ..."
  [[nodiscard]] std::string proof() const;
};

// A cycle of channels each of which waits for the next, as "(0)+x class 0 -> (1)+x class 0 -> (0)+x class 0";
// empty when there is none, which means that the routing cannot deadlock. Followed are all packets from every
// endpoint to every endpoint, through every state (router, input port, input class) that they can reach and
// every step offered there.
//
// Routing without adaptive choice: the graph of channel dependencies must have no cycle; sufficient, and for
// one step a state also necessary (Dally and Seitz, IEEE Trans. Computers C-36, 1987). A packet that draws
// its step waits for what it drew, so every step counts.
//
// Adaptive choice with an escape: the graph is that of the channels that are an escape anywhere, extended by
// the dependencies across any number of other channels in between (Duato, IEEE Trans. Parallel and
// Distributed Systems 4, 1993): sufficient. That the escapes lead to the destination from every state
// follows: each state has one, and a path of escapes that does not end would be a cycle.
//
// Where Routing::factors names smaller networks, those are checked in place of the whole.
// Time: states x endpoints, for the extended graph times the states that a packet can reach. Memory: a bit
// for each pair of channels of neighbouring routers, for the extended graph for each pair of channels.
[[nodiscard]] DeadlockReport check_deadlock(const Topology& topology, const Routing& routing);
[[nodiscard]] std::string find_dependency_cycle(const Topology& topology, const Routing& routing);

}  // namespace apenet
