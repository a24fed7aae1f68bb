// The factory refuses invalid descriptions and names key, value and expectation. Also tests its small parts.
#include "network/make_network.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "contract/traffic.hpp"
#include "kernel/random.hpp"
#include "network/packet/serialisation.hpp"
#include "network/topology/crossbar.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

struct BadInput {
  const char* key;
  const char* value;
  std::function<void(NetworkParameters&)> spoil;
};

TEST(MakeNetwork, RefusesBadDescriptionsByKeyAndValue) {
  const std::vector<BadInput> cases = {
      {"network.topology", "none", [](NetworkParameters& p) { p.description.topology = {}; }},
      {"network.dims", "[4, 0]",
       [](NetworkParameters& p) {
         p.description.topology = TorusDescription({4, 0});
       }},
      {"network.links", "1 entries", [](NetworkParameters& p) { p.description.links.pop_back(); }},
      {"network.links[1].rate", "0 bytes",
       [](NetworkParameters& p) { p.description.links[1].rate.bytes = 0; }},
      {"network.links[0].latency", "-1 ps",
       [](NetworkParameters& p) { p.description.links[0].latency = Time::from_ps(-1); }},
      {"router.local_rate", "0 bytes", [](NetworkParameters& p) { p.description.local_rate = DataRate{}; }},
      {"router.latency", "-5 ps",
       [](NetworkParameters& p) { p.description.router_latency = Time::from_ps(-5); }},
      {"router.credit_latency", "-5 ps",
       [](NetworkParameters& p) { p.description.credit_latency = Time::from_ps(-5); }},
      {"router.virtual_channels", "0", [](NetworkParameters& p) { p.description.virtual_channels = 0; }},
      {"router.virtual_channels", "1", [](NetworkParameters& p) { p.description.virtual_channels = 1; }},
      {"router.virtual_channels", "66", [](NetworkParameters& p) { p.description.virtual_channels = 66; }},
      {"router.buffer_bytes", "63", [](NetworkParameters& p) { p.description.buffer_bytes = 63; }},
      {"router.injection_buffer_bytes", "63",
       [](NetworkParameters& p) { p.description.injection_buffer_bytes = 63; }},
      {"router.ejection_buffer_bytes", "63",
       [](NetworkParameters& p) { p.description.ejection_buffer_bytes = 63; }},
      {"router.buffer_bytes", "2147483648",
       [](NetworkParameters& p) {
         p.description.switching = NetworkDescription::Switching::wormhole;
         p.description.buffer_bytes = std::int64_t{1} << 31U;
       }},
      {"router.injection_fifos", "0", [](NetworkParameters& p) { p.description.injection_fifos = 0; }},
      {"router.injection_fifos", "33",
       [](NetworkParameters& p) {
         p.description.injection_fifos = 33;
         p.description.injection_rule = InjectionRule::queue;
       }},
      {"router.injection_fifos", "3", [](NetworkParameters& p) { p.description.injection_fifos = 3; }},
      {"router.injection_fifos", "2",
       [](NetworkParameters& p) {
         p.description.topology = CrossbarDescription{4};
         p.description.links.clear();
         p.description.injection_fifos = 2;
       }},
      {"router.ejection_ports", "33", [](NetworkParameters& p) { p.description.ejection_ports = 33; }},
      {"card_channels", "40000",
       [](NetworkParameters& p) {
         p.description.injection_fifos = 2;
         p.description.injection_rule = InjectionRule::queue;
         p.card_channels = 40000;
       }},
      {"card_channels", "0", [](NetworkParameters& p) { p.card_channels = 0; }},
      {"max_packet_wire_bytes", "0", [](NetworkParameters& p) { p.max_packet_wire_bytes = 0; }},
  };
  for (const BadInput& bad : cases) {
    NetworkParameters parameters = small_network(TorusDescription({4, 4}), 64);
    bad.spoil(parameters);
    Simulation simulation;
    try {
      const auto network = make_network(simulation, parameters);
      ADD_FAILURE() << "accepted " << bad.key << " = " << bad.value;
    } catch (const std::invalid_argument& error) {
      const std::string expected = std::string(bad.key) + " = " + bad.value;
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos) << error.what();
    }
  }
}

