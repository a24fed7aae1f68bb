#include "network/routing/up_down.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace apenet {

namespace {

constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();

struct Neighbour {
  RouterId router;
  std::uint16_t port;  // the port that leads there
};

// The neighbours of each router over working cables, in a flat array, because each destination traverses all
// of it.
class Neighbours {
 public:
  Neighbours(const Topology& topology, const std::function<bool(PortRef)>& is_alive) : first_{0} {
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const PortRef next = topology.neighbour({router, port});
        if (!next.is_connected() || !is_alive({router, port}) || !is_alive(next)) continue;
        all_.push_back({next.router, static_cast<std::uint16_t>(port)});
      }
      first_.push_back(all_.size());
    }
  }
  [[nodiscard]] const Neighbour* begin(RouterId router) const { return all_.data() + first_[router]; }
  [[nodiscard]] const Neighbour* end(RouterId router) const { return all_.data() + first_[router + 1]; }
  [[nodiscard]] RouterId router_count() const { return static_cast<RouterId>(first_.size() - 1); }

 private:
  std::vector<std::size_t> first_;  // per router, plus one
  std::vector<Neighbour> all_;
};

struct Span {
  const Neighbours& neighbours;
  RouterId router;
  [[nodiscard]] const Neighbour* begin() const { return neighbours.begin(router); }
  [[nodiscard]] const Neighbour* end() const { return neighbours.end(router); }
};

// Returns the routers in the order in which they are reached from `starts`. The starts must not have been
// reached before.
std::vector<RouterId> breadth_first(const Neighbours& neighbours, std::vector<RouterId> starts,
                                    std::vector<std::uint32_t>& distance) {
  std::vector<RouterId> reached = std::move(starts);
  for (const RouterId start : reached) distance[start] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {  // `reached` grows during the loop
    const RouterId router = reached[i];
    for (const Neighbour& next : Span{neighbours, router}) {
      if (distance[next.router] != never) continue;
      distance[next.router] = distance[router] + 1;
      reached.push_back(next.router);
    }
  }
  return reached;
}

// Returns the island of each router: connected routers have the same number.
std::vector<std::uint32_t> find_islands(const Neighbours& neighbours) {
  std::vector<std::uint32_t> island(neighbours.router_count(), never);
  std::vector<std::uint32_t> distance(neighbours.router_count(), never);
  std::uint32_t count = 0;
  for (RouterId start = 0; start < neighbours.router_count(); ++start) {
    if (island[start] != never) continue;
    for (const RouterId router : breadth_first(neighbours, {start}, distance)) island[router] = count;
    ++count;
  }
  return island;
}

}  // namespace

class UpDownBuilder {
 public:
  UpDownBuilder(const Topology& topology, const std::vector<RouterId>& roots,
                const std::function<bool(PortRef)>& is_alive)
      : topology_(topology),
        neighbours_(topology, is_alive),
        island_(find_islands(neighbours_)),
        routing_(new UpDownRouting(topology)),
        rank_(topology.router_count()),
        down_(topology.router_count()),
        total_(topology.router_count()),
        uses_(std::size_t{topology.router_count()} * topology.ports_per_router()) {
    rank_routers(roots);
    std::vector<std::vector<NodeId>> endpoints(topology.router_count());
    routing_->island_.assign(topology.endpoint_count(), UpDownRouting::no_island);
    for (NodeId node = 0; node < topology.endpoint_count(); ++node) {
      const PortRef attachment = topology.attachment(node);
      if (!is_alive(attachment)) {
        routing_->table_.set(attachment.router, node, {});
        continue;
      }
      routing_->island_[node] = island_[attachment.router];
      endpoints[attachment.router].push_back(node);
    }
    for (RouterId router = 0; router < topology.router_count(); ++router) {
      if (!endpoints[router].empty()) route_to(router, endpoints);
    }
  }

