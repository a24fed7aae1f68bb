#include "network/routing/deadlock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/check.hpp"
#include "network/routing/routing_factor.hpp"

namespace apenet {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

// The channels of a network. A channel is a (link, class), numbered (router * ports + port) * classes +
// class.
class Channels {
 public:
  Channels(const Topology& topology, std::uint32_t classes)
      : topology_(topology), classes_(classes), per_router_(topology.ports_per_router() * classes) {
    const std::uint64_t count = std::uint64_t{topology.router_count()} * per_router_;
    APENET_CHECK(count + topology.router_count() < none, "%llu channels",
                 static_cast<unsigned long long>(count));
  }

  [[nodiscard]] std::uint32_t count() const { return topology_.router_count() * per_router_; }
  [[nodiscard]] std::uint32_t per_router() const { return per_router_; }
  [[nodiscard]] std::uint32_t number(RouterId router, RouteStep step) const {
    return router * per_router_ + step.port * classes_ + step.channel_class;
  }
  [[nodiscard]] PortRef port(std::uint32_t channel) const {
    return {channel / per_router_, channel % per_router_ / classes_};
  }
  // By which the router at the far end receives.
  [[nodiscard]] std::uint32_t far_port(std::uint32_t channel) const {
    return topology_.neighbour(port(channel)).port;
  }
  [[nodiscard]] std::uint32_t channel_class(std::uint32_t channel) const { return channel % classes_; }
  [[nodiscard]] std::string name(std::uint32_t channel) const {
    return topology_.link_name(port(channel)) + " class " + std::to_string(channel_class(channel));
  }

 private:
  const Topology& topology_;
  std::uint32_t classes_;
  std::uint32_t per_router_;
};

// The graph of which channel waits for which.
class DependencyGraph {
 public:
  explicit DependencyGraph(std::uint32_t channels) : successors_(channels) {}
  void add(std::uint32_t from, std::uint32_t to) { successors_[from].push_back(to); }

  void count(DeadlockReport& report) const {
    std::vector<bool> is_used(successors_.size());
    for (std::uint32_t channel = 0; channel < successors_.size(); ++channel) {
      if (successors_[channel].empty()) continue;
      is_used[channel] = true;
      for (const std::uint32_t next : successors_[channel]) is_used[next] = true;
      report.dependencies += successors_[channel].size();
    }
    report.channels += static_cast<std::uint64_t>(std::count(is_used.begin(), is_used.end(), true));
  }

  // Returns the channels of a cycle, with the first one repeated at the end; empty if there is none.
  [[nodiscard]] std::vector<std::uint32_t> find_cycle() const {
    std::vector<State> states(successors_.size(), State::unseen);
    std::vector<std::uint32_t> cycle;
    for (std::uint32_t channel = 0; channel < successors_.size() && cycle.empty(); ++channel) {
      if (states[channel] == State::unseen) search(channel, states, cycle);
    }
    return cycle;
  }

 private:
  enum class State : std::uint8_t { unseen, open, done };
  struct Visit {
    std::uint32_t channel;
    std::uint32_t next;
  };

  // Depth-first search. Not recursive, because the stack would be as deep as the longest chain of links.
  void search(std::uint32_t start, std::vector<State>& states, std::vector<std::uint32_t>& cycle) const {
    std::vector<Visit> path{{start, 0}};
    states[start] = State::open;
    while (!path.empty()) {
      Visit& visit = path.back();
      if (visit.next == successors_[visit.channel].size()) {
        states[visit.channel] = State::done;
        path.pop_back();
        continue;
      }
      const std::uint32_t channel = successors_[visit.channel][visit.next++];
      if (states[channel] == State::open) {
        close(path, channel, cycle);
        return;
      }
      if (states[channel] == State::done) continue;
      states[channel] = State::open;
      path.push_back({channel, 0});
    }
  }

  static void close(const std::vector<Visit>& path, std::uint32_t channel,
                    std::vector<std::uint32_t>& cycle) {
    for (const Visit& visit : path) {
      if (!cycle.empty() || visit.channel == channel) cycle.push_back(visit.channel);
    }
    cycle.push_back(channel);
  }

