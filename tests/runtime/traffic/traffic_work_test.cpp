// The work of traffic, as it is counted before the run, against what the links carry.
#include <gtest/gtest.h>

#include <string>

#include "runtime/traffic/traffic.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

TEST(TrafficWork, IsWhatTheLinksCarry) {
  NetworkDescription network = test::machine("iq-router-v1").network;
  for (const NetworkDescription::Engine engine :
       {NetworkDescription::Engine::packet, NetworkDescription::Engine::flit}) {
    network.engine = engine;
    for (const std::string pattern : {"tornado", "neighbor", "bitcomp"}) {
      TrafficOptions options;
      options.pattern = pattern;
      options.load = 0.1;
      options.packet_flits = 2;
      options.drain_cycles = 0;
      const auto flits = static_cast<double>(run_traffic(network, options).link_flits);
      const double crossings = count_link_crossings(network, options);
      const bool is_flit = engine == NetworkDescription::Engine::flit;
      EXPECT_NEAR(crossings * (is_flit ? 1 : 2), flits, flits / 50) << pattern;
    }
  }
}

TEST(TrafficWork, OfAnAbsurdRunIsCountedAtOnce) {
  const NetworkDescription network = test::machine("iq-router-v1").network;
  TrafficOptions options;
  options.pattern = "neighbor";
  options.load = 1;
  options.warmup_cycles = options.measure_cycles = 1'000'000'000;
  EXPECT_EQ(count_link_crossings(network, options), 64.0 * 3 * 2e9);
}

}  // namespace
}  // namespace apenet
