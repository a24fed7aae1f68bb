#include "network/deadlock.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace apenet {

namespace {

// A channel is (link, class); its possible successors are the (port, class) pairs of the router at its end,
// one bit each.
class DependencyGraph {
 public:
  DependencyGraph(const Topology& topology, const Routing& routing)
      : topology_(topology),
        classes_(routing.class_count()),
        choices_(topology.ports_per_router() * classes_),
        successors_(static_cast<std::size_t>(topology.router_count()) * choices_ * choices_) {
    for (NodeId destination = 0; destination < topology.endpoint_count(); ++destination) {
      for (RouterId router = 0; router < topology.router_count(); ++router) add(routing, router, destination);
    }
  }

  std::string find_cycle() {
    state_.assign(static_cast<std::size_t>(topology_.router_count()) * choices_, State::unseen);
    for (std::size_t channel = 0; channel < state_.size(); ++channel) {
      if (state_[channel] != State::unseen) continue;
      const std::string cycle = search(channel);
      if (!cycle.empty()) return cycle;
    }
    return {};
  }

 private:
  enum class State : std::uint8_t { unseen, open, done };
  struct Visit {
    std::size_t channel;
    std::size_t next_choice;
  };

  void add(const Routing& routing, RouterId router, NodeId destination) {
    const RouteStep first = routing.route(router, destination);
    const PortRef next = topology_.neighbour({router, first.port});
    if (!next.is_connected()) return;
    const RouteStep second = routing.route(next.router, destination);
    if (!topology_.neighbour({next.router, second.port}).is_connected()) return;
    const std::size_t channel = router * choices_ + first.port * classes_ + first.channel_class;
    successors_[channel * choices_ + second.port * classes_ + second.channel_class] = true;
  }

  // Depth first; recursion would need a stack as deep as the longest chain of links.
  std::string search(std::size_t start) {
    std::vector<Visit> path{{start, 0}};
    state_[start] = State::open;
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next_choice == choices_) {
        state_[visit.channel] = State::done;
        path.pop_back();
        continue;
      }
      const std::size_t choice = visit.next_choice++;
      if (!successors_[visit.channel * choices_ + choice]) continue;
      const std::size_t channel = topology_.neighbour(port_of(visit.channel)).router * choices_ + choice;
      if (state_[channel] == State::open) return describe(path, channel);
      if (state_[channel] == State::done) continue;
      state_[channel] = State::open;
      path.push_back({channel, 0});
    }
    return {};
  }

  [[nodiscard]] PortRef port_of(std::size_t channel) const {
    return {static_cast<RouterId>(channel / choices_),
            static_cast<std::uint32_t>(channel % choices_) / classes_};
  }

  [[nodiscard]] std::string describe(const std::vector<Visit>& path, std::size_t closing) const {
    std::string text;
    for (const Visit& visit : path) {
      if (text.empty() && visit.channel != closing) continue;
      text += name(visit.channel) + " -> ";
    }
    return text + name(closing);
  }

  [[nodiscard]] std::string name(std::size_t channel) const {
    return topology_.link_name(port_of(channel)) + " class " + std::to_string(channel % classes_);
  }

  const Topology& topology_;
  std::uint32_t classes_;
  std::size_t choices_;
  std::vector<bool> successors_;
  std::vector<State> state_;
};

}  // namespace

std::string find_dependency_cycle(const Topology& topology, const Routing& routing) {
  return DependencyGraph(topology, routing).find_cycle();
}

}  // namespace apenet
