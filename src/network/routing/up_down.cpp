#include "network/routing/up_down.hpp"

#include <utility>

#include "kernel/random.hpp"

namespace apenet {

namespace {

// Which of `count` equal links: at each router, `count` consecutive destinations take each link once,
// beginning with a random one. Plain D-mod-K would choose the same of the links at every router of a path, so
// that most paths would remain unused.
std::uint32_t spread(RouterId router, NodeId destination, std::uint32_t count) {
  const std::uint64_t start = mix64(std::uint64_t{router} << 32U | destination / count);
  return static_cast<std::uint32_t>((start % count + destination) % count);
}

}  // namespace

UpDownRouting::UpDownRouting(const Topology& topology, UpDownLinks links,
                             const std::function<bool(PortRef)>& is_alive, std::uint64_t max_cached_routes)
    : links_(std::move(links)), cache_(topology, max_cached_routes), distances_(links_) {
  for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
    const PortRef attachment = topology.attachment(node);
    attachments_.push_back(attachment);
    island_.push_back(is_alive(attachment) ? links_.island(attachment.router) : no_island);
  }
}

// Computes a route that the cache does not hold, and others to the same destination. Where the cache has a
// place for each, those from all routers: together they cost little more than a few alone. Else the rest of
// the path. Between neighbours none, because their route needs no search.
std::uint32_t UpDownRouting::find_route(RouterId router, NodeId destination) const {
  const std::uint32_t island = island_[destination];
  if (island == no_island || links_.island(router) != island) return RouteCache::none;
  const RouterId end = attachments_[destination].router;
  const OutLink first = find_step(router, destination);
  if (first.port == RouteCache::none) return RouteCache::none;
  cache_.set(router, destination, first.port);
  if (first.router == end) return first.port;
  if (cache_.has_all_places()) {
    for (RouterId other = 0; other < links_.router_count(); ++other) {
      const OutLink step = links_.island(other) == island ? find_step(other, destination) : no_link;
      if (step.port != RouteCache::none) cache_.set(other, destination, step.port);
    }
    return first.port;
  }
  for (RouterId next = first.router; next != end;) {
    const OutLink step = find_step(next, destination);
    cache_.set(next, destination, step.port);
    next = step.router;
  }
  return first.port;
}

// Requires a router of the destination's island.
OutLink UpDownRouting::find_step(RouterId router, NodeId destination) const {
  const PortRef end = attachments_[destination];
  if (router == end.router) return {router, end.port};
  find_equal_links(router, end.router);
  const auto count = static_cast<std::uint32_t>(equal_links_.size());
  return count == 0 ? no_link : equal_links_[spread(router, destination, count)];
}

// A direct link is the shortest path. This saves the measurement where neighbours exchange messages, and on
// the last step of every path.
void UpDownRouting::find_equal_links(RouterId router, RouterId target) const {
  equal_links_.clear();
  for (const OutLink& link : links_.of(router)) {
    if (link.router == target) equal_links_.push_back(link);
  }
  if (!equal_links_.empty()) return;
  const std::uint32_t here = links_.rank(router);
  distances_.aim_at(links_.rank(target));
  const UpDownDistances::Distance distance = distances_.measure(here);
  if (distance.is_endless()) return;
  for (const OutLink& link : links_.of(router)) {
    const bool is_down = links_.rank(link.router) > here;
    const UpDownDistances::Distance next = distances_.of(links_.rank(link.router));
    if (is_down != distance.goes_down || (is_down && !next.goes_down)) continue;
    if (next.links == distance.links - 1) equal_links_.push_back(link);
  }
}

std::unique_ptr<const UpDownRouting> make_up_down(const Topology& topology,
                                                  const std::vector<RouterId>& roots,
                                                  const std::function<bool(PortRef)>& is_alive,
                                                  std::uint64_t max_cached_routes) {
  UpDownLinks links(topology, roots, is_alive);
  if (roots.size() > 1 && !links.connect(routers_with_nodes(topology, is_alive))) {
    links = UpDownLinks(topology, {roots.front()}, is_alive);
  }
  return std::make_unique<UpDownRouting>(topology, std::move(links), is_alive, max_cached_routes);
}

}  // namespace apenet
