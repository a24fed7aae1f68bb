// Tornado traffic beyond saturation: the flit engine's throughput against BookSim2 (commit 28f4329, router =
// iq), and the effect of arbitration by age and of Valiant's routing. docs/models/network.md explains both.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "network/topology/cube.hpp"
#include "runtime/traffic/traffic.hpp"
#include "validation/booksim_router.hpp"

namespace apenet {
namespace {

using Engine = NetworkDescription::Engine;
using Arbitration = NetworkDescription::Arbitration;

// Case V1 of BookSim2: buffers of 8 flits.
NetworkDescription torus(std::vector<std::uint32_t> dims, Engine engine) {
  NetworkDescription network = test::booksim_routers(dims.size(), 4, 8);
  network.engine = engine;
  network.routing = "dimension-order-entry-class";
  network.topology = TorusDescription(std::move(dims));
  return network;
}

TrafficPoint run(const NetworkDescription& network, const std::string& pattern, double load) {
  TrafficOptions options;
  options.pattern = pattern;
  options.load = load;
  options.drain_cycles = 0;
  return run_traffic(network, options);
}

struct Collapse {
  std::vector<std::uint32_t> dims;
  double offered;
  double accepted;  // BookSim2
};
void PrintTo(const Collapse& row, std::ostream* out) {
  *out << row.dims.size() << " dimensions, load " << row.offered;
}

class TornadoCollapse : public ::testing::TestWithParam<Collapse> {};

TEST_P(TornadoCollapse, IsThatOfBookSim) {
  const Collapse& row = GetParam();
  const TrafficPoint point = run(torus(row.dims, Engine::flit), "tornado", row.offered);
  EXPECT_NEAR(point.accepted, row.accepted, 0.03 * row.accepted);
  EXPECT_LT(point.least_accepted, 0.1 * row.accepted);
}

INSTANTIATE_TEST_SUITE_P(V1, TornadoCollapse,
                         ::testing::Values(Collapse{{8}, 0.6, 0.16685}, Collapse{{8, 8}, 0.2, 0.14605},
                                           Collapse{{8, 8}, 0.6, 0.06663}));

class Tornado : public ::testing::TestWithParam<Engine> {};

TEST_P(Tornado, IsFairerByAge) {
  NetworkDescription network = torus({8, 8}, GetParam());
  const TrafficPoint in_turns = run(network, "tornado", 0.6);
  network.arbitration = Arbitration::age;
  const TrafficPoint by_age = run(network, "tornado", 0.6);
  EXPECT_GT(by_age.accepted, 1.3 * in_turns.accepted);
  EXPECT_GT(by_age.least_accepted, 0.04);
  EXPECT_LT(by_age.most_accepted / by_age.least_accepted, 8);
  EXPECT_GT(in_turns.most_accepted, 20 * in_turns.least_accepted);
}

// At a load at which dimension order, with the same routers, has collapsed.
TEST_P(Tornado, IsCarriedByValiant) {
  NetworkDescription network = torus({8, 8}, GetParam());
  network.virtual_channels = 8;
  const double load = GetParam() == Engine::flit ? 0.3 : 0.36;
  const TrafficPoint minimal = run(network, "tornado", load);
  network.routing = "valiant";
  const TrafficPoint valiant = run(network, "tornado", load);
  EXPECT_LT(minimal.accepted, 0.8 * load);
  EXPECT_GT(valiant.accepted, 0.97 * load);
  EXPECT_GT(valiant.least_accepted, 0.8 * load);
}

TEST_P(Tornado, TakesTwiceTheUniformDistanceWithValiant) {
  NetworkDescription network = torus({8, 8}, GetParam());
  network.routing = "valiant";
  TrafficOptions options;
  options.pattern = "tornado";
  options.load = 0.05;
  const TrafficPoint point = run_traffic(network, options);
  // 2 * 2 links for each dimension, less for the packets that come by their destination.
  EXPECT_LT(point.hops, 8);
  EXPECT_GT(point.hops, 7);
  EXPECT_EQ(run_traffic(network, options).packet_latency_cycles, point.packet_latency_cycles);
}

INSTANTIATE_TEST_SUITE_P(Engines, Tornado, ::testing::Values(Engine::packet, Engine::flit),
                         [](const auto& parameter) {
                           return parameter.param == Engine::flit ? "flit" : "packet";
                         });

}  // namespace
}  // namespace apenet