  std::vector<std::vector<std::uint32_t>> successors_;
};

// The states that packets to one destination can reach, and the steps offered in each. A state is the channel
// through which a packet came, or the router into which its card injected it. For a memoryless routing it is
// just the router.
class Exploration {
 public:
  Exploration(const Topology& topology, const Routing& routing, const Channels& channels)
      : topology_(topology),
        routing_(routing),
        channels_(channels),
        is_memoryless_(routing.is_memoryless()),
        steps_((is_memoryless_ ? 0 : channels.count()) + topology.router_count()),
        seen_in_(steps_.size(), 0) {}

  void explore(NodeId destination) {
    ++exploration_;
    destination_ = destination;
    target_ = topology_.attachment(destination);
    states_.clear();
    for (NodeId source = 0; source < topology_.endpoint_count(); ++source) {
      visit(injected(topology_.attachment(source).router), topology_.attachment(source), none);
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {  // states_ grows during the loop
      const std::uint32_t state = states_[i];
      for (const RouteStep& step : steps_[state]) {
        if (is_last(state, step)) continue;
        const std::uint32_t channel = channels_.number(router(state), step);
        const PortRef next = topology_.neighbour(channels_.port(channel));
        APENET_CHECK(step.channel_class < routing_.class_count() && next.is_connected(),
                     "%s class %u on the way to node %u leads nowhere",
                     topology_.link_name(channels_.port(channel)).c_str(), step.channel_class, destination);
        visit(behind(channel), next, channel);
      }
    }
  }

  [[nodiscard]] const std::vector<std::uint32_t>& states() const { return states_; }
  [[nodiscard]] const RouteSteps& steps(std::uint32_t state) const { return steps_[state]; }
  [[nodiscard]] RouterId router(std::uint32_t state) const {
    if (is_memoryless_) return state;
    return state < channels_.count() ? topology_.neighbour(channels_.port(state)).router
                                     : state - channels_.count();
  }
  // The step leads to the destination's attachment, which is not a channel of the network.
  [[nodiscard]] bool is_last(std::uint32_t state, RouteStep step) const {
    return step.port == target_.port && router(state) == target_.router;
  }
  // The state of a packet that has come through the channel.
  [[nodiscard]] std::uint32_t behind(std::uint32_t channel) const {
    return is_memoryless_ ? topology_.neighbour(channels_.port(channel)).router : channel;
  }

 private:
  [[nodiscard]] std::uint32_t injected(RouterId router) const {
    return is_memoryless_ ? router : channels_.count() + router;
  }

  void visit(std::uint32_t state, PortRef at, std::uint32_t channel) {
    if (seen_in_[state] == exploration_) return;
    seen_in_[state] = exploration_;
    const bool is_injected = channel == none;
    routing_.route(
        {at.router, destination_, at.port, is_injected ? 0 : channels_.channel_class(channel), is_injected},
        steps_[state]);
    states_.push_back(state);
  }

  const Topology& topology_;
  const Routing& routing_;
  const Channels& channels_;
  bool is_memoryless_;
  std::uint64_t exploration_ = 0;  // number of the current exploration
  NodeId destination_ = 0;
  PortRef target_;
  std::vector<RouteSteps> steps_;       // per state
  std::vector<std::uint64_t> seen_in_;  // per state: the last exploration that reached it
  std::vector<std::uint32_t> states_;   // the states reached for the current destination
};

// Whether a blocked packet waits for this step. It waits for the step it drew, or for the escape.
bool is_waited_for(const RouteSteps& steps, std::uint32_t index) {
  return steps.choice() != RouteChoice::adaptive || index + 1 == steps.count();
}

class DeadlockCheck {
 public:
  DeadlockCheck(const Topology& topology, const Routing& routing)
      : topology_(topology),
        channels_(topology, routing.class_count()),
        exploration_(topology, routing, channels_),
        bubble_class_(routing.bubble_class()) {}

