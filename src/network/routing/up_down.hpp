// up*/down*: a routing for any graph, including one with dead parts.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "network/routing/route_cache.hpp"
#include "network/routing/routing.hpp"
#include "network/routing/up_down_distances.hpp"
#include "network/routing/up_down_links.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

// A link to a router of lower rank (UpDownLinks) is up, any other down. A path consists of links up, then
// links down, and never goes up again (Schroeder et al., Autonet, IEEE J. Selected Areas in Communications 9,
// 1991). So there is no cycle: links up lead to ever lower ranks, then links down to ever higher ones. One
// class is enough.
//
// Memoryless: from a router with a path down to the destination, the shortest such path is taken; from any
// other router, the link up with the shortest total path. After a link down there is always a further one
// down. Paths need not be minimal. Among equal links, a hash of router and destination decides, so that the
// load spreads.
//
// A route is computed when it is first asked for. This fills a cache, so two threads must not ask one object.
class UpDownRouting final : public Routing {
 public:
  // See make_up_down().
  UpDownRouting(const Topology& topology, UpDownLinks links, const std::function<bool(PortRef)>& is_alive,
                std::uint64_t max_cached_routes);
  UpDownRouting(const UpDownRouting&) = delete;
  UpDownRouting& operator=(const UpDownRouting&) = delete;

  [[nodiscard]] std::uint32_t class_count() const override { return 1; }
  void route(const RouteQuery& query, RouteSteps& steps) const override {
    std::uint32_t port = cache_.find(query.router, query.destination);
    if (port == RouteCache::none) [[unlikely]]
      port = find_route(query.router, query.destination);
    if (port == RouteCache::none) return steps.clear(RouteChoice::only);
    steps.set_only({port, 0});
  }
  [[nodiscard]] bool keeps_order() const override { return true; }
  [[nodiscard]] bool is_memoryless() const override { return true; }

  [[nodiscard]] bool reaches(NodeId source, NodeId destination) const {
    return island_[source] == island_[destination] && island_[source] != no_island;
  }

 private:
  static constexpr std::uint32_t no_island = std::numeric_limits<std::uint32_t>::max();

  static constexpr OutLink no_link{0, RouteCache::none};

  std::uint32_t find_route(RouterId router, NodeId destination) const;
  [[nodiscard]] OutLink find_step(RouterId router, NodeId destination) const;
  void find_equal_links(RouterId router, RouterId target) const;

  UpDownLinks links_;
  std::vector<PortRef> attachments_;   // per endpoint
  std::vector<std::uint32_t> island_;  // per endpoint: nodes of one island reach each other
  mutable RouteCache cache_;
  mutable UpDownDistances distances_;
  mutable std::vector<OutLink> equal_links_;
};

// is_alive is called for every port: whether the link that leaves through it works, or, for an attachment,
// whether the node can be reached. A cable works if both its links do. No port of a dead router is alive.
//
// Several roots suit trees, where every two leaves have a common root and the roots share the load. If some
// connected pair has none (cables are dead, or the graph is not such a tree), only the first root is used. In
// an island without a root, the router with the lowest number is its root.
//
// max_cached_routes bounds the memory. It does not change a route.
[[nodiscard]] std::unique_ptr<const UpDownRouting> make_up_down(
    const Topology& topology, const std::vector<RouterId>& roots,
    const std::function<bool(PortRef)>& is_alive, std::uint64_t max_cached_routes = RouteCache::most_routes);

}  // namespace apenet
