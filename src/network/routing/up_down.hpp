// up*/down*: a routing for any graph, whole or with parts of it dead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "network/routing/route_table.hpp"
#include "network/routing/routing.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// Routers are ranked by their distance from the nearest root, then by number; a link to a lower rank is up,
// any other down. A path is some links up, then some down, never up again (Schroeder et al., Autonet, IEEE J.
// Selected Areas in Communications 9, 1991). So no cycle closes: links up are followed by links to ever lower
// ranks, then by links down to ever higher ones. One class.
//
// Without memory: from a router with a way down to the destination that way is taken, by the fewest links;
// from any other the link up with which the whole path is shortest. After a link down there is always one
// further down. Paths need not be minimal. Among equal ways a destination takes, at each router, the port
// that fewest destinations before it have taken, so that they spread.
class UpDownRouting final : public Routing {
 public:
  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override { table_.route(query, steps); }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

  [[nodiscard]] bool reaches(NodeId source, NodeId destination) const {
    return island_[source] == island_[destination] && island_[source] != no_island;
  }
  // Who cannot reach whom, in a sentence with names; empty when every node reaches every other one.
  [[nodiscard]] std::string unreachable(const Topology& topology) const;

 private:
  friend class UpDownBuilder;
  static constexpr std::uint32_t no_island = std::numeric_limits<std::uint32_t>::max();

  explicit UpDownRouting(const Topology& topology) : table_(topology) {}

  RouteTable table_;
  std::vector<std::uint32_t> island_;  // per endpoint: those of one island reach each other
};

// is_alive is asked for every port: whether the link that leaves through it works, or for an attachment
// whether the node can be reached. A cable works if both its links do; of a dead router no port is alive.
//
// Several roots suit trees, where every two leaves have a root in common and the roots share the load; where
// some pair that is connected has none (cables are dead, or the graph is no such tree) the first root alone
// is taken. Islands without a root have their router with the lowest number as root.
[[nodiscard]] std::unique_ptr<const UpDownRouting> make_up_down(const Topology& topology,
                                                                const std::vector<RouterId>& roots,
                                                                const std::function<bool(PortRef)>& is_alive);
[[nodiscard]] std::unique_ptr<const UpDownRouting> make_up_down(const Topology& topology, RouterId root,
                                                                const std::function<bool(PortRef)>& is_alive);

// The roots that a topology suggests. Where some routers have no nodes: those of them farthest from any node,
// the spines of a tree. Otherwise one router in the middle of a long path: half-way between a router farthest
// from router 0 and one farthest from that.
[[nodiscard]] std::vector<RouterId> suggested_roots(const Topology& topology);

}  // namespace apenet
