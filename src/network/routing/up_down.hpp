// up*/down*: a routing for any graph, including one with dead parts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "network/routing/route_table.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Routers are ranked by their distance from the nearest root, then by number. A link to a lower rank is up,
// any other down. A path consists of links up, then links down, and never goes up again (Schroeder et al.,
// Autonet, IEEE J. Selected Areas in Communications 9, 1991). So there is no cycle: links up lead to ever
// lower ranks, then links down to ever higher ones. One class is enough.
//
// Memoryless: from a router with a path down to the destination, the shortest such path is taken; from any
// other router, the link up with the shortest total path. After a link down there is always a further one
// down. Paths need not be minimal. Among equal links, a destination takes at each router the port that the
// fewest earlier destinations use, so that the load spreads.
class UpDownRouting final : public Routing {
 public:
  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override { table_.route(query, steps); }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

  [[nodiscard]] bool reaches(NodeId source, NodeId destination) const {
    return island_[source] == island_[destination] && island_[source] != no_island;
  }

 private:
  friend class UpDownBuilder;
  static constexpr std::uint32_t no_island = std::numeric_limits<std::uint32_t>::max();

  explicit UpDownRouting(const Topology& topology) : table_(topology) {}

  RouteTable table_;
  std::vector<std::uint32_t> island_;  // per endpoint: nodes of one island reach each other
};

// is_alive is called for every port: whether the link that leaves through it works, or, for an attachment,
// whether the node can be reached. A cable works if both its links do. No port of a dead router is alive.
//
// Several roots suit trees, where every two leaves have a common root and the roots share the load. If some
// connected pair has none (cables are dead, or the graph is not such a tree), only the first root is used. In
// an island without a root, the router with the lowest number is its root.
[[nodiscard]] std::unique_ptr<const UpDownRouting> make_up_down(const Topology& topology,
                                                                const std::vector<RouterId>& roots,
                                                                const std::function<bool(PortRef)>& is_alive);

// Returns suitable roots. If some routers have no nodes: those of them farthest from any node, the spines of
// a tree. Otherwise one router in the middle of a long path: half-way between a router farthest from router 0
// and one farthest from that one.
[[nodiscard]] std::vector<RouterId> suggested_roots(const Topology& topology);

}  // namespace apenet
