// The contract of every engine on every topology with every routing: delivery, order, drain, times,
// repeatability.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "contract/arrangements.hpp"
#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/routing/arrangement.hpp"
#include "network/topology/cube.hpp"
#include "support/cases.hpp"

namespace apenet::testing {
namespace {

using Engine = NetworkDescription::Engine;

class TopologyContract : public ::testing::TestWithParam<std::tuple<Engine, Arrangement>> {
 protected:
  [[nodiscard]] NetworkParameters network(RandomStream& random) const {
    return random_network(std::get<0>(GetParam()), std::get<1>(GetParam()), random);
  }
};

TEST_P(TopologyContract, DeliversEveryPacketOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(10); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 20);
    const NetworkParameters parameters = network(random);
    Traffic traffic(parameters, Time::from_ps(static_cast<std::int64_t>(random.below(300'000))),
                    Time::from_ps(static_cast<std::int64_t>(random.below(300'000))));
    offer_random(traffic, parameters, random, test::drawn_load(1500));
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

// Permutations and a hot spot, all offered at once, with buffers of one packet.
TEST_P(TopologyContract, SaturationDrains) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(10); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 21);
    NetworkParameters parameters = network(random);
    const std::uint32_t largest = parameters.max_packet_wire_bytes;
    parameters.description.buffer_bytes = least_buffer_bytes(parameters.description, largest);
    Traffic traffic(parameters, Time::from_ns(30));
    std::vector<NodeId> pattern(traffic.network().node_count());
    std::iota(pattern.begin(), pattern.end(), 0U);
    for (std::size_t i = pattern.size(); i > 1; --i) std::swap(pattern[i - 1], pattern[random.below(i)]);
    // All in one direction, around the rings of a torus.
    if (seed % 3 == 1) {
      const auto nodes = static_cast<std::uint32_t>(pattern.size());
      for (NodeId node = 0; node < nodes; ++node) pattern[node] = (node + (nodes - 1) / 2) % nodes;
    }
    if (seed % 3 == 0) std::fill(pattern.begin(), pattern.end(), pattern.front());
    for (std::uint64_t i = 0; i < test::drawn_cases(15); ++i) {
      for (NodeId node = 0; node < pattern.size(); ++node) {
        traffic.offer(node, pattern[node], static_cast<std::uint16_t>(i % parameters.card_channels),
                      random.below(3) != 0 ? largest : 1 + static_cast<std::uint32_t>(random.below(largest)));
      }
    }
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

// One ring, one virtual channel, the least buffers: without the bubble it stops for ever.
TEST(Bubbles, KeepARingMoving) {
  for (const Engine engine : {Engine::packet, Engine::flit}) {
    RandomStream random(1, 22);
    constexpr std::uint32_t largest = 256;
    NetworkParameters parameters = small_network(TorusDescription({8}), largest);
    parameters.description.engine = engine;
    parameters.description.pipeline.clock_hz = 1'000'000'000;
    parameters.description.pipeline.flit_bytes = 16;
    parameters.description.links[0].rate = {16, 1, 1'000'000'000};
    parameters.description.local_rate = {16, 1, 1'000'000'000};
    parameters.description.routing = "dimension-order-bubble";
    parameters.description.virtual_channels = 1;
    parameters.description.buffer_bytes = least_buffer_bytes(parameters.description, largest);
    parameters.card_channels = 2;
    Traffic traffic(parameters);
    for (std::uint32_t i = 0; i < 300; ++i) {
      for (NodeId node = 0; node < 8; ++node) {
        const auto bytes = 1 + static_cast<std::uint32_t>(random.below(largest));
        traffic.offer(node, (node + 3) % 8, static_cast<std::uint16_t>(i % 2), bytes);
      }
    }
    traffic.run();
    traffic.expect_all_delivered();
  }
}

// The path of a single packet in an idle network. If there is a choice, the first step that the routing
// offers.
struct Path {
  Time head;                    // when the header of a packet injected at zero is in the ejection buffer
  std::vector<DataRate> rates;  // the card's port, the links, the other card's port
};

Path path_of(const NetworkDescription& description, std::uint64_t seed, const Packet& packet) {
  const Topology topology = make_topology(description);
  const auto routing = make_routing(description, topology);
  Path path{description.router_latency + description.local_latency * 2, {description.local_rate}};
  RouteQuery query{.destination = packet.destination,
                   .is_injected = true,
                   .waypoint = waypoint_of(seed, packet, routing->waypoint_count())};
  for (PortRef at = topology.attachment(packet.source);;) {
    RouteSteps steps;
    query.router = at.router;
    query.input_port = at.port;
    routing->route(query, steps);
    query.input_class = steps[0].channel_class;
    query.is_injected = false;
    const PortRef port{at.router, steps[0].port};
    if (port == topology.attachment(packet.destination)) break;
    const LinkDescription& link = description.links[topology.link_class(port)];
    path.head += description.router_latency + link.latency;
    path.rates.push_back(link.rate);
    at = topology.neighbour(port);
  }
  path.rates.push_back(description.local_rate);
  return path;
}

// docs/models/network.md, "Zero load": only the slowest stage spreads the packet.
Time spread_of_bytes(const Path& path, std::uint32_t bytes, Time dma_time) {
  Time spread = dma_time;
  for (const DataRate& rate : path.rates) spread = std::max(spread, rate.duration(bytes));
  return spread;
}

// docs/models/flit-engine.md, "Cycles": after the stage that spreads them, flits catch up with their header,
// in each router by the cycles that only the header needs.
Time spread_of_flits(const Path& path, const NetworkDescription& description, std::uint32_t flits,
                     Time dma_time) {
  const RouterPipeline& pipeline = description.pipeline;
  const ClockDomain clock{pipeline.clock_hz};
  const Time catch_up = clock.cycles(pipeline.routing_delay_cycles + pipeline.vc_allocation_delay_cycles);
  const auto flit_time = [&](const DataRate& rate) { return rate.duration(pipeline.flit_bytes); };
  auto routers_behind = static_cast<std::int64_t>(path.rates.size()) - 1;
  Time last_flit = dma_time - flit_time(path.rates.front()) - catch_up * routers_behind;
  Time slowest;
  for (const DataRate& rate : path.rates) {
    last_flit = std::max(last_flit, flit_time(rate) * (flits - 1) - catch_up * routers_behind);
    slowest = std::max(slowest, flit_time(rate));
    --routers_behind;
  }
  return last_flit + slowest;
}

TEST_P(TopologyContract, ZeroLoadTimeEqualsTheClosedFormula) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 22);
    const NetworkParameters parameters = network(random);
    const NetworkDescription& description = parameters.description;
    const bool is_flit = description.engine == Engine::flit;
    const std::uint32_t nodes = make_topology(description).endpoint_count();
    const auto source = static_cast<NodeId>(random.below(nodes));
    const auto destination = static_cast<NodeId>(random.below(nodes));
    const auto flits = static_cast<std::uint32_t>(1 + random.below(parameters.max_packet_wire_bytes / 16));
    const auto bytes =
        is_flit ? 16 * flits : static_cast<std::uint32_t>(1 + random.below(parameters.max_packet_wire_bytes));
    // A flit that is both header and tail leaves its card as the tail.
    const Time dma_time = !is_flit    ? Time::from_ps(static_cast<std::int64_t>(random.below(1'000'000)))
                          : flits > 1 ? Time::from_ns(static_cast<std::int64_t>(random.below(200)))
                                      : Time::zero();
    Traffic traffic(parameters, Time::zero(), dma_time);
    traffic.offer(source, destination, 0, bytes);
    traffic.run();

    ASSERT_EQ(traffic.node(destination).arrivals().size(), 1U);
    const Arrival& arrival = traffic.node(destination).arrivals().front();
    const Path path = path_of(description, traffic.simulation().seed(), arrival.packet);
    const Time spread = is_flit ? spread_of_flits(path, description, flits, dma_time)
                                : spread_of_bytes(path, bytes, dma_time);
    EXPECT_EQ(arrival.head_time.ps(), path.head.ps());
    EXPECT_EQ(arrival.tail_time.ps(), (path.head + spread).ps());
    EXPECT_EQ(arrival.packet.hops + 2U, path.rates.size());
  }
}

TEST_P(TopologyContract, RepeatedRunHasTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(3); ++seed) {
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
      RandomStream random(seed, 23);
      const NetworkParameters parameters = network(random);
      Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
      offer_random(traffic, parameters, random, test::drawn_load(600));
      traffic.run();
      hashes.push_back(traffic.trace_hash());
    }
    EXPECT_EQ(hashes[0], hashes[1]) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, TopologyContract,
                         ::testing::Combine(::testing::Values(Engine::packet, Engine::flit),
                                            ::testing::ValuesIn(all_arrangements)),
                         [](const ::testing::TestParamInfo<TopologyContract::ParamType>& which) {
                           return (std::get<0>(which.param) == Engine::packet ? "packet_" : "flit_") +
                                  name_of(std::get<1>(which.param));
                         });

}  // namespace
}  // namespace apenet::testing