  // Adds to the counts of the report.
  void run(DeadlockReport& report) {
    DependencyGraph graph(channels_.count());
    if (bubble_class_ != Routing::no_class) {
      report.has_bubbles = true;
      add_between_rings(graph);
    } else if (!add_direct(graph)) {
      report.has_escape = true;
      graph = DependencyGraph(channels_.count());
      find_escapes();
      add_extended(graph);
    }
    graph.count(report);
    for (const std::uint32_t channel : graph.find_cycle()) {
      report.cycle += (report.cycle.empty() ? "" : " -> ") + channels_.name(channel);
    }
  }

 private:
  // Adds all direct dependencies. Returns false if some choice is adaptive.
  bool add_direct(DependencyGraph& graph) {
    const std::uint32_t choices = channels_.per_router();
    std::vector<bool> has(std::size_t{channels_.count()} * choices);
    for (NodeId destination = 0; destination < topology_.endpoint_count(); ++destination) {
      exploration_.explore(destination);
      for (const std::uint32_t state : exploration_.states()) {
        if (exploration_.steps(state).choice() == RouteChoice::adaptive) return false;
        for (const RouteStep& step : exploration_.steps(state)) {
          if (exploration_.is_last(state, step)) continue;
          const std::uint32_t from = channels_.number(exploration_.router(state), step);
          const std::uint32_t next = exploration_.behind(from);
          for (const RouteStep& onward : exploration_.steps(next)) {
            if (exploration_.is_last(next, onward)) continue;
            const std::uint32_t to = channels_.number(exploration_.router(next), onward);
            const std::size_t bit = std::size_t{from} * choices + to % choices;
            if (has[bit]) continue;
            has[bit] = true;
            graph.add(from, to);
          }
        }
      }
    }
    return true;
  }

  // Adds the direct dependencies between the rings of the class with bubbles, each ring by one of its
  // channels.
  void add_between_rings(DependencyGraph& graph) {
    std::vector<std::uint32_t> rings(channels_.count());
    std::iota(rings.begin(), rings.end(), 0U);
    const auto ring_of = [&](std::uint32_t channel) {
      while (rings[channel] != channel) channel = rings[channel] = rings[rings[channel]];
      return channel;
    };
    std::vector<std::pair<std::uint32_t, std::uint32_t>> turns;
    for (NodeId destination = 0; destination < topology_.endpoint_count(); ++destination) {
      exploration_.explore(destination);
      for (const std::uint32_t state : exploration_.states()) {
        for (const RouteStep& step : exploration_.steps(state)) {
          if (step.channel_class != bubble_class_ || exploration_.is_last(state, step)) continue;
          const std::uint32_t from = channels_.number(exploration_.router(state), step);
          const std::uint32_t next = exploration_.behind(from);
          const RouteSteps& onward = exploration_.steps(next);
          const RouteStep waited_for = onward[onward.count() - 1];
          if (exploration_.is_last(next, waited_for)) continue;
          const std::uint32_t to = channels_.number(exploration_.router(next), waited_for);
          const bool goes_on = waited_for.port == (channels_.far_port(from) ^ 1U);
          if (goes_on && waited_for.channel_class == bubble_class_) {
            rings[ring_of(from)] = ring_of(to);
          } else {
            turns.emplace_back(from, to);
          }
        }
      }
    }
    for (auto& [from, to] : turns) {
      from = ring_of(from);
      to = ring_of(to);
    }
    std::sort(turns.begin(), turns.end());
    turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
    for (const auto& [from, to] : turns) graph.add(from, to);
  }

  void find_escapes() {
    escape_number_.assign(channels_.count(), none);
    for (NodeId destination = 0; destination < topology_.endpoint_count(); ++destination) {
      exploration_.explore(destination);
      for (const std::uint32_t state : exploration_.states()) {
        const RouteSteps& steps = exploration_.steps(state);
        for (std::uint32_t i = 0; i < steps.count(); ++i) {
          if (!is_waited_for(steps, i) || exploration_.is_last(state, steps[i])) continue;
          std::uint32_t& number = escape_number_[channels_.number(exploration_.router(state), steps[i])];
          if (number == none) number = escape_count_++;
        }
      }
    }
  }

