// Routes that a program sets: those that are taken lead to their ends and drain, whatever they are.
#include "network/programmed_routes.hpp"

#include <gtest/gtest.h>

#include <set>

#include "contract/traffic.hpp"
#include "network/routing/arrangement.hpp"

namespace apenet::testing {
namespace {

using Engine = NetworkDescription::Engine;

NetworkParameters torus(Engine engine, std::vector<std::uint32_t> extents) {
  NetworkParameters parameters = small_network(TorusDescription(std::move(extents)), 256);
  parameters.description.routing = "dimension-order";
  parameters.description.virtual_channels = 2;
  parameters.description.engine = engine;
  constexpr std::int64_t clock_hz = 1'000'000'000;
  parameters.description.pipeline.clock_hz = clock_hz;
  parameters.description.local_rate = {16, 1, clock_hz};
  for (LinkDescription& link : parameters.description.links) link.rate = {16, 1, clock_hz};
  return parameters;
}

// A walk of the torus that comes to no router twice.
ProgrammedRoute random_walk(const Topology& topology, RandomStream& random) {
  ProgrammedRoute route;
  route.from = static_cast<NodeId>(random.below(topology.endpoint_count()));
  RouterId router = topology.attachment(route.from).router;
  std::set<RouterId> seen{router};
  for (std::uint64_t left = 1 + random.below(4); left > 0; --left) {
    const auto port = static_cast<std::uint32_t>(random.below(topology.ports_per_router()));
    const PortRef next = topology.neighbour({router, port});
    if (!next.is_connected() || !seen.insert(next.router).second) continue;
    route.ports.push_back(port);
    router = next.router;
  }
  route.to = router;
  return route;
}

class ProgrammedRoutesTest : public ::testing::TestWithParam<Engine> {};

TEST_P(ProgrammedRoutesTest, WhatIsTakenDrains) {
  unsigned taken = 0;
  unsigned deadlocks = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 1);
    const NetworkParameters parameters = torus(GetParam(), {4, 3, 2});
    const Topology topology = make_topology(parameters.description);
    Traffic traffic(parameters, Time::from_ns(20));
    ProgrammedRoutes routes(parameters.description, traffic.network());
    offer_random(traffic, parameters, random, 50);
    EXPECT_FALSE(routes.is_network_empty());
    traffic.run();
    ASSERT_TRUE(routes.is_network_empty());
    std::vector<ProgrammedRoute> asked;
    std::set<NodeId> ends;  // one route to each, so that no two part at a router
    for (std::uint64_t left = 10 + random.below(30); left > 0; --left) {
      ProgrammedRoute route = random_walk(topology, random);
      if (!route.ports.empty() && ends.insert(route.to).second) asked.push_back(std::move(route));
    }
    try {
      routes.program(asked);
      ++taken;
      for (const ProgrammedRoute& route : asked) EXPECT_EQ(routes.path(route.from, route.to), route.ports);
    } catch (const RouteRefusal& refusal) {
      EXPECT_EQ(refusal.kind(), RouteRefusalKind::deadlock) << refusal.what();
      ++deadlocks;
    }
    offer_random(traffic, parameters, random, 300);
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 10U);
  EXPECT_GT(deadlocks, 5U);
}

// The times of all arrivals.
std::vector<std::int64_t> times_of(const NetworkParameters& parameters, bool programs) {
  Traffic traffic(parameters, Time::from_ns(20));
  ProgrammedRoutes routes(parameters.description, traffic.network());
  const std::uint32_t nodes = traffic.network().node_count();
  std::vector<ProgrammedRoute> own;
  for (NodeId from = 0; from < nodes; ++from) {
    for (NodeId to = 0; to < nodes; ++to) {
      if (from != to) own.push_back({from, to, routes.path(from, to)});
    }
  }
  if (programs) routes.program(own);
  RandomStream random(7, 2);
  offer_random(traffic, parameters, random, 500);
  traffic.run();
  std::vector<std::int64_t> times;
  for (NodeId node = 0; node < nodes; ++node) {
    for (const Arrival& arrival : traffic.node(node).arrivals()) times.push_back(arrival.tail_time.ps());
  }
  return times;
}

// Also proves that the classes of a route are those of dimension order.
TEST_P(ProgrammedRoutesTest, TheMachinesOwnRoutesChangeNoTime) {
  const NetworkParameters parameters = torus(GetParam(), {5, 4, 2});
  const std::vector<std::int64_t> times = times_of(parameters, false);
  EXPECT_EQ(times.size(), 500U);
  EXPECT_EQ(times_of(parameters, true), times);
}

INSTANTIATE_TEST_SUITE_P(Engines, ProgrammedRoutesTest, ::testing::Values(Engine::packet, Engine::flit),
                         [](const auto& engine) { return engine.param == Engine::flit ? "flit" : "packet"; });

}  // namespace
}  // namespace apenet::testing
