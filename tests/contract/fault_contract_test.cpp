// The additional contract of a network with faults, on every topology with every routing: links and nodes
// fail and recover at random while packets travel. See docs/models/faults.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "contract/arrangements.hpp"
#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/faults/fault_schedule.hpp"
#include "network/routing/arrangement.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

constexpr int packets = 500;

class FaultContract : public ::testing::TestWithParam<Arrangement> {
 protected:
  [[nodiscard]] NetworkParameters network(RandomStream& random) const {
    NetworkParameters parameters = random_network(NetworkDescription::Engine::packet, GetParam(), random);
    parameters.description.reconfiguration =
        Time::from_ps(static_cast<std::int64_t>(random.below(5'000'000)));
    return parameters;
  }
};

// The name of a random link, node or switch.
std::string random_part(const Topology& topology, RandomStream& random) {
  const std::uint64_t kind = random.below(8);
  if (kind == 0) return "node " + std::to_string(random.below(topology.endpoint_count()));
  if (kind == 1)
    return "switch " + topology.router_name(static_cast<RouterId>(random.below(topology.router_count())));
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const PortRef port{static_cast<RouterId>(random.below(topology.router_count())),
                       static_cast<std::uint32_t>(random.below(topology.ports_per_router()))};
    if (topology.neighbour(port).is_connected()) return "link " + topology.link_name(port);
  }
  return "node " + std::to_string(random.below(topology.endpoint_count()));
}

// Random changes within `span`. If `revives`, everything that fails recovers.
std::vector<std::string> random_faults(const Topology& topology, RandomStream& random, Time span,
                                       bool revives) {
  std::vector<std::string> faults;
  for (std::uint64_t count = 1 + random.below(4); count > 0; --count) {
    std::string text = random_part(topology, random);
    std::vector<std::uint64_t> times;
    for (std::uint64_t i = revives ? 2 + 2 * random.below(2) : 1; i > 0; --i) {
      times.push_back(random.below(static_cast<std::uint64_t>(span.ps())) + i);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    if (revives && times.size() % 2 != 0) times.push_back(times.back() + 1);
    for (std::size_t i = 0; i < times.size(); ++i) {
      text += std::string(i % 2 == 0 ? " down @" : " up @") + std::to_string(times[i]) + "ps";
    }
    faults.push_back(text);
  }
  return faults;
}

void offer_random(Traffic& traffic, const NetworkParameters& parameters, std::uint64_t seed) {
  RandomStream random(seed, 31);
  const std::uint32_t nodes = traffic.network().node_count();
  for (int i = 0; i < packets; ++i) {
    traffic.offer(static_cast<NodeId>(random.below(nodes)), static_cast<NodeId>(random.below(nodes)),
                  static_cast<std::uint16_t>(random.below(parameters.card_channels)),
                  static_cast<std::uint32_t>(1 + random.below(parameters.max_packet_wire_bytes)));
  }
}

// The duration of the traffic without faults.
Time span_of(const NetworkParameters& parameters, std::uint64_t seed) {
  Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
  offer_random(traffic, parameters, seed);
  traffic.run();
  return traffic.simulation().now();
}

void expect_full_injection_room(Traffic& traffic, const NetworkParameters& parameters) {
  for (NodeId node = 0; node < traffic.network().node_count(); ++node) {
    for (std::uint16_t channel = 0; channel < parameters.card_channels; ++channel) {
      EXPECT_EQ(traffic.network().injection_room(node, channel),
                parameters.description.injection_buffer_bytes);
    }
  }
}

TEST_P(FaultContract, EverythingArrivesOnceAndInOrder) {
  std::uint64_t taken_back = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 30);
    NetworkParameters parameters = network(random);
    const Time span = span_of(parameters, seed);
    const Topology topology = make_topology(parameters.description);
    parameters.description.faults = random_faults(topology, random, span, true);
    if (seed % 4 == 0) {
      for (LinkDescription& link : parameters.description.links) link.bit_error_rate = 2e-5;
    }
    std::vector<std::uint64_t> hashes;
    for (int run = 0; run < 2; ++run) {
      Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
      traffic.network().begin(Time::zero());
      offer_random(traffic, parameters, seed);
      traffic.run();
      traffic.expect_all_delivered();
      expect_full_injection_room(traffic, parameters);
      const FaultUse use = traffic.network().fault_use();
      EXPECT_GE(use.events, 2U);
      EXPECT_GE(use.reconfigurations, 1U);
      taken_back += use.packets_taken_back;
      hashes.push_back(traffic.trace_hash());
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken_back, 100U);
}

