// The contract of both engines where nodes have several injection FIFOs and ejection ports.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "contract/arrangements.hpp"
#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/routing/injection_fifos.hpp"
#include "network/topology/cube.hpp"
#include "support/cases.hpp"

namespace apenet::testing {
namespace {

class InjectionContract : public ::testing::TestWithParam<NetworkDescription::Engine> {
 protected:
  // A torus of 4x4x4 whose routers and links take whole cycles of a nanosecond. A flit of 16 bytes takes one
  // on every link and port.
  [[nodiscard]] NetworkParameters torus(std::uint32_t fifos, std::uint32_t ejection_ports) const {
    NetworkParameters parameters = small_network(TorusDescription({4, 4, 4}), packet_bytes);
    NetworkDescription& description = parameters.description;
    description.engine = GetParam();
    description.pipeline.clock_hz = clock_hz;
    description.pipeline.flit_bytes = 16;
    for (LinkDescription& link : description.links) link.rate = {16, 1, clock_hz};
    description.local_rate = {16, 1, clock_hz};
    description.virtual_channels = 4;
    description.buffer_bytes = std::int64_t{4} * packet_bytes;
    description.ejection_buffer_bytes = std::int64_t{4} * packet_bytes;
    description.injection_fifos = fifos;
    description.ejection_ports = ejection_ports;
    return parameters;
  }

