// What every engine owes on every topology with every routing: deliveries, order, drain, times,
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
#include "network/arrangement.hpp"

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
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 20);
    const NetworkParameters parameters = network(random);
    Traffic traffic(parameters, Time::from_ps(static_cast<std::int64_t>(random.below(300'000))),
                    Time::from_ps(static_cast<std::int64_t>(random.below(300'000))));
    offer_random(traffic, parameters, random, 1500);
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

// Permutations and a hot spot, all offered at once, into buffers of one packet.
TEST_P(TopologyContract, SaturationDrains) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 21);
    NetworkParameters parameters = network(random);
    parameters.description.buffer_bytes = parameters.max_packet_wire_bytes;
    Traffic traffic(parameters, Time::from_ns(30));
    std::vector<NodeId> pattern(traffic.network().node_count());
    std::iota(pattern.begin(), pattern.end(), 0U);
    for (std::size_t i = pattern.size(); i > 1; --i) std::swap(pattern[i - 1], pattern[random.below(i)]);
    if (seed % 3 == 0) std::fill(pattern.begin(), pattern.end(), pattern.front());
    for (int i = 0; i < 15; ++i) {
      for (NodeId node = 0; node < pattern.size(); ++node) {
        traffic.offer(node, pattern[node],
                      static_cast<std::uint16_t>(static_cast<unsigned>(i) % parameters.card_channels),
                      parameters.max_packet_wire_bytes);
      }
    }
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

// docs/models/network.md, "Zero load", along the path that the routing takes: with a choice, its first step.
TEST_P(TopologyContract, ZeroLoadTimeIsTheClosedFormula) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 22);
    const NetworkParameters parameters = network(random);
    const NetworkDescription& description = parameters.description;
    const Topology topology = make_topology(description);
    const auto routing = make_routing(description, topology);
    const auto source = static_cast<NodeId>(random.below(topology.endpoint_count()));
    const auto destination = static_cast<NodeId>(random.below(topology.endpoint_count()));
    const bool is_flit = description.engine == Engine::flit;
    const auto bytes =
        static_cast<std::uint32_t>(is_flit ? 16 * (1 + random.below(parameters.max_packet_wire_bytes / 16))
                                           : 1 + random.below(parameters.max_packet_wire_bytes));
    const Time dma_time =
        is_flit ? Time::zero() : Time::from_ps(static_cast<std::int64_t>(random.below(1'000'000)));
    Traffic traffic(parameters, Time::zero(), dma_time);
    traffic.offer(source, destination, 0, bytes);
    traffic.run();

    Time head = description.router_latency + description.local_latency * 2;
    Time serialisation = std::max(dma_time, description.local_rate.duration(bytes));
    std::uint32_t hops = 0;
    PortRef at = topology.attachment(source);
    for (;; ++hops) {
      RouteSteps steps;
      routing->route({at.router, destination, at.port, 0, hops == 0}, steps);
      const PortRef port{at.router, steps[0].port};
      if (port == topology.attachment(destination)) break;
      const LinkDescription& link = description.links[topology.link_class(port)];
      head += description.router_latency + link.latency;
      serialisation = std::max(serialisation, link.rate.duration(bytes));
      at = topology.neighbour(port);
    }
    ASSERT_EQ(traffic.node(destination).arrivals().size(), 1U);
    const Arrival& arrival = traffic.node(destination).arrivals().front();
    EXPECT_EQ(arrival.head_time.ps(), head.ps());
    EXPECT_EQ(arrival.tail_time.ps(), (head + serialisation).ps());
    EXPECT_EQ(arrival.packet.hops, hops);
  }
}

TEST_P(TopologyContract, RepeatedRunHasTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
      RandomStream random(seed, 23);
      const NetworkParameters parameters = network(random);
      Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
      offer_random(traffic, parameters, random, 600);
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