  // Adds the dependencies from each use of an escape channel, as escape or not, to each escape that the
  // packet may request next.
  void add_extended(DependencyGraph& graph) {
    std::vector<bool> has(std::size_t{escape_count_} * escape_count_);
    std::vector<std::uint32_t> reached_for(channels_.count() + topology_.router_count(), none);
    std::uint32_t walk = 0;
    for (NodeId destination = 0; destination < topology_.endpoint_count(); ++destination) {
      exploration_.explore(destination);
      for (const std::uint32_t state : exploration_.states()) {
        for (const RouteStep& step : exploration_.steps(state)) {
          if (exploration_.is_last(state, step)) continue;
          const std::uint32_t from = channels_.number(exploration_.router(state), step);
          if (escape_number_[from] == none) continue;
          ++walk;
          for (const std::uint32_t to : escapes_ahead(from, reached_for, walk)) {
            const std::size_t bit = std::size_t{escape_number_[from]} * escape_count_ + escape_number_[to];
            if (has[bit]) continue;
            has[bit] = true;
            graph.add(from, to);
          }
        }
      }
    }
  }

  // The escapes that a packet which came through the channel may wait for next, after any number of steps
  // that are not escapes.
  const std::vector<std::uint32_t>& escapes_ahead(std::uint32_t channel,
                                                  std::vector<std::uint32_t>& reached_for,
                                                  std::uint32_t walk) {
    escapes_.clear();
    to_visit_.assign(1, exploration_.behind(channel));
    reached_for[to_visit_.front()] = walk;
    while (!to_visit_.empty()) {
      const std::uint32_t state = to_visit_.back();
      to_visit_.pop_back();
      const RouteSteps& steps = exploration_.steps(state);
      for (std::uint32_t i = 0; i < steps.count(); ++i) {
        if (exploration_.is_last(state, steps[i])) continue;
        const std::uint32_t next = channels_.number(exploration_.router(state), steps[i]);
        if (is_waited_for(steps, i)) {
          escapes_.push_back(next);
        } else if (reached_for[exploration_.behind(next)] != walk) {
          reached_for[exploration_.behind(next)] = walk;
          to_visit_.push_back(exploration_.behind(next));
        }
      }
    }
    return escapes_;
  }

  const Topology& topology_;
  Channels channels_;
  Exploration exploration_;
  std::vector<std::uint32_t> escape_number_;  // per channel
  std::uint32_t escape_count_ = 0;
  std::uint32_t bubble_class_;
  std::vector<std::uint32_t> escapes_;
  std::vector<std::uint32_t> to_visit_;
};

}  // namespace

std::string DeadlockReport::proof() const {
  if (!cycle.empty()) return "a cycle: " + cycle;
  std::string text = "no cycle among " + std::to_string(dependencies) + " dependencies of " +
                     std::to_string(channels) +
                     (has_bubbles  ? " rings, each with a bubble"
                      : has_escape ? " escape channels"
                                   : " channels");
  if (has_escape) text += ", those across adaptive channels included (Duato)";
  if (factors == 1) text += ", on a smaller network that has a cycle if this one has";
  if (factors > 1) text += ", on " + std::to_string(factors) + " smaller networks, one for each dimension";
  return text;
}

DeadlockReport check_deadlock(const Topology& topology, const Routing& routing) {
  const std::vector<RoutingFactor> factors = routing.factors();
  DeadlockReport report;
  report.factors = static_cast<std::uint32_t>(factors.size());
  if (factors.empty()) DeadlockCheck(topology, routing).run(report);
  for (const RoutingFactor& factor : factors) {
    DeadlockCheck(factor.topology, *factor.routing).run(report);
    if (!report.cycle.empty()) break;
  }
  return report;
}

std::string find_dependency_cycle(const Topology& topology, const Routing& routing) {
  return check_deadlock(topology, routing).cycle;
}

}  // namespace apenet
