// The estimate of computation that a run does not charge: what it costs, and how far it is off.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "runtime/shim/uncharged.hpp"

namespace apenet::shim {
namespace {

constexpr std::int64_t us = 1'000'000;  // ps

// A thread that computes between calls of 2 us.
class Uncharged : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_cycle_ticks) GTEST_SKIP() << "each region is measured";
  }
  // Returns the estimate.
  std::int64_t compute(std::int64_t count, std::int64_t region_ps) {
    const auto read_cpu = [this] {
      ++reads_;
      return cpu_ps_;
    };
    std::int64_t estimate_ps = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      uncharged_.begin(ticks(), read_cpu);
      cpu_ps_ += region_ps;
      estimate_ps += uncharged_.end(ticks(), read_cpu);
      cpu_ps_ += 2 * us;
    }
    return estimate_ps;
  }
  std::int64_t take_reads() { return std::exchange(reads_, 0); }

 private:
  [[nodiscard]] std::uint64_t ticks() const { return static_cast<std::uint64_t>(cpu_ps_ / us * 3000); }

  UnchargedComputation uncharged_;
  std::int64_t cpu_ps_ = 0;
  std::int64_t reads_ = 0;
};

TEST_F(Uncharged, TheFirstRegionsAreExact) {
  EXPECT_EQ(compute(128, 5 * us), 128 * 5 * us);
}

// 128 samples each of 1, 2, 4 ... 128 regions are 32,640 regions; of the others one in 256 is measured.
TEST_F(Uncharged, FewOfManyShortRegionsAreMeasured) {
  const auto wanted = static_cast<double>(130'000 * us);
  EXPECT_NEAR(static_cast<double>(compute(130'000, us)), wanted, 0.1 * wanted);
  const double samples = 8 * 128 + (130'000 - 32'640) / 256.0;
  EXPECT_NEAR(static_cast<double>(take_reads()), 2 * samples, 0.1 * 2 * samples);
}

// Up to 511 calls and regions since the last read of the clock count with the first one.
TEST_F(Uncharged, EveryLongRegionCountsOnceHoweverFewAreSampled) {
  compute(100'000, us);
  const std::int64_t first_ps = compute(1, 2'000'000 * us);
  EXPECT_GE(first_ps, 2'000'000 * us);
  EXPECT_LE(first_ps, 2'000'000 * us + 511 * 3 * us);
  std::int64_t all_ps = 0;
  for (int i = 0; i < 100; ++i) {
    compute(20, us);
    all_ps += compute(1, 1000 * us);
  }
  EXPECT_GE(all_ps, 100 * 1000 * us);
  EXPECT_LE(all_ps, 100 * (1000 + 15 * 3) * us);
}

TEST_F(Uncharged, AfterALongRegionOneInEightIsMeasured) {
  compute(100'000, us);
  compute(1, 1000 * us);
  take_reads();
  const std::int64_t estimate_ps = compute(800, us);
  EXPECT_NEAR(static_cast<double>(take_reads()), 2 * 100, 40);
  EXPECT_NEAR(static_cast<double>(estimate_ps), 800e6, 160e6);
}

}  // namespace
}  // namespace apenet::shim
