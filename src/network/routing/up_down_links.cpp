#include "network/routing/up_down_links.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace apenet {

namespace {

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

// Returns the routers in the order in which they are reached from `starts`. The starts must not have been
// reached before.
std::vector<RouterId> breadth_first(const LiveLinks& links, std::vector<RouterId> starts,
                                    std::vector<std::uint32_t>& distance) {
  std::vector<RouterId> reached = std::move(starts);
  for (const RouterId start : reached) distance[start] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {  // `reached` grows during the loop
    const RouterId router = reached[i];
    for (const OutLink& next : links.of(router)) {
      if (distance[next.router] != never) continue;
      distance[next.router] = distance[router] + 1;
      reached.push_back(next.router);
    }
  }
  return reached;
}

}  // namespace

LiveLinks::LiveLinks(const Topology& topology, const std::function<bool(PortRef)>& is_alive) : first_{0} {
  for (RouterId router = 0; router < topology.router_count(); ++router) {
    for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
      const PortRef next = topology.neighbour({router, port});
      if (!next.is_connected() || !is_alive({router, port}) || !is_alive(next)) continue;
      links_.push_back({next.router, port});
    }
    first_.push_back(links_.size());
  }
}

UpDownLinks::UpDownLinks(const Topology& topology, const std::vector<RouterId>& roots,
                         const std::function<bool(PortRef)>& is_alive)
    : links_(topology, is_alive), ranks_(router_count()), islands_(router_count(), never), first_above_{0} {
  std::vector<std::uint32_t> level(router_count(), never);
  std::vector<std::uint32_t> distance(router_count(), never);
  breadth_first(links_, roots, level);
  for (RouterId router = 0; router < router_count(); ++router) {
    if (level[router] == never) breadth_first(links_, {router}, level);
    if (islands_[router] != never) continue;
    for (const RouterId reached : breadth_first(links_, {router}, distance)) islands_[reached] = router;
  }
  std::vector<RouterId> by_rank(router_count());
  std::iota(by_rank.begin(), by_rank.end(), RouterId{0});
  std::sort(by_rank.begin(), by_rank.end(), [&](RouterId one, RouterId other) {
    return std::pair(level[one], one) < std::pair(level[other], other);
  });
  for (std::uint32_t rank = 0; rank < router_count(); ++rank) ranks_[by_rank[rank]] = rank;
  for (std::uint32_t rank = 0; rank < router_count(); ++rank) {
    for (const OutLink& link : links_.of(by_rank[rank])) {
      if (ranks_[link.router] < rank) above_.push_back(ranks_[link.router]);
    }
    first_above_.push_back(static_cast<std::uint32_t>(above_.size()));
  }
}

// Marks what reaches a target, for as many targets at a time as a word has bits.
bool UpDownLinks::connect(const std::vector<RouterId>& routers) const {
  constexpr std::size_t bits = 64;
  std::vector<std::uint64_t> reached(router_count());    // per rank: the targets to which it has a path
  std::vector<std::uint64_t> in_island(router_count());  // per island: the targets in it
  for (std::size_t first = 0; first < routers.size(); first += bits) {
    std::fill(reached.begin(), reached.end(), 0);
    std::fill(in_island.begin(), in_island.end(), 0);
    for (std::size_t i = 0; i < std::min(bits, routers.size() - first); ++i) {
      const RouterId target = routers[first + i];
      reached[rank(target)] |= std::uint64_t{1} << i;
      in_island[island(target)] |= std::uint64_t{1} << i;
    }
    for (std::uint32_t rank = router_count(); rank-- > 0;) {
      for (const std::uint32_t higher : above(rank)) reached[higher] |= reached[rank];
    }
    for (std::uint32_t rank = 0; rank < router_count(); ++rank) {
      for (const std::uint32_t higher : above(rank)) reached[rank] |= reached[higher];
    }
    const auto reaches_all = [&](RouterId router) {
      return (in_island[island(router)] & ~reached[rank(router)]) == 0;
    };
    if (!std::all_of(routers.begin(), routers.end(), reaches_all)) return false;
  }
  return true;
}

std::vector<RouterId> routers_with_nodes(const Topology& topology,
                                         const std::function<bool(PortRef)>& is_alive) {
  std::vector<RouterId> routers;
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
    const PortRef attachment = topology.attachment(node);
    if (is_alive(attachment)) routers.push_back(attachment.router);
  }
  std::sort(routers.begin(), routers.end());
  routers.erase(std::unique(routers.begin(), routers.end()), routers.end());
  return routers;
}

namespace {

RouterId central_router(const LiveLinks& links) {
  std::vector<std::uint32_t> distance(links.router_count(), never);
  const RouterId one = breadth_first(links, {0}, distance).back();
  distance.assign(distance.size(), never);
  RouterId router = breadth_first(links, {one}, distance).back();
  for (std::uint32_t i = distance[router] / 2; i > 0; --i) {
    for (const OutLink& next : links.of(router)) {
      if (distance[next.router] + 1 != distance[router]) continue;
      router = next.router;
      break;
    }
  }
  return router;
}

}  // namespace

std::vector<RouterId> suggested_roots(const Topology& topology) {
  const auto always = [](PortRef) { return true; };
  const LiveLinks links(topology, always);
  std::vector<std::uint32_t> distance(topology.router_count(), never);
  std::vector<RouterId> by_distance = breadth_first(links, routers_with_nodes(topology, always), distance);
  const std::uint32_t farthest = distance[by_distance.back()];
  if (farthest == 0) return {central_router(links)};
  std::erase_if(by_distance, [&](RouterId router) { return distance[router] != farthest; });
  std::sort(by_distance.begin(), by_distance.end());
  return by_distance;
}

}  // namespace apenet
