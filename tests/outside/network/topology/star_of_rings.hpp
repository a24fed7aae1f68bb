// A toy topology, for the test that a topology needs nothing but its pair of files and its registration.
#pragma once

#include <cstdint>

#include "network/topology/description.hpp"

namespace apenet {

// A hub without nodes, joined by a cable to the first router of each ring.
struct StarOfRingsDescription {
  [[nodiscard]] static TopologyKind kind();
  std::uint32_t rings = 0;
  std::uint32_t nodes_per_ring = 4;
};

void list_fields(schema::Fields& fields, StarOfRingsDescription& star);
[[nodiscard]] Topology make_topology(const StarOfRingsDescription& star);

}  // namespace apenet
