#include "runtime/traffic/traffic_pattern.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "kernel/random.hpp"

namespace apenet {
namespace {

constexpr std::uint64_t rare_below = ~std::uint64_t{0} / (1U << 16U);

std::int64_t gap_of(const GeometricGap& gap, std::uint64_t bits) {
  return gap([bits] { return bits; });
}

TEST(GeometricGap, OneDrawSufficesForRareSuccesses) {
  const GeometricGap gap(rare_below - 1);
  RandomStream random(7, 1);
  double sum = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    int draws = 0;
    sum += static_cast<double>(gap([&] {
      ++draws;
      return random.next();
    }));
    ASSERT_EQ(draws, 1);
  }
  EXPECT_NEAR(sum / count / 65536, 1, 4 / std::sqrt(count));  // four standard deviations
}

// On both sides of the limit the same number gives the same gap, as far as the table of the frequent one
// reaches.
TEST(GeometricGap, RareAndFrequentSuccessesAgreeAtTheLimit) {
  const GeometricGap frequent(rare_below);
  const GeometricGap rare(rare_below - 1);
  for (std::uint64_t failures = 0; failures < 250; ++failures) {
    // Between the probabilities of no success in `failures` and in one more cycle.
    const double none = std::pow(1 - 1.0 / 65536, static_cast<double>(failures) + 0.5);
    const auto bits = static_cast<std::uint64_t>(std::ldexp(none, 64));
    EXPECT_EQ(gap_of(frequent, bits), static_cast<std::int64_t>(failures) + 1);
    EXPECT_EQ(gap_of(rare, bits), static_cast<std::int64_t>(failures) + 1);
  }
}

TEST(GeometricGap, TheRarestSuccessEndsBehindEveryRun) {
  const GeometricGap gap(1);
  constexpr std::uint64_t half = std::uint64_t{1} << 63U;
  EXPECT_GT(gap_of(gap, half), std::int64_t{1} << 39U);
  EXPECT_EQ(gap_of(gap, ~std::uint64_t{0}), 1);
  EXPECT_EQ(gap_of(gap, 0), std::int64_t{1} << 40U);
}

}  // namespace
}  // namespace apenet
