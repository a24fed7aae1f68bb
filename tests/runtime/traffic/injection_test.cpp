// Both engines on drawn networks whose nodes have several injection FIFOs and ejection ports.
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "network/topology/cube.hpp"
#include "runtime/traffic/traffic.hpp"
#include "support/cases.hpp"

namespace apenet {
namespace {

// A torus whose times are whole cycles, so that both engines simulate the same machine. Links and ports take
// two cycles for a flit, which hides the cycles between the packets of a virtual channel.
NetworkDescription drawn_network(RandomStream& random) {
  static const std::vector<std::vector<std::uint32_t>> shapes = {{8},       {4, 4}, {5, 3},
                                                                 {4, 4, 4}, {8, 4}, {4, 2, 2}};
  constexpr std::int64_t clock_hz = 1'000'000'000;
  NetworkDescription network;
  network.topology = TorusDescription(shapes[random.below(shapes.size())]);
  network.links.assign(network.topology.link_classes().size(), {{16, 4, clock_hz}, Time::from_ns(4)});
  network.local_rate = {16, 4, clock_hz};
  network.router_latency = Time::from_ns(5);
  network.credit_latency = Time::from_ns(6);
  network.pipeline.clock_hz = clock_hz;
  network.pipeline.flit_bytes = 16;
  network.virtual_channels = 4;
  network.buffer_bytes = 2048;
  network.injection_rule = static_cast<InjectionRule>(random.below(4));
  const bool is_by_direction = network.injection_rule == InjectionRule::direction;
  network.injection_fifos = static_cast<std::uint32_t>(is_by_direction ? 6 : 1 + random.below(6));
  network.ejection_ports = static_cast<std::uint32_t>(1 + random.below(6));
  return network;
}

TEST(SeveralFifos, BothEnginesAgreeBelowSaturation) {
  for (std::uint64_t seed = 1; seed <= test::drawn_cases(12); ++seed) {
    RandomStream random(seed, 51);
    NetworkDescription network = drawn_network(random);
    TrafficOptions options{.pattern = random.below(3) == 0 ? "neighbor" : "uniform",
                           .load = 0.05 + 0.01 * static_cast<double>(random.below(20)),
                           .packet_flits = static_cast<std::uint32_t>(8 + random.below(25)),
                           .seed = seed,
                           .warmup_cycles = 3000,
                           .measure_cycles = 12000};
    SCOPED_TRACE("seed " + std::to_string(seed) + ", FIFOs " + std::to_string(network.injection_fifos) +
                 ", ejection ports " + std::to_string(network.ejection_ports) + ", load " +
                 std::to_string(options.load));
    const TrafficPoint packet = run_traffic(network, options);
    network.engine = NetworkDescription::Engine::flit;
    const TrafficPoint flit = run_traffic(network, options);
    EXPECT_FALSE(flit.is_saturated);
    EXPECT_EQ(packet.packets, flit.packets);
    EXPECT_NEAR(packet.packet_latency_cycles / flit.packet_latency_cycles, 1, 0.05);
    EXPECT_NEAR(packet.accepted / flit.accepted, 1, 0.02);
  }
}

// One node of a ring of 4 and its two neighbours: to each by its own FIFO a flit in four cycles.
TEST(SeveralFifos, LoadsAboveOneFlitAreCarried) {
  for (const auto engine : {NetworkDescription::Engine::packet, NetworkDescription::Engine::flit}) {
    RandomStream random(1, 52);
    NetworkDescription network = drawn_network(random);
    network.engine = engine;
    network.topology = TorusDescription({3});
    network.links.resize(1);
    network.injection_rule = InjectionRule::direction;
    network.injection_fifos = network.ejection_ports = 2;
    const TrafficOptions options{
        .load = 1.2, .packet_flits = 16, .warmup_cycles = 2000, .measure_cycles = 20000};
    const TrafficPoint several = run_traffic(network, options);
    EXPECT_FALSE(several.is_saturated);
    EXPECT_NEAR(several.accepted, 1.2, 0.04);
    network.injection_fifos = network.ejection_ports = 1;
    EXPECT_THROW(static_cast<void>(run_traffic(network, options)), std::invalid_argument);
  }
}

// Node 1 of a ring of 3 sends to 0, to 2 and to itself. Of two FIFOs, by destination, the first carries the
// first two, a flit per flit time for both together.
TEST(SeveralFifos, TheLeastLoadedOneSpreadsWhatDestinationsShare) {
  for (const auto engine : {NetworkDescription::Engine::packet, NetworkDescription::Engine::flit}) {
    RandomStream random(1, 54);
    NetworkDescription network = drawn_network(random);
    network.engine = engine;
    network.topology = TorusDescription({3});
    network.links.resize(1);
    network.injection_fifos = network.ejection_ports = 2;
    const TrafficOptions options{
        .load = 1.8, .packet_flits = 16, .warmup_cycles = 2000, .measure_cycles = 20000};
    network.injection_rule = InjectionRule::destination;
    const double joined = run_traffic(network, options).accepted;
    network.injection_rule = InjectionRule::least_loaded;
    EXPECT_GT(run_traffic(network, options).accepted, 1.08 * joined);
  }
}

TEST(SeveralFifos, RefuseToMeasureQueuedPackets) {
  RandomStream random(1, 53);
  NetworkDescription network = drawn_network(random);
  network.injection_rule = InjectionRule::queue;
  network.injection_fifos = 2;
  const TrafficOptions options{.measures_queued = true};
  try {
    static_cast<void>(run_traffic(network, options));
    ADD_FAILURE() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("measure_queued = true: expected false"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace apenet
