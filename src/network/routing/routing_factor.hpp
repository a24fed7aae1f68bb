// RoutingFactor: a small network that represents a part of a large one in the deadlock check.
#pragma once

#include <memory>

#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

struct RoutingFactor {
  Topology topology;
  std::unique_ptr<const Routing> routing;
};

}  // namespace apenet