  // Every two connected routers that have nodes have a path up and then down.
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] std::unique_ptr<const UpDownRouting> take() { return std::move(routing_); }

 private:
  void route_to(RouterId target, const std::vector<std::vector<NodeId>>& endpoints) {
    measure_down(target);
    measure_total();
    for (const RouterId router : by_rank_) {
      if (router == target) continue;
      if (total_[router] == never) {
        if (island_[router] == island_[target] && !endpoints[router].empty()) is_complete_ = false;
        continue;
      }
      for (const NodeId endpoint : endpoints[target])
        routing_->table_.set(router, endpoint, {choose(router), 0});
    }
  }

  void rank_routers(const std::vector<RouterId>& roots) {
    std::vector<std::uint32_t> level(neighbours_.router_count(), never);
    breadth_first(neighbours_, roots, level);
    for (RouterId router = 0; router < neighbours_.router_count(); ++router) {
      if (level[router] == never) breadth_first(neighbours_, {router}, level);
    }
    by_rank_.resize(neighbours_.router_count());
    std::iota(by_rank_.begin(), by_rank_.end(), RouterId{0});
    std::sort(by_rank_.begin(), by_rank_.end(), [&](RouterId one, RouterId other) {
      return std::pair(level[one], one) < std::pair(level[other], other);
    });
    for (std::uint32_t rank = 0; rank < by_rank_.size(); ++rank) rank_[by_rank_[rank]] = rank;
  }

  // Computes the number of links of the shortest path that only goes down.
  void measure_down(RouterId target) {
    std::fill(down_.begin(), down_.end(), never);
    down_[target] = 0;
    reached_.assign(1, target);
    for (std::size_t i = 0; i < reached_.size(); ++i) {  // reached_ grows during the loop
      const RouterId router = reached_[i];
      for (const Neighbour& above : Span{neighbours_, router}) {
        if (rank_[above.router] > rank_[router] || down_[above.router] != never) continue;
        down_[above.router] = down_[router] + 1;
        reached_.push_back(above.router);
      }
    }
  }

  // Computes the number of links of the chosen path. Links up only lead to routers measured before.
  void measure_total() {
    for (const RouterId router : by_rank_) {
      total_[router] = down_[router];
      if (total_[router] != never) continue;
      for (const Neighbour& next : Span{neighbours_, router}) {
        if (rank_[next.router] > rank_[router] || total_[next.router] == never) continue;
        total_[router] = std::min(total_[router], total_[next.router] + 1);
      }
    }
  }

  std::uint16_t choose(RouterId router) {
    const bool goes_down = down_[router] != never;
    const std::vector<std::uint32_t>& distance = goes_down ? down_ : total_;
    std::uint32_t* const uses = uses_.data() + std::size_t{router} * topology_.ports_per_router();
    const Neighbour* best = nullptr;
    for (const Neighbour& next : Span{neighbours_, router}) {
      const bool is_down = rank_[next.router] > rank_[router];
      if (is_down != goes_down || distance[next.router] == never) continue;
      if (distance[next.router] + 1 != distance[router]) continue;
      if (best == nullptr || uses[next.port] < uses[best->port]) best = &next;
    }
    ++uses[best->port];
    return best->port;
  }

  const Topology& topology_;
  Neighbours neighbours_;
  std::vector<std::uint32_t> island_;
  std::unique_ptr<UpDownRouting> routing_;
  bool is_complete_ = true;
  std::vector<std::uint32_t> rank_;
  std::vector<RouterId> by_rank_;
  // Per router: links to the current target, or `never` if there is no such path.
  std::vector<std::uint32_t> down_;
  std::vector<std::uint32_t> total_;
  std::vector<std::uint32_t> uses_;  // per router and port: number of destinations
  std::vector<RouterId> reached_;
};

std::unique_ptr<const UpDownRouting> make_up_down(const Topology& topology,
                                                  const std::vector<RouterId>& roots,
                                                  const std::function<bool(PortRef)>& is_alive) {
  UpDownBuilder builder(topology, roots, is_alive);
  if (builder.is_complete() || roots.size() < 2) return builder.take();
  return make_up_down(topology, {roots.front()}, is_alive);
}

namespace {

RouterId central_router(const Neighbours& neighbours) {
  std::vector<std::uint32_t> distance(neighbours.router_count(), never);
  const RouterId one = breadth_first(neighbours, {0}, distance).back();
  distance.assign(distance.size(), never);
  RouterId router = breadth_first(neighbours, {one}, distance).back();
  for (std::uint32_t i = distance[router] / 2; i > 0; --i) {
    for (const Neighbour& next : Span{neighbours, router}) {
      if (distance[next.router] + 1 != distance[router]) continue;
      router = next.router;
      break;
    }
  }
  return router;
}

}  // namespace

std::vector<RouterId> suggested_roots(const Topology& topology) {
  const Neighbours neighbours(topology, [](PortRef) { return true; });
  std::vector<RouterId> with_nodes;
  for (NodeId node = 0; node < topology.endpoint_count(); ++node)
    with_nodes.push_back(topology.attachment(node).router);
  std::sort(with_nodes.begin(), with_nodes.end());
  with_nodes.erase(std::unique(with_nodes.begin(), with_nodes.end()), with_nodes.end());
  std::vector<std::uint32_t> distance(topology.router_count(), never);
  std::vector<RouterId> by_distance = breadth_first(neighbours, with_nodes, distance);
  const std::uint32_t farthest = distance[by_distance.back()];
  if (farthest == 0) return {central_router(neighbours)};
  std::erase_if(by_distance, [&](RouterId router) { return distance[router] != farthest; });
  std::sort(by_distance.begin(), by_distance.end());
  return by_distance;
}

}  // namespace apenet