TEST(MakeNetwork, TheFlitEngineRefusesWormholeWithAdaptiveRouting) {
  NetworkParameters parameters = small_network(TorusDescription({4, 4}), 64);
  NetworkDescription& description = parameters.description;
  description.routing = "minimal-adaptive";
  description.virtual_channels = 3;
  description.switching = NetworkDescription::Switching::wormhole;
  description.pipeline.clock_hz = 1'000'000'000;
  description.pipeline.flit_bytes = 16;
  Simulation simulation;
  // Packet engine: each packet fits one buffer.
  EXPECT_EQ(make_network(simulation, parameters)->node_count(), 16U);
  description.engine = NetworkDescription::Engine::flit;
  try {
    const auto network = make_network(simulation, parameters);
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("router.switching = \"wormhole\": expected"), std::string::npos)
        << error.what();
  }
}

// Without router.flit_bytes a flit is what the first link moves at a time.
TEST(MakeNetwork, CountsTheSlotsOfBubblesInFlitsOfTheFirstLink) {
  NetworkParameters parameters = small_network(TorusDescription({4, 4}), 64);
  NetworkDescription& description = parameters.description;
  description.routing = "dimension-order-bubble";
  description.engine = NetworkDescription::Engine::flit;
  description.pipeline.clock_hz = 1'000'000'000;
  description.pipeline.flit_bytes = 0;
  for (LinkDescription& link : description.links) link.rate = {16, 1, 1'000'000'000};
  description.local_rate = {16, 1, 1'000'000'000};
  description.buffer_bytes = 128;  // two packets of four flits
  Simulation simulation;
  EXPECT_EQ(make_network(simulation, parameters)->node_count(), 16U);
  description.buffer_bytes = 112;
  try {
    const auto network = make_network(simulation, parameters);
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("router.buffer_bytes"), std::string::npos) << error.what();
  }
}

TEST(MakeNetwork, AMeshNeedsOneVirtualChannel) {
  NetworkParameters parameters = small_network(MeshDescription({4, 4}), 64);
  parameters.description.virtual_channels = 1;
  Simulation simulation;
  EXPECT_EQ(make_network(simulation, parameters)->node_count(), 16U);
}

TEST(PacketEngineDeathTest, RefusesWhatTheContractForbids) {
  NetworkParameters parameters = small_network(TorusDescription({4}), 64);
  Traffic traffic(parameters);
  Packet packet;
  packet.destination = 1;
  packet.wire_bytes = 65;
  EXPECT_DEATH(traffic.network().inject(packet, Time::zero()), "65 bytes on the wire, limit 64");
  packet.wire_bytes = 64;
  EXPECT_DEATH(traffic.network().inject(packet, Time::from_ps(-1)), "before its header");
  EXPECT_DEATH(traffic.network().consumed(0, packet), "consumed more than arrived");
  packet.destination = 4;
  EXPECT_DEATH(traffic.network().inject(packet, Time::zero()), "packet from 0 to 4");
  packet.destination = 1;
  for (int i = 0; i < 4; ++i) traffic.network().inject(packet, Time::zero());
  EXPECT_DEATH(traffic.network().inject(packet, Time::zero()), "room 0");
}

// One packet in each of more channels than a word has bits: the rotation covers all of them.
TEST(PacketEngine, ManyCardChannelsTakeTurns) {
  NetworkParameters parameters = small_network(TorusDescription({2}), 64);
  parameters.card_channels = 150;
  Traffic traffic(parameters);
  for (std::uint16_t channel = 0; channel < 150; ++channel) {
    for (int i = 0; i < 3; ++i) traffic.offer(0, 1, channel, 64);
  }
  traffic.run();
  traffic.expect_all_delivered();
  std::vector<int> in_first_round(150);
  for (std::size_t i = 0; i < 150; ++i) ++in_first_round[traffic.node(1).arrivals()[i].packet.channel];
  for (const int count : in_first_round) EXPECT_LE(count, 2);
}

TEST(Serialisation, EqualsTheRateForEverySize) {
  std::vector<DataRate> rates = {{16, 3, 133'000'000},          {16, 3, 115'000'000},
                                 DataRate::bytes_per_second(3), DataRate::bytes_per_second(5'000'000'000),
                                 {1, 7, 999'999'937},           {999'999'937, 1'000'003, 133'333'333}};
  RandomStream random(3, 0);
  for (int i = 0; i < 50; ++i) {
    rates.push_back({static_cast<std::int64_t>(1 + random.below(1000)),
                     static_cast<std::int64_t>(1 + random.below(99)),
                     static_cast<std::int64_t>(1 + random.below(2'000'000'000))});
  }
  for (const DataRate& rate : rates) {
    const Serialisation serialisation(rate);
    for (const std::uint32_t bytes : {1U, 2U, 16U, 133U, 272U, 4096U, 65535U, 4'000'000U}) {
      EXPECT_EQ(serialisation.duration(bytes), rate.duration(bytes)) << bytes;
    }
  }
}

}  // namespace
}  // namespace apenet::testing
