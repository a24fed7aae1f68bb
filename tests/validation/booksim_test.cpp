// The flit engine against BookSim2 (commit 28f4329, router = iq, iSLIP allocators), with the routers of the
// two reference curves: exact without contention, and within the statistics of a short run under load.
//
// docs/models/flit-engine.md states how each number was measured. Longer curves are in
// tests/validation/booksim.csv, which docs/models/plot_flit.py plots together with this engine's.
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "network/topology/cube.hpp"
#include "network/topology/fat_tree.hpp"
#include "runtime/traffic/traffic.hpp"
#include "validation/booksim_router.hpp"

namespace apenet {
namespace {

NetworkDescription iq_router(std::vector<std::uint32_t> dims, std::uint32_t virtual_channels,
                             std::uint32_t buffer_flits) {
  NetworkDescription network = test::booksim_routers(dims.size(), virtual_channels, buffer_flits);
  network.routing = "dimension-order-entry-class";
  network.topology = TorusDescription(std::move(dims));
  return network;
}

TrafficOptions traffic(const std::string& pattern, std::uint32_t packet_flits, double load) {
  TrafficOptions options;
  options.pattern = pattern;
  options.packet_flits = packet_flits;
  options.load = load;
  return options;
}

struct ZeroLoad {
  const char* pattern;
  std::uint32_t packet_flits;
  std::uint32_t buffer_flits;
  double latency_cycles;
};
void PrintTo(const ZeroLoad& row, std::ostream* out) {
  *out << row.pattern << ", " << row.packet_flits << " flits, buffers of " << row.buffer_flits;
}

class BookSimZeroLoad : public ::testing::TestWithParam<ZeroLoad> {};

// A ring of 8 with two virtual channels; the smallest latency of single packets.
TEST_P(BookSimZeroLoad, IsExact) {
  const ZeroLoad& row = GetParam();
  TrafficOptions options = traffic(row.pattern, row.packet_flits, 0.001);
  options.measure_cycles = 40'000;
  const TrafficPoint point = run_traffic(iq_router({8}, 2, row.buffer_flits), options);
  EXPECT_GT(point.packets, 10U);
  EXPECT_EQ(point.min_latency_cycles, row.latency_cycles);
}

INSTANTIATE_TEST_SUITE_P(Ring8, BookSimZeroLoad,
                         ::testing::Values(ZeroLoad{"neighbor", 1, 1, 12}, ZeroLoad{"neighbor", 1, 2, 12},
                                           ZeroLoad{"neighbor", 1, 32, 12}, ZeroLoad{"neighbor", 8, 1, 54},
                                           ZeroLoad{"neighbor", 8, 2, 31}, ZeroLoad{"neighbor", 8, 4, 21},
                                           ZeroLoad{"neighbor", 8, 6, 19}, ZeroLoad{"neighbor", 8, 32, 19},
                                           ZeroLoad{"neighbor", 16, 1, 102}, ZeroLoad{"neighbor", 16, 2, 55},
                                           ZeroLoad{"neighbor", 16, 4, 33}, ZeroLoad{"neighbor", 16, 6, 27},
                                           ZeroLoad{"neighbor", 16, 32, 27}, ZeroLoad{"tornado", 1, 1, 22},
                                           ZeroLoad{"tornado", 1, 32, 22}, ZeroLoad{"tornado", 8, 1, 64},
                                           ZeroLoad{"tornado", 8, 2, 41}, ZeroLoad{"tornado", 8, 4, 31},
                                           ZeroLoad{"tornado", 8, 32, 29}, ZeroLoad{"tornado", 16, 1, 112},
                                           ZeroLoad{"tornado", 16, 2, 65}, ZeroLoad{"tornado", 16, 4, 43},
                                           ZeroLoad{"tornado", 16, 32, 37}));

struct CreditLoop {
  std::uint32_t packet_flits;
  std::uint32_t buffer_flits;
  double accepted;
};
void PrintTo(const CreditLoop& row, std::ostream* out) {
  *out << row.packet_flits << " flits, buffers of " << row.buffer_flits;
}

class BookSimCreditLoop : public ::testing::TestWithParam<CreditLoop> {};

// A ring of 8 in which every node streams to the next one at full load, through the single virtual channel it
// may use: 8 cycles from grant to usable credit for a header, 6 for other flits, and at most P / (P + 2).
TEST_P(BookSimCreditLoop, IsExact) {
  const CreditLoop& row = GetParam();
  TrafficOptions options = traffic("neighbor", row.packet_flits, 1.0);
  options.drain_cycles = 0;
  const TrafficPoint point = run_traffic(iq_router({8}, 2, row.buffer_flits), options);
  EXPECT_NEAR(point.accepted, row.accepted, 0.0003);  // because of the ends of the window
  EXPECT_TRUE(point.is_saturated);
}

INSTANTIATE_TEST_SUITE_P(Ring8, BookSimCreditLoop,
                         ::testing::Values(CreditLoop{1, 1, 0.125}, CreditLoop{4, 1, 0.15383},
                                           CreditLoop{1, 2, 0.25}, CreditLoop{4, 2, 0.28567},
                                           CreditLoop{1, 3, 0.33333}, CreditLoop{4, 3, 0.4},
                                           CreditLoop{1, 4, 0.33333}, CreditLoop{4, 4, 0.5},
                                           CreditLoop{1, 5, 0.33333}, CreditLoop{4, 5, 0.66667},
                                           CreditLoop{1, 16, 0.33333}, CreditLoop{4, 16, 0.66667}));

// A packet counts when its tail arrives, BookSim2 counts flits: 16 flits in every 98 cycles, which divide
// this window but not the one above. There the counts differ by up to a packet, 0.66 %.
TEST(BookSimWindow, LongPacketsAreExactInAWindowOfWholePackets) {
  TrafficOptions options = traffic("neighbor", 16, 1.0);
  options.measure_cycles = 76 * 98;
  options.drain_cycles = 0;
  EXPECT_DOUBLE_EQ(run_traffic(iq_router({8}, 2, 1), options).accepted, 16.0 / 98);
}

struct Loaded {
  const char* name;
  std::uint32_t packet_flits;
  std::uint32_t virtual_channels;
  std::uint32_t buffer_flits;
  double offered;
  double latency_cycles;
  double tolerance;  // relative: 2 %, or twice the statistical error of the shorter run if that is more
};
void PrintTo(const Loaded& row, std::ostream* out) {
  *out << row.name << " at " << row.offered;
}

class BookSimLoaded : public ::testing::TestWithParam<Loaded> {};

// 4x4x4 torus, uniform traffic, below 80 % of saturation.
TEST_P(BookSimLoaded, HasTheLatency) {
  const Loaded& row = GetParam();
  TrafficOptions options = traffic("uniform", row.packet_flits, row.offered);
  options.warmup_cycles = 1000;
  options.measure_cycles = 4000;
  const TrafficPoint point =
      run_traffic(iq_router({4, 4, 4}, row.virtual_channels, row.buffer_flits), options);
  EXPECT_NEAR(point.packet_latency_cycles / row.latency_cycles, 1, row.tolerance);
  EXPECT_NEAR(point.accepted / row.offered, 1, 0.05);
  EXPECT_FALSE(point.is_saturated);
}

INSTANTIATE_TEST_SUITE_P(Torus4x4x4, BookSimLoaded,
                         ::testing::Values(Loaded{"V1", 1, 4, 8, 0.1, 22.221, 0.02},
                                           Loaded{"V1", 1, 4, 8, 0.4, 23.241, 0.02},
                                           Loaded{"V1", 1, 4, 8, 0.6, 25.125, 0.02},
                                           Loaded{"V2", 8, 2, 4, 0.1, 33.992, 0.03},
                                           Loaded{"V2", 8, 2, 4, 0.2, 39.881, 0.03}));

struct Saturated {
  const char* name;
  std::uint32_t packet_flits;
  std::uint32_t virtual_channels;
  std::uint32_t buffer_flits;
  double offered;
  double accepted;
};
void PrintTo(const Saturated& row, std::ostream* out) {
  *out << row.name;
}

class BookSimSaturated : public ::testing::TestWithParam<Saturated> {};

TEST_P(BookSimSaturated, HasTheThroughput) {
  const Saturated& row = GetParam();
  TrafficOptions options = traffic("uniform", row.packet_flits, row.offered);
  options.warmup_cycles = 2000;
  options.measure_cycles = 4000;
  options.drain_cycles = 0;
  const TrafficPoint point =
      run_traffic(iq_router({4, 4, 4}, row.virtual_channels, row.buffer_flits), options);
  EXPECT_NEAR(point.accepted / row.accepted, 1, 0.03);
  EXPECT_TRUE(point.is_saturated);
}

INSTANTIATE_TEST_SUITE_P(Torus4x4x4, BookSimSaturated,
                         ::testing::Values(Saturated{"V1", 1, 4, 8, 0.95, 0.82615},
                                           Saturated{"V2", 8, 2, 4, 0.5, 0.39816}));

// BookSim2's `fattree` with k = 4, n = 3 and `nca`, the router of V1, uniform traffic.
TEST(BookSimFatTree, HasLatencyAndThroughput) {
  NetworkDescription network = iq_router({4, 4}, 4, 8);
  network.topology = FatTreeDescription{{4, 4, 4}, {4, 4}, {1, 1}};
  network.routing = "random-up";
  struct Row {
    double offered;
    double latency_cycles;
  };
  for (const Row& row : {Row{0.1, 24.231}, Row{0.3, 25.777}, Row{0.5, 31.112}}) {
    TrafficOptions options = traffic("uniform", 1, row.offered);
    options.warmup_cycles = 1000;
    options.measure_cycles = 4000;
    const TrafficPoint point = run_traffic(network, options);
    EXPECT_NEAR(point.packet_latency_cycles / row.latency_cycles, 1, 0.02) << "load " << row.offered;
  }
  TrafficOptions options = traffic("uniform", 1, 0.9);
  options.drain_cycles = 0;
  EXPECT_NEAR(run_traffic(network, options).accepted / 0.66928, 1, 0.02);
}

// Ring of 8, V1, neighbor traffic at 0.95, which saturates at 2/3: the queues at the sources grow, so the
// mean latency depends on which packets are measured. BookSim2: 3407.6 to 3435.2 cycles (two seeds).
TEST(BookSimQueues, PacketsQueuedBeforeTheWindowAreMeasuredOnRequest) {
  TrafficOptions options = traffic("neighbor", 1, 0.95);
  const TrafficPoint without = run_traffic(iq_router({8}, 4, 8), options);
  options.measures_queued = true;
  const TrafficPoint with = run_traffic(iq_router({8}, 4, 8), options);
  EXPECT_NEAR(with.packet_latency_cycles / 3421.4, 1, 0.015);
  EXPECT_GT(without.packet_latency_cycles / 3421.4, 1.07);
  EXPECT_EQ(with.accepted, without.accepted);
  EXPECT_TRUE(with.is_saturated);
  // Below saturation hardly any packet is queued, and the option changes next to nothing.
  options.load = 0.5;
  const TrafficPoint below = run_traffic(iq_router({8}, 4, 8), options);
  EXPECT_FALSE(below.is_saturated);
  options.measures_queued = false;
  EXPECT_NEAR(below.packet_latency_cycles / run_traffic(iq_router({8}, 4, 8), options).packet_latency_cycles,
              1, 0.001);
}

}  // namespace
}  // namespace apenet
