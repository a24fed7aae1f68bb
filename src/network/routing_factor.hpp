// RoutingFactor: a small network that stands for a part of a large one in the deadlock check.
#pragma once

#include <memory>

#include "network/routing.hpp"
#include "network/topology.hpp"

namespace apenet {

struct RoutingFactor {
  Topology topology;
  std::unique_ptr<const Routing> routing;
};

}  // namespace apenet
