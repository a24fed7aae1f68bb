// Published times of QPACE's torus network.
//
// Boyanov, "Comparison and evaluation of high-performance computing network interconnects used for lattice
// QCD simulations", DESY Zeuthen, 18.01.2011: T(N, Nvc) = max_i(lambda_i + Nvc tau_i + Nvc N / beta_i), the
// fits of ping-pong and ping-ping with Nvc = 8, N = 128 to 2048. The document prints no measured points, so
// these tests compare with the evaluated fits. T is interpreted as the time of one way of N bytes on each of
// Nvc channels at once. docs/models/tnw.md states what was fitted.
#include <gtest/gtest.h>

#include <vector>

#include "runtime/scripted/card_tests.hpp"
#include "support/machines.hpp"

namespace apenet {
namespace {

const std::vector<std::int64_t> sizes = {128, 256, 512, 1024, 2048};

std::vector<TestPoint> measure(CardTest test, std::uint16_t channels) {
  CardTestOptions options;
  options.sizes = sizes;
  options.channels = channels;
  return run_card_test(test::machine("qpace"), test, options);
}

void expect_within(const std::vector<TestPoint>& points, const std::vector<double>& published_us,
                   double tolerance) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_NEAR(points[i].time.to_us(), published_us[i], published_us[i] * tolerance) << sizes[i] << " bytes";
  }
}

TEST(Qpace, PingPongOfEightChannels) {
  expect_within(measure(CardTest::pingpong, 8), {5.577, 5.827, 7.424, 11.791, 20.527}, 0.10);
}

TEST(Qpace, PingPingOfEightChannels) {
  expect_within(measure(CardTest::pingping, 8), {12.252, 13.038, 14.608, 17.75, 25.293}, 0.10);
}

// Rinke and Homberg, "QPACE: Energy-efficient high performance computing", PRACE Workshop 2010: about 3 us
// between SPEs of neighbouring nodes.
TEST(Qpace, ThreeMicrosecondsBetweenNeighbours) {
  EXPECT_NEAR(measure(CardTest::pingpong, 1)[0].time.to_us(), 3.0, 0.3);
}

// The sum of docs/models/tnw.md: the software's put and completion 2 x 200, the latencies 2 x 755, on the
// processor path 2 x (249 + 51.2), routers and link 2 x 20 + 60, on the link 128 + 8 + 34.
TEST(Qpace, APacketTakesTheSumOfItsTimes) {
  EXPECT_EQ(measure(CardTest::pingpong, 1)[0].time, Time::from_ps(2'780'400));
}

// The published fits were made with eight channels; for fewer they are extrapolated.
TEST(Qpace, FewerChannelsAreNearTheExtrapolation) {
  expect_within(measure(CardTest::pingpong, 1), {2.933, 3.07, 3.343, 3.889, 4.981}, 0.10);
  expect_within(measure(CardTest::pingpong, 2), {3.107, 3.38, 3.926, 5.018, 7.202}, 0.10);
  expect_within(measure(CardTest::pingpong, 4), {3.454, 4.0, 5.092, 7.276, 11.643}, 0.10);
  expect_within(measure(CardTest::pingping, 1), {3.102, 3.2, 3.397, 4.015, 5.282}, 0.10);
  expect_within(measure(CardTest::pingping, 2), {4.409, 4.606, 4.998, 5.784, 8.141}, 0.10);
  expect_within(measure(CardTest::pingping, 4), {7.024, 7.416, 8.202, 9.772, 13.858}, 0.10);
}

}  // namespace
}  // namespace apenet
