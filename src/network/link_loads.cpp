#include "network/link_loads.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "kernel/refuse.hpp"
#include "network/routing/arrangement.hpp"

namespace apenet {

namespace {

// Where a share of a flow is, and how it came there. A map orders these, so that sums do not depend on
// hashes.
struct FlowPosition {
  RouterId router = 0;
  std::uint32_t input_port = 0;
  std::uint32_t input_class = 0;
  bool is_injected = false;

  bool operator<(const FlowPosition& other) const {
    return std::tie(router, input_port, input_class, is_injected) <
           std::tie(other.router, other.input_port, other.input_class, other.is_injected);
  }
};

class LoadWalk {
 public:
  LoadWalk(const Topology& topology, const Routing& routing)
      : topology_(topology),
        routing_(routing),
        bytes_(std::size_t{topology.router_count()} * topology.ports_per_router()) {}

  // Returns the average number of links that a packet crosses.
  double add(const Flow& flow) {
    const PortRef source = topology_.attachment(flow.from);
    std::map<FlowPosition, double> now{{{source.router, source.port, 0, true}, 1.0}};
    double hops = 0;
    for (std::uint64_t step = 0; !now.empty(); ++step) {
      // A routing without deadlock visits each virtual channel at most once.
      if (step > std::uint64_t{bytes_.size()} * routing_.class_count() + 1) refuse_unreachable(flow);
      std::map<FlowPosition, double> next;
      for (const auto& [place, share] : now) hops += advance(flow, place, share, next);
      now.swap(next);
    }
    return hops;
  }

  [[nodiscard]] LinkLoads loads() const {
    LinkLoads result;
    double most = -1;
    for (RouterId router = 0; router < topology_.router_count(); ++router) {
      for (std::uint32_t port = 0; port < topology_.ports_per_router(); ++port) {
        if (!topology_.neighbour({router, port}).is_connected()) continue;
        const double bytes = bytes_[index({router, port})];
        result.bytes.push_back(bytes);
        if (bytes <= most) continue;
        most = bytes;
        result.busiest = topology_.link_name({router, port});
      }
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t index(PortRef port) const {
    return std::size_t{port.router} * topology_.ports_per_router() + port.port;
  }

  [[noreturn]] void refuse_unreachable(const Flow& flow) const {
    refuse_value("network.routing", "no path from node " + std::to_string(flow.from),
                 "a path to node " + std::to_string(flow.to));
  }

  // Moves a share of the flow over one link. Returns the links crossed: the share, or 0 at the destination.
  double advance(const Flow& flow, const FlowPosition& place, double share,
                 std::map<FlowPosition, double>& next) {
    routing_.route({place.router, flow.to, place.input_port, place.input_class, place.is_injected, 0},
                   steps_);
    if (steps_.count() == 0) refuse_unreachable(flow);
    const bool has_escape = steps_.choice() == RouteChoice::adaptive && steps_.count() > 1;
    const std::uint32_t count = steps_.count() - (has_escape ? 1 : 0);
    double crossed = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const PortRef out{place.router, steps_[i].port};
      if (out == topology_.attachment(flow.to)) continue;
      const PortRef in = topology_.neighbour(out);
      if (!in.is_connected()) refuse_unreachable(flow);
      bytes_[index(out)] += share / count * static_cast<double>(flow.bytes);
      next[{in.router, in.port, steps_[i].channel_class, false}] += share / count;
      crossed += share / count;
    }
    return crossed;
  }

  const Topology& topology_;
  const Routing& routing_;
  std::vector<double> bytes_;  // per router and port
  RouteSteps steps_;
};

}  // namespace

LinkLoads link_loads(const NetworkDescription& description, std::span<const Flow> flows) {
  const Topology topology = make_topology(description);
  const std::unique_ptr<const Routing> routing = make_routing(description, topology);
  if (routing->waypoint_count() != 0) {
    refuse_value("network.routing", description.routing, "a routing whose packets do not draw waypoints");
  }
  LoadWalk walk(topology, *routing);
  std::vector<double> hops;
  hops.reserve(flows.size());
  for (const Flow& flow : flows) hops.push_back(walk.add(flow));
  LinkLoads result = walk.loads();
  result.hops = std::move(hops);
  return result;
}

std::vector<std::int64_t> hop_counts(const NetworkDescription& description) {
  const Topology topology = make_topology(description);
  const std::uint32_t nodes = topology.endpoint_count();
  std::vector<std::int64_t> counts;
  counts.reserve(std::size_t{nodes} * nodes);
  std::vector<std::int64_t> distance(topology.router_count());
  std::vector<RouterId> reached;
  for (NodeId from = 0; from < nodes; ++from) {
    std::fill(distance.begin(), distance.end(), -1);
    reached.assign(1, topology.attachment(from).router);
    distance[reached.front()] = 0;
    for (std::size_t next = 0; next < reached.size(); ++next) {
      for (std::uint32_t port = 0; port < topology.ports_per_router(); ++port) {
        const PortRef other = topology.neighbour({reached[next], port});
        if (!other.is_connected() || distance[other.router] >= 0) continue;
        distance[other.router] = distance[reached[next]] + 1;
        reached.push_back(other.router);
      }
    }
    for (NodeId to = 0; to < nodes; ++to) {
      const std::int64_t count = distance[topology.attachment(to).router];
      if (count < 0) refuse_value("network.topology", "node " + std::to_string(to), "a connected network");
      counts.push_back(count);
    }
  }
  return counts;
}

}  // namespace apenet
