// Crossbars: one switch with all nodes attached.
#pragma once

#include <cstdint>

#include "network/topology/description.hpp"

namespace apenet {

struct CrossbarDescription {
  [[nodiscard]] static TopologyKind kind();
  std::uint32_t nodes = 0;
};

inline void list_fields(schema::Fields& fields, CrossbarDescription& crossbar) {
  using namespace schema::ranges;
  fields("nodes", crossbar.nodes, count, "nodes of a crossbar");
}

// Throws std::invalid_argument, which names network.nodes, unless there are 1 to 16384 nodes.
[[nodiscard]] Topology make_topology(const CrossbarDescription& crossbar);

}  // namespace apenet
