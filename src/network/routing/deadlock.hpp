// The deadlock check: whether packets can wait for each other in a cycle.
#pragma once

#include <cstdint>
#include <string>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

struct DeadlockReport {
  std::string cycle;               // as find_dependency_cycle(); the other members count what was examined
  std::uint64_t channels = 0;      // number of (link, class) that packets wait for
  std::uint64_t dependencies = 0;  // number of dependencies between them
  // Number of smaller networks checked instead of this one; 0: this one was checked.
  std::uint32_t factors = 0;
  bool has_escape = false;   // adaptive routing: the channels are the escape channels
  bool has_bubbles = false;  // the channels are rings, each with a bubble

  // Returns for example "no cycle among 96 dependencies of 64 channels".
  [[nodiscard]] std::string proof() const;
};

// Returns a cycle of channels each of which waits for the next, as "(0)+x class 0 -> (1)+x class 0 -> (0)+x
// class 0". Empty if there is none: then the routing cannot deadlock. Follows all packets from every endpoint
// to every endpoint, through every state (router, input port, input class) that they can reach and every step
// offered there.
//
// Routing without adaptive choice: the graph of channel dependencies must have no cycle. This is sufficient,
// and with one step per state also necessary (Dally and Seitz, IEEE Trans. Computers C-36, 1987). A packet
// that draws its step waits for the drawn one, so every step counts.
//
// Adaptive choice with an escape: the graph consists of the channels that are an escape anywhere, with the
// dependencies across any number of other channels in between (Duato, IEEE Trans. Parallel and Distributed
// Systems 4, 1993). Having no cycle is sufficient. It also implies that the escapes lead to the destination
// from every state: each state has one, and an endless path of escapes would be a cycle.
//
// A class with bubbles (Routing::bubble_class): each of its rings counts as one channel, because a packet
// that goes on along its ring can always move in the end. A packet fills one buffer at most, so that of an
// adaptive choice only the direct dependencies between escapes count (Puente et al., J. Parallel Distrib.
// Comput. 61, 2001). No cycle among the rings is sufficient.
//
// If Routing::factors() returns smaller networks, they are checked instead of the whole.
// Time: states x endpoints; for the extended graph, times the states that a packet can reach. Memory: one bit
// per pair of channels of neighbouring routers; for the extended graph, per pair of channels.
[[nodiscard]] DeadlockReport check_deadlock(const Topology& topology, const Routing& routing);
[[nodiscard]] std::string find_dependency_cycle(const Topology& topology, const Routing& routing);

}  // namespace apenet