// Runs the same traffic in a network that has had faults and in a fresh one. The last change finds the
// network idle and resets it, so all times must be equal.
TEST_P(FaultContract, RestoresTheInitialState) {
  if (GetParam() == Arrangement::cube_valiant || GetParam() == Arrangement::fat_tree_random_up) {
    GTEST_SKIP() << "waypoints depend on the numbers of messages, which are others in the second batch";
  }
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 32);
    NetworkParameters parameters = network(random);
    Traffic fresh(parameters, Time::from_ns(20), Time::from_ns(20));
    offer_random(fresh, parameters, seed + 100);
    fresh.run();
    const Topology topology = make_topology(parameters.description);
    parameters.description.faults = random_faults(topology, random, fresh.simulation().now(), true);
    parameters.description.faults.push_back(random_part(topology, random) + " down @1s up @1.1s");
    Traffic used(parameters, Time::from_ns(20), Time::from_ns(20));
    used.network().begin(Time::zero());
    offer_random(used, parameters, seed);
    used.run();
    const Time start = used.simulation().now();
    std::vector<std::size_t> before;
    for (NodeId node = 0; node < used.network().node_count(); ++node) {
      before.push_back(used.node(node).arrivals().size());
    }
    offer_random(used, parameters, seed + 100);
    used.run();
    used.expect_all_delivered();
    for (NodeId node = 0; node < used.network().node_count(); ++node) {
      const std::vector<Arrival>& expected = fresh.node(node).arrivals();
      const std::vector<Arrival>& arrivals = used.node(node).arrivals();
      ASSERT_EQ(arrivals.size() - before[node], expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const Arrival& arrival = arrivals[before[node] + i];
        EXPECT_EQ((arrival.tail_time - start).ps(), expected[i].tail_time.ps());
        EXPECT_EQ((arrival.head_time - start).ps(), expected[i].head_time.ps());
        EXPECT_EQ(arrival.packet.source, expected[i].packet.source);
      }
    }
    if (HasFailure()) return;
  }
}

// Failed parts stay failed: routes avoid them, or the partition is reported. The run never hangs.
TEST_P(FaultContract, PermanentFaultsAreAvoidedOrReported) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, 33);
    NetworkParameters parameters = network(random);
    const Topology topology = make_topology(parameters.description);
    const Time span = span_of(parameters, seed);
    parameters.description.faults = random_faults(topology, random, span, false);
    const FaultSchedule schedule(topology, parameters.description.faults);
    Liveness liveness(topology);
    for (const FaultSchedule::Change& change : schedule.changes()) schedule.apply(change, liveness);
    const std::vector<std::uint32_t> islands = liveness.find_islands(topology);
    const bool is_whole = std::all_of(islands.begin(), islands.end(), [&](std::uint32_t island) {
      return island != Liveness::no_island && island == islands.front();
    });
    Traffic traffic(parameters, Time::from_ns(20), Time::from_ns(20));
    traffic.network().begin(Time::zero());
    offer_random(traffic, parameters, seed);
    try {
      traffic.run();
      traffic.expect_all_delivered();
    } catch (const NetworkPartitioned& error) {
      EXPECT_FALSE(is_whole) << error.what();
      EXPECT_NE(std::string(error.what()).find("cannot reach node"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("fault \""), std::string::npos) << error.what();
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Packet, FaultContract, ::testing::ValuesIn(all_arrangements),
                         [](const ::testing::TestParamInfo<Arrangement>& which) {
                           return name_of(which.param);
                         });

// A ring of four with one dead cable, calculated by hand. Links of 1 byte/ns and 10 ns, routers of 5 ns,
// packets of 100 bytes. Node 0 sends to node 1; at 50 ns the cable 0-1 fails with the packet on it. At 50 +
// 1000 ns the network resumes, and the packet takes 3 links: 4 routers and 3 links of latency, and 100 ns of
// serialisation.
TEST(FaultyNetwork, TakesTheLongWayAroundADeadCable) {
  NetworkParameters parameters = small_network(TorusDescription({4}), 100);
  parameters.description.reconfiguration = Time::from_ns(1000);
  parameters.description.faults = {"link (0)+x down @50ns up @10us"};
  Traffic traffic(parameters);
  traffic.network().begin(Time::zero());
  traffic.offer(0, 1, 0, 100);
  traffic.run();
  traffic.expect_all_delivered();
  const Arrival& arrival = traffic.node(1).arrivals().front();
  EXPECT_EQ(arrival.packet.hops, 3U);
  EXPECT_EQ(arrival.tail_time, Time::from_ns(50 + 1000 + 4 * 5 + 3 * 10 + 100));
  const FaultUse use = traffic.network().fault_use();
  EXPECT_EQ(use.events, 2U);
  EXPECT_EQ(use.reconfigurations, 2U);
  EXPECT_EQ(use.packets_taken_back, 1U);
}

// A packet to a node that recovers waits for it; a packet to one that does not is reported.
TEST(FaultyNetwork, PacketsWaitOnlyForNodesThatRecover) {
  NetworkParameters parameters = small_network(TorusDescription({4}), 100);
  parameters.description.reconfiguration = Time::from_ns(1000);
  parameters.description.faults = {"node (2) down @0ns up @20us"};
  {
    Traffic traffic(parameters);
    traffic.network().begin(Time::zero());
    traffic.offer(0, 2, 0, 100);
    traffic.run();
    traffic.expect_all_delivered();
    EXPECT_EQ(traffic.node(2).arrivals().front().tail_time,
              Time::from_ns(20'000 + 1000 + 3 * 5 + 2 * 10 + 100));
  }
  parameters.description.faults = {"link (1)+x down @7ns", "node (2) down @2us"};
  Traffic traffic(parameters);
  traffic.network().begin(Time::zero());
  for (int i = 0; i < 40; ++i) traffic.offer(0, 2, 0, 100);
  try {
    traffic.run();
    ADD_FAILURE() << "the partition was not reported";
  } catch (const NetworkPartitioned& error) {
    const std::string text = error.what();
    EXPECT_NE(
        text.find(
            "at 3 us node 0 at (0) cannot reach node 2 at (2): there has been no path since 2 us, fault "
            "\"node (2) down @2us\""),
        std::string::npos)
        << text;
    // Four packets fill the card's FIFO, and one that had left it has been taken back.
    EXPECT_NE(text.find("messages in progress in the network: 5"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace apenet::testing
