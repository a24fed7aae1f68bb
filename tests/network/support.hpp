// Helpers for the tests of topologies and routings.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet::testing {

// Returns the message of the std::invalid_argument that the call throws. If it throws none, fails the test
// and returns an empty string.
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// Follows the single step from router to router, from source to destination. Returns the links used. Fails if
// the path is longer than the number of routers.
inline std::vector<PortRef> path_of(const Topology& topology, const Routing& routing, NodeId source,
                                    NodeId destination) {
  std::vector<PortRef> path;
  PortRef at = topology.attachment(source);
  RouteSteps steps;
  for (std::uint32_t i = 0; i <= topology.router_count(); ++i) {
    routing.route({at.router, destination, at.port, 0, i == 0}, steps);
    if (steps.count() != 1) break;
    const PortRef port{at.router, steps[0].port};
    if (port == topology.attachment(destination)) return path;
    path.push_back(port);
    at = topology.neighbour(port);
    if (!at.is_connected()) break;
  }
  ADD_FAILURE() << "no path from " << source << " to " << destination;
  return path;
}

}  // namespace apenet::testing
