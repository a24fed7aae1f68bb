// UpDownLinks: the working links of a network, each of which leads up or down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "network/topology/topology.hpp"

namespace apenet {

// A link that leaves a router.
struct OutLink {
  RouterId router;     // where it leads
  std::uint32_t port;  // through which it leaves
};

// The working links between routers, in the order of ports. Flat, because each search traverses many.
class LiveLinks {
 public:
  // is_alive: see make_up_down().
  LiveLinks(const Topology& topology, const std::function<bool(PortRef)>& is_alive);

  [[nodiscard]] std::uint32_t router_count() const { return static_cast<std::uint32_t>(first_.size() - 1); }
  [[nodiscard]] std::span<const OutLink> of(RouterId router) const {
    return {links_.data() + first_[router], links_.data() + first_[router + 1]};
  }

 private:
  std::vector<std::size_t> first_;  // per router, plus one
  std::vector<OutLink> links_;
};

// Routers are ranked by their distance from the nearest root, then by number; the lowest rank is 0. A link to
// a lower rank is up, any other down.
class UpDownLinks {
 public:
  // roots, is_alive: see make_up_down().
  UpDownLinks(const Topology& topology, const std::vector<RouterId>& roots,
              const std::function<bool(PortRef)>& is_alive);

  [[nodiscard]] std::uint32_t router_count() const { return links_.router_count(); }
  [[nodiscard]] std::span<const OutLink> of(RouterId router) const { return links_.of(router); }
  [[nodiscard]] std::uint32_t rank(RouterId router) const { return ranks_[router]; }
  // The ranks to which links up lead from the router of this rank. Searches work with ranks, because routers
  // that they visit in turn then lie side by side.
  [[nodiscard]] std::span<const std::uint32_t> above(std::uint32_t rank) const {
    return {above_.data() + first_above_[rank], above_.data() + first_above_[rank + 1]};
  }

  // Connected routers have the same island, a number below router_count().
  [[nodiscard]] std::uint32_t island(RouterId router) const { return islands_[router]; }

  // Whether every two of these routers that are connected have a path up and then down.
  [[nodiscard]] bool connect(const std::vector<RouterId>& routers) const;

 private:
  LiveLinks links_;
  std::vector<std::uint32_t> ranks_;        // per router
  std::vector<std::uint32_t> islands_;      // per router
  std::vector<std::uint32_t> first_above_;  // per rank, plus one
  std::vector<std::uint32_t> above_;
};

// The routers with at least one node that can be reached, in ascending order.
[[nodiscard]] std::vector<RouterId> routers_with_nodes(const Topology& topology,
                                                       const std::function<bool(PortRef)>& is_alive);

// Returns suitable roots. If some routers have no nodes: those of them farthest from any node, the spines of
// a tree. Otherwise one router in the middle of a long path: half-way between a router farthest from router 0
// and one farthest from that one.
[[nodiscard]] std::vector<RouterId> suggested_roots(const Topology& topology);

}  // namespace apenet
