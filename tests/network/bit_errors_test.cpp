#include "network/faults/bit_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "contract/traffic.hpp"
#include "network/topology/cube.hpp"

namespace apenet::testing {
namespace {

TEST(BitErrors, ProbabilityIsThatOfAtLeastOneWrongBit) {
  EXPECT_EQ(corruption_probability(0, 4096), 0);
  EXPECT_EQ(corruption_probability(1e-3, 0), 0);
  EXPECT_DOUBLE_EQ(corruption_probability(0.5, 1), 255.0 / 256.0);
  for (const double rate : {1e-18, 1e-12, 1e-9, 3e-5, 1e-3, 0.2}) {
    for (const std::uint32_t bytes : {1U, 7U, 64U, 4113U}) {
      const long double expected = -std::expm1(8.0L * bytes * std::log1p(-static_cast<long double>(rate)));
      EXPECT_NEAR(corruption_probability(rate, bytes) / static_cast<double>(expected), 1, 1e-14)
          << rate << " " << bytes;
    }
  }
}

// Every transmission is corrupted independently with probability p, so the number of corrupted ones among T
// is binomial with mean T p. It deviates by five standard deviations for fewer than one of 10^6 seeds.
TEST(BitErrors, CorruptedTransmissionsAreBinomial) {
  for (const auto& [rate, bytes] : {std::pair{1e-5, 512U}, std::pair{1e-4, 2048U}, std::pair{2e-7, 4096U}}) {
    BitErrors errors(7, 3);
    constexpr int packets = 100'000;
    std::uint64_t failures = 0;
    for (int i = 0; i < packets; ++i) failures += errors.draw_failures(2, rate, bytes);
    const BitErrors::Counters& link = errors.link(2);
    const std::uint64_t transmissions = errors.state().transmissions[2];
    EXPECT_EQ(link.corrupted, failures);
    EXPECT_EQ(transmissions, packets + failures);
    EXPECT_EQ(link.retransmitted_bytes, failures * bytes);
    const double p = corruption_probability(rate, bytes);
    const auto count = static_cast<double>(transmissions);
    EXPECT_NEAR(static_cast<double>(failures), count * p, 5 * std::sqrt(count * p * (1 - p))) << rate;
    EXPECT_EQ(errors.state().transmissions[0], 0U);
  }
}

TEST(BitErrors, DrawsDependOnlyOnTheLinkAndItsTransmissions) {
  BitErrors one(3, 4);
  BitErrors other(3, 4);
  std::uint64_t differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t drawn = one.draw_failures(1, 1e-4, 1000);
    static_cast<void>(other.draw_failures(0, 1e-3, 200));
    EXPECT_EQ(drawn, other.draw_failures(1, 1e-4, 1000));
    differences += drawn != other.draw_failures(2, 1e-4, 1000) ? 1U : 0U;
  }
  EXPECT_GT(differences, 100U);
}

// Two nodes and one link of 1 byte/ns, L = 10 ns, R = 5 ns; 100 bytes, so D = 100 ns, and 25 ns to the
// router. A failed transmission costs its D and the round trip of the NAK, 2 (L + R) = 30 ns. Calculated by
// hand for numbers of failures k_1, k_2: the header of the first packet leaves router 0 at 5 ns + 130 ns k_1,
// its tail D later. Then the second packet's first transmission begins. Header and tail reach the last router
// L later and the ejection buffer another R later.
TEST(BitErrors, GoBackNCostsTheFailedTransmissionsAndTheRoundTripOfTheNak) {
  NetworkParameters parameters = small_network(MeshDescription({2}), 100);
  parameters.description.buffer_bytes = 400;
  parameters.description.ejection_buffer_bytes = 400;
  parameters.description.links[0].bit_error_rate = 5e-4;  // p = 0.33
  Traffic traffic(parameters);
  const int packets = 20;
  for (int i = 0; i < packets; ++i) traffic.offer(0, 1, 0, 100);
  traffic.run();
  traffic.expect_all_delivered();

  BitErrors same(1, 1);
  std::int64_t header_ns = 5;
  std::uint64_t failures = 0;
  for (const Arrival& arrival : traffic.node(1).arrivals()) {
    const std::uint32_t failed = same.draw_failures(0, 5e-4, 100);
    failures += failed;
    header_ns += 130 * std::int64_t{failed};
    EXPECT_EQ(arrival.head_time, Time::from_ns(header_ns + 15));
    EXPECT_EQ(arrival.tail_time, Time::from_ns(header_ns + 115));
    header_ns += 100;
  }
  EXPECT_GT(failures, 3U);
  const LinkStatistics use = traffic.network().link_statistics(0);
  EXPECT_EQ(use.packets, static_cast<std::uint64_t>(packets));
  EXPECT_EQ(use.wire_bytes, 100U * packets);
  EXPECT_EQ(use.corrupted_packets, failures);
  EXPECT_EQ(use.retransmitted_bytes, 100 * failures);
  EXPECT_EQ(use.busy, Time::from_ns(header_ns - 5));
  EXPECT_EQ(traffic.network().fault_use().corrupted_packets, failures);
  EXPECT_EQ(traffic.network().link_statistics(1).corrupted_packets, 0U);
}

TEST(BitErrors, RatesAtWhichNoPacketPassesAreRefused) {
  for (const double rate : {1.0, -1e-9, 2.0, std::nan(""), 0.02, HUGE_VAL}) {
    NetworkParameters parameters = small_network(MeshDescription({2}), 100);
    parameters.description.links[0].bit_error_rate = rate;
    try {
      const Traffic traffic(parameters);
      ADD_FAILURE() << rate;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("network.link.bit_error_rate = "), std::string::npos);
      if (rate == 0.02 || rate == 1.0) {
        EXPECT_NE(std::string(error.what()).find("100 bytes on the wire"), std::string::npos) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace apenet::testing