  static constexpr std::int64_t clock_hz = 1'000'000'000;
  static constexpr std::uint32_t packet_bytes = 256;
  static constexpr int packets = 50;
  // The neighbours of node 0: +x, -x, +y, -y, +z, -z.
  static constexpr NodeId neighbours[] = {1, 3, 4, 12, 16, 48};
};

Time last_arrival(Traffic& traffic) {
  Time last = Time::zero();
  for (NodeId node = 0; node < traffic.network().node_count(); ++node) {
    for (const Arrival& arrival : traffic.node(node).arrivals()) last = std::max(last, arrival.tail_time);
  }
  return last;
}

Time run_fan_out(const NetworkParameters& parameters, const std::vector<NodeId>& targets, int packets) {
  const InjectionFifos fifos(parameters.description, parameters.card_channels);
  Traffic traffic(parameters);
  for (int i = 0; i < packets; ++i) {
    for (const NodeId target : targets) {
      traffic.offer(0, target, fifos.channel(0, target, 0, 0), parameters.max_packet_wire_bytes);
    }
  }
  traffic.run();
  traffic.expect_all_delivered();
  return last_arrival(traffic);
}

Time run_fan_in(const NetworkParameters& parameters, const std::vector<NodeId>& sources, int packets) {
  const InjectionFifos fifos(parameters.description, parameters.card_channels);
  Traffic traffic(parameters);
  for (int i = 0; i < packets; ++i) {
    for (const NodeId source : sources)
      traffic.offer(source, 0, fifos.channel(source, 0, 0, 0), parameters.max_packet_wire_bytes);
  }
  traffic.run();
  traffic.expect_all_delivered();
  return last_arrival(traffic);
}

// A FIFO and a port for each direction: six streams take the time of one.
TEST_P(InjectionContract, SixDirectionsAreAsFastAsOne) {
  const NetworkParameters parameters = torus(6, 6);
  const std::vector<NodeId> all(std::begin(neighbours), std::end(neighbours));
  EXPECT_EQ(run_fan_out(parameters, all, packets).ps(), run_fan_out(parameters, {1}, packets).ps());
  EXPECT_EQ(run_fan_in(parameters, all, packets).ps(), run_fan_in(parameters, {1}, packets).ps());
}

// Each of six streams needs 50 x 16 ns; through one FIFO, or one ejection port, they follow one another.
TEST_P(InjectionContract, OneFifoOrPortCarriesOneStreamAtATime) {
  const std::vector<NodeId> all(std::begin(neighbours), std::end(neighbours));
  const Time streams = Time::from_ns(6LL * packets * packet_bytes / 16);
  EXPECT_GE(run_fan_out(torus(1, 6), all, packets).ps(), streams.ps());
  EXPECT_GE(run_fan_in(torus(6, 1), all, packets).ps(), streams.ps());
}

// What waits in one FIFO holds up no other: node 1 consumes nothing, and the other streams end as without it.
TEST_P(InjectionContract, ABlockedDirectionHoldsUpNoOther) {
  const NetworkParameters parameters = torus(6, 6);
  const InjectionFifos fifos(parameters.description, parameters.card_channels);
  Traffic traffic(parameters);
  traffic.node(1).hold_consumption(true);
  for (int i = 0; i < packets; ++i) {
    for (const NodeId target : neighbours)
      traffic.offer(0, target, fifos.channel(0, target, 0, 0), packet_bytes);
  }
  traffic.run();
  const std::vector<NodeId> others(std::begin(neighbours) + 1, std::end(neighbours));
  for (const NodeId target : others)
    EXPECT_EQ(traffic.node(target).arrivals().size(), static_cast<std::size_t>(packets));
  EXPECT_FALSE(traffic.node(0).has_sent_all());
  EXPECT_EQ(last_arrival(traffic).ps(), run_fan_out(parameters, others, packets).ps());
  traffic.node(1).hold_consumption(false);
  traffic.run();
  traffic.expect_all_delivered();
}

// The rules by their definitions: 4x4x4, from node 5 = (1, 1, 0).
TEST(InjectionFifos, FollowTheirRules) {
  NetworkDescription network;
  network.topology = TorusDescription({4, 4, 4});
  network.injection_fifos = 6;
  const InjectionFifos by_direction(network, 2);
  EXPECT_EQ(by_direction.channel(5, 6, 0, 0), 0);           // +x, FIFO 0
  EXPECT_EQ(by_direction.channel(5, 4, 0, 1), 1 * 2 + 1);   // -x, FIFO 1 of channel 1
  EXPECT_EQ(by_direction.channel(5, 9, 0, 0), 2 * 2);       // +y
  EXPECT_EQ(by_direction.channel(5, 10, 0, 0), 0);          // (2, 2, 0): x first
  EXPECT_EQ(by_direction.channel(5, 5 + 48, 0, 0), 5 * 2);  // -z
  network.injection_rule = InjectionRule::destination;
  EXPECT_EQ(InjectionFifos(network, 2).channel(5, 10, 3, 1), 10 % 6 * 2 + 1);
  network.injection_rule = InjectionRule::queue;
  EXPECT_EQ(InjectionFifos(network, 2).channel(5, 10, 9, 1), 9 % 6 * 2 + 1);
  network.injection_rule = InjectionRule::least_loaded;
  const InjectionFifos least_loaded(network, 2);
  const std::int64_t loads[] = {9, 4, 8, 4, 7, 4};
  EXPECT_EQ(least_loaded.least_loaded(1, [&](std::uint16_t channel) { return loads[channel / 2]; }), 3)
      << "the first of FIFOs 1, 3 and 5, on channel 1";
  EXPECT_EQ(least_loaded.channel(5, 10, 9, 1), 9 % 6 * 2 + 1) << "what no descriptor asks for";
  network.injection_fifos = 1;
  EXPECT_FALSE(InjectionFifos(network, 2).is_least_loaded()) << "there is nothing to choose";
}

// A dimension of two nodes is one direction, a dimension of one is none.
TEST(InjectionFifos, CountDirectionsOfANode) {
  NetworkDescription network;
  network.topology = TorusDescription({1, 2, 8});
  network.injection_fifos = 3;
  require_injection(network);
  network.injection_fifos = 2;
  EXPECT_THROW(require_injection(network), std::invalid_argument);
}

// Any packet may take any FIFO: the rule is the card's, and the engines hold for every one.
TEST_P(InjectionContract, DeliversEveryPacketOnceAndInOrder) {
  constexpr Arrangement cubes[] = {Arrangement::cube_dimension_order, Arrangement::cube_up_down,
                                   Arrangement::cube_table, Arrangement::cube_adaptive,
                                   Arrangement::cube_valiant};
  for (const Arrangement arrangement : cubes) {
    for (std::uint64_t seed = 1; seed <= test::drawn_cases(15); ++seed) {
      SCOPED_TRACE(name_of(arrangement) + " seed " + std::to_string(seed));
      RandomStream random(seed, 41);
      NetworkParameters parameters = random_network(GetParam(), arrangement, random);
      NetworkDescription& description = parameters.description;
      description.injection_fifos = static_cast<std::uint32_t>(1 + random.below(6));
      description.ejection_ports = static_cast<std::uint32_t>(1 + random.below(6));
      // Their ejection ports differ: by FIFO, and by link with the other two.
      constexpr InjectionRule rules[] = {InjectionRule::queue, InjectionRule::destination,
                                         InjectionRule::least_loaded};
      description.injection_rule = rules[random.below(3)];
      const bool is_pipelined = GetParam() == NetworkDescription::Engine::flit && random.below(2) == 0;
      if (is_pipelined) draw_pipeline(parameters, random);
      if (random.below(3) == 0) description.channel_selection = NetworkDescription::ChannelSelection::any;
      if (random.below(3) == 0) {
        description.reconfiguration = Time::from_ns(1000);
        description.faults = {"node 1 down @2us up @5us"};
      }
      Traffic traffic(parameters, Time::from_ns(static_cast<std::int64_t>(random.below(300))),
                      Time::from_ns(static_cast<std::int64_t>(random.below(300))));
      traffic.network().begin(Time::zero());
      offer_random(traffic, parameters, random, test::drawn_load(1000));
      traffic.run();
      traffic.expect_all_delivered();
      for (NodeId node = 0; node < traffic.network().node_count(); ++node) {
        for (std::uint32_t fifo = 0; fifo < parameters.fifos_of_node(); ++fifo)
          EXPECT_EQ(traffic.network().injection_room(node, static_cast<std::uint16_t>(fifo)),
                    description.injection_buffer_bytes);
      }
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, InjectionContract,
                         ::testing::Values(NetworkDescription::Engine::packet,
                                           NetworkDescription::Engine::flit),
                         [](const ::testing::TestParamInfo<NetworkDescription::Engine>& engine) {
                           return engine.param == NetworkDescription::Engine::packet ? "packet" : "flit";
                         });

}  // namespace
}  // namespace apenet::testing
