// The contract of every network engine (src/network/network.hpp), on random networks and traffic.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "contract/arrangements.hpp"
#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/topology/cube.hpp"
#include "support/cases.hpp"

namespace apenet::testing {
namespace {

class NetworkContract : public ::testing::TestWithParam<NetworkDescription::Engine> {
 protected:
  [[nodiscard]] NetworkParameters network(TopologyDescription topology,
                                          std::uint32_t max_packet_wire_bytes) const {
    NetworkParameters parameters = small_network(std::move(topology), max_packet_wire_bytes);
    parameters.description.engine = GetParam();
    return parameters;
  }

  // Varies everything that a description contains, at random.
  [[nodiscard]] NetworkParameters random_network(RandomStream& random) const {
    const bool is_torus = random.below(3) != 0;
    std::vector<std::uint32_t> dims;
    std::uint64_t nodes = 1;
    const std::uint64_t dimension_count = 1 + random.below(CubeShape::max_dimensions);
    for (std::uint64_t d = 0; d < dimension_count; ++d) {
      const auto size = static_cast<std::uint32_t>(1 + random.below(std::min<std::uint64_t>(9, 96 / nodes)));
      dims.push_back(size);
      nodes *= size;
    }
    const auto max_bytes = static_cast<std::uint32_t>(16 + random.below(600));
    NetworkParameters parameters =
        is_torus ? network(TorusDescription(dims), max_bytes) : network(MeshDescription(dims), max_bytes);
    NetworkDescription& description = parameters.description;
    for (LinkDescription& link : description.links) {
      link.rate = {16, 3, static_cast<std::int64_t>(50'000'000 + random.below(200'000'000))};
      link.latency = Time::from_ps(static_cast<std::int64_t>(random.below(50'000)));
    }
    description.local_rate =
        DataRate::bytes_per_second(static_cast<std::int64_t>(1 + random.below(4)) << 29U);
    description.router_latency = Time::from_ps(static_cast<std::int64_t>(random.below(80'000)));
    description.credit_latency = Time::from_ps(static_cast<std::int64_t>(random.below(50'000)));
    description.virtual_channels = static_cast<std::uint32_t>(2 + random.below(5));
    description.buffer_bytes = static_cast<std::int64_t>(max_bytes + random.below(2UL * max_bytes));
    parameters.card_channels = static_cast<std::uint32_t>(1 + random.below(5));
    return parameters;
  }
};

std::uint32_t node_count(const NetworkParameters& parameters) {
  return CubeShape(parameters.description.topology.dims()).node_count();
}

TEST_P(NetworkContract, DeliversEveryPacketOnceAndInOrder) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 0);
    const NetworkParameters parameters = random_network(random);
    Traffic traffic(parameters, Time::from_ps(static_cast<std::int64_t>(random.below(300'000))),
                    Time::from_ps(static_cast<std::int64_t>(random.below(300'000))));
    offer_random(traffic, parameters, random, test::drawn_load(2000));
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

// Sends each node's packets `repeat` times to pattern[node], all offered at time zero.
void saturate(const NetworkParameters& parameters, const std::vector<NodeId>& pattern, int repeat) {
  Traffic traffic(parameters, Time::from_ns(30));
  for (int i = 0; i < repeat; ++i) {
    for (NodeId node = 0; node < pattern.size(); ++node) {
      traffic.offer(node, pattern[node],
                    static_cast<std::uint16_t>(static_cast<unsigned>(i) % parameters.card_channels),
                    parameters.max_packet_wire_bytes);
    }
  }
  traffic.run();
  traffic.expect_all_delivered();
}

const std::vector<std::vector<std::uint32_t>>& saturated_tori() {
  static const std::vector<std::vector<std::uint32_t>> tori = {{2},
                                                               {3},
                                                               {4},
                                                               {9},
                                                               {16},
                                                               {4, 4},
                                                               {5, 5},
                                                               {8, 2},
                                                               {2, 2, 2},
                                                               {4, 4, 4},
                                                               {3, 1, 6},
                                                               {8, 4, 4},
                                                               {2, 2, 2, 2, 2, 2},
                                                               {4, 3, 2, 3}};
  return tori;
}

// Tornado traffic goes half-way around every ring and fills a ring's buffers in one direction.
TEST_P(NetworkContract, TornadoDoesNotDeadlockWithMinimalBuffers) {
  for (const std::vector<std::uint32_t>& dims : saturated_tori()) {
    const CubeShape shape(dims);
    SCOPED_TRACE(::testing::PrintToString(dims));
    for (const std::uint32_t less : {0U, 1U}) {
      std::vector<NodeId> pattern;
      for (NodeId node = 0; node < shape.node_count(); ++node) {
        std::vector<std::uint32_t> there = shape.coordinates(node);
        for (std::size_t d = 0; d < dims.size(); ++d) {
          there[d] = (there[d] + (dims[d] > 2 * less ? dims[d] / 2 - less * (1 - dims[d] % 2) : 0)) % dims[d];
        }
        pattern.push_back(shape.node(there));
      }
      NetworkParameters parameters = network(TorusDescription(dims), 64);
      parameters.card_channels = 2;
      saturate(parameters, pattern, 60);
    }
  }
}

// Every other packet turns round in its own router. It waits for the ejection port only, so that it closes no
// cycle, though those behind it go half-way around a ring or through a bubble.
TEST_P(NetworkContract, PacketsToTheirOwnNodeDoNotDeadlockOthers) {
  for (const std::vector<std::uint32_t>& dims : saturated_tori()) {
    const CubeShape shape(dims);
    SCOPED_TRACE(::testing::PrintToString(dims));
    for (const char* routing : {"dimension-order", "dimension-order-bubble"}) {
      NetworkParameters parameters = network(TorusDescription(dims), 64);
      parameters.description.routing = routing;
      parameters.description.buffer_bytes = least_buffer_bytes(parameters.description, 64);
      Traffic traffic(parameters, Time::from_ns(30));
      for (int i = 0; i < 30; ++i) {
        for (NodeId node = 0; node < shape.node_count(); ++node) {
          std::vector<std::uint32_t> there = shape.coordinates(node);
          for (std::size_t d = 0; d < dims.size(); ++d) there[d] = (there[d] + dims[d] / 2) % dims[d];
          traffic.offer(node, node, 0, 64);
          traffic.offer(node, shape.node(there), 0, 64);
        }
      }
      traffic.run();
      traffic.expect_all_delivered();
      if (HasFailure()) return;
    }
  }
}

TEST_P(NetworkContract, PermutationsDoNotDeadlockWithMinimalBuffers) {
  for (const std::vector<std::uint32_t>& dims : saturated_tori()) {
    SCOPED_TRACE(::testing::PrintToString(dims));
    for (const TopologyDescription& topology :
         {TopologyDescription(TorusDescription(dims)), TopologyDescription(MeshDescription(dims))}) {
      const NetworkParameters parameters = network(topology, 64);
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        RandomStream random(seed, 1);
        std::vector<NodeId> pattern(node_count(parameters));
        std::iota(pattern.begin(), pattern.end(), 0U);
        for (std::size_t i = pattern.size(); i > 1; --i) std::swap(pattern[i - 1], pattern[random.below(i)]);
        saturate(parameters, pattern, 40);
      }
    }
  }
}

TEST_P(NetworkContract, UniformSaturationDrains) {
  for (const std::vector<std::uint32_t>& dims : saturated_tori()) {
    SCOPED_TRACE(::testing::PrintToString(dims));
    const NetworkParameters parameters = network(TorusDescription(dims), 48);
    RandomStream random(7, 2);
    Traffic traffic(parameters);
    offer_random(traffic, parameters, random,
                 test::drawn_load(static_cast<int>(60 * node_count(parameters))));
    traffic.run();
    traffic.expect_all_delivered();
  }
}

// All nodes send to one node: its ejection port is the only bottleneck, and everything upstream backs up.
TEST_P(NetworkContract, HotSpotDrains) {
  const NetworkParameters parameters = network(TorusDescription({4, 4, 4}), 64);
  saturate(parameters, std::vector<NodeId>(64, 21), 20);
}

// docs/models/network.md, "Zero load": the header passes n + 1 routers and n links; the tail follows after
// the longest serialisation on the path, or after the DMA if that ends later.
TEST_P(NetworkContract, ZeroLoadTimeEqualsTheClosedFormula) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 3);
    const NetworkParameters parameters = random_network(random);
    const NetworkDescription& description = parameters.description;
    const CubeShape shape(description.topology.dims());
    const auto source = static_cast<NodeId>(random.below(shape.node_count()));
    const auto destination = static_cast<NodeId>(random.below(shape.node_count()));
    const auto bytes = static_cast<std::uint32_t>(1 + random.below(parameters.max_packet_wire_bytes));
    const Time dma_time = Time::from_ps(static_cast<std::int64_t>(random.below(1'000'000)));
    Traffic traffic(parameters, Time::zero(), dma_time);
    traffic.offer(source, destination, 0, bytes);
    traffic.run();

    const std::vector<std::uint32_t> from = shape.coordinates(source);
    const std::vector<std::uint32_t> to = shape.coordinates(destination);
    Time head = description.router_latency;
    Time serialisation = std::max(dma_time, description.local_rate.duration(bytes));
    std::uint32_t hops = 0;
    for (std::size_t d = 0; d < from.size(); ++d) {
      std::uint32_t distance = from[d] > to[d] ? from[d] - to[d] : to[d] - from[d];
      if (description.topology.as<TorusDescription>() != nullptr)
        distance = std::min(distance, shape.dims()[d] - distance);
      head += (description.router_latency + description.links[d].latency) * distance;
      if (distance > 0) serialisation = std::max(serialisation, description.links[d].rate.duration(bytes));
      hops += distance;
    }
    ASSERT_EQ(traffic.node(destination).arrivals().size(), 1U);
    const Arrival& arrival = traffic.node(destination).arrivals().front();
    EXPECT_EQ(arrival.head_time.ps(), head.ps());
    EXPECT_EQ(arrival.tail_time.ps(), (head + serialisation).ps());
    EXPECT_EQ(arrival.packet.hops, hops);
  }
}

// docs/models/network.md, "Throughput": 281 bytes cover the credit loop here, which two packets of 256 bytes
// do and one does not.
TEST_P(NetworkContract, StreamIsAsFastAsTheBuffersAllow) {
  for (const auto& [buffers, period] : {std::pair{2, Time::from_ns(256)}, std::pair{1, Time::from_ns(281)}}) {
    NetworkParameters parameters = network(TorusDescription({8}), 256);
    parameters.description.buffer_bytes = 256 * buffers;
    parameters.description.ejection_buffer_bytes = 1024;
    Traffic traffic(parameters);
    constexpr int packets = 200;
    for (int i = 0; i < packets; ++i) traffic.offer(0, 3, 0, 256);
    traffic.run();
    const std::vector<Arrival>& arrivals = traffic.node(3).arrivals();
    ASSERT_EQ(arrivals.size(), static_cast<std::size_t>(packets));
    EXPECT_EQ((arrivals.back().tail_time - arrivals.front().tail_time).ps(), (period * (packets - 1)).ps());
  }
}

TEST_P(NetworkContract, FullEjectionBufferHoldsTheSenderBackAndNothingIsLost) {
  const NetworkParameters parameters = network(TorusDescription({4, 4}), 64);
  Traffic traffic(parameters);
  traffic.node(5).hold_consumption(true);
  for (int i = 0; i < 100; ++i) {
    for (NodeId node = 0; node < 16; ++node) traffic.offer(node, 5, 0, 64);
  }
  traffic.run();
  EXPECT_EQ(traffic.node(5).arrivals().size(), 1U);  // the buffer holds one packet
  EXPECT_FALSE(traffic.node(6).has_sent_all());
  traffic.node(5).hold_consumption(false);
  traffic.run();
  traffic.expect_all_delivered();
}

TEST_P(NetworkContract, RepeatedRunHasTheSameTrace) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(10); ++seed) {
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
      RandomStream random(seed, 4);
      const NetworkParameters parameters = random_network(random);
      Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
      offer_random(traffic, parameters, random, test::drawn_load(1000));
      traffic.run();
      hashes.push_back(traffic.trace_hash());
    }
    EXPECT_EQ(hashes[0], hashes[1]) << "seed " << seed;
  }
}

TEST_P(NetworkContract, LinkStatisticsCountEveryHop) {
  RandomStream random(11, 5);
  const NetworkParameters parameters = random_network(random);
  Traffic traffic(parameters);
  offer_random(traffic, parameters, random, 500);
  traffic.run();
  std::uint64_t hops = 0;
  std::uint64_t hop_bytes = 0;
  for (NodeId node = 0; node < traffic.network().node_count(); ++node) {
    for (const Arrival& arrival : traffic.node(node).arrivals()) {
      hops += arrival.packet.hops;
      hop_bytes += std::uint64_t{arrival.packet.hops} * arrival.packet.wire_bytes;
    }
  }
  for (std::uint32_t link = 0; link < traffic.network().link_count(); ++link) {
    const LinkStatistics use = traffic.network().link_statistics(link);
    hops -= use.packets;
    hop_bytes -= use.wire_bytes;
    EXPECT_LE(use.busy, traffic.simulation().now());
  }
  EXPECT_EQ(hops, 0U);
  EXPECT_EQ(hop_bytes, 0U);
}

// Packets that span buffers, with card ports faster than links: the room behind a packet that leaves by such
// a port may be usable before the packet has left.
TEST_P(NetworkContract, WormholePacketsDrainThroughFastPorts) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(40); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 6);
    NetworkParameters parameters = network(TorusDescription({4, 3}), 48);
    NetworkDescription& description = parameters.description;
    description.switching = NetworkDescription::Switching::wormhole;
    description.pipeline.clock_hz = 1'000'000'000;
    description.pipeline.flit_bytes = 4;
    const auto link_cycles = static_cast<std::int64_t>(2 + random.below(3));
    for (LinkDescription& link : description.links) link.rate = {4, link_cycles, 1'000'000'000};
    description.local_rate = {4, 1, 1'000'000'000};
    description.buffer_bytes = static_cast<std::int64_t>(4 + 4 * random.below(4));
    description.injection_buffer_bytes = 96;
    parameters.card_channels = 2;
    Traffic traffic(parameters, Time::from_ns(3), Time::from_ns(static_cast<std::int64_t>(random.below(50))));
    offer_random(traffic, parameters, random, 100);
    traffic.run();
    traffic.expect_all_delivered();
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, NetworkContract, ::testing::Values(NetworkDescription::Engine::packet),
                         [](const ::testing::TestParamInfo<NetworkDescription::Engine>& engine) {
                           return engine.param == NetworkDescription::Engine::packet ? "packet" : "unnamed";
                         });

}  // namespace
}  // namespace apenet::testing
