#include "kernel/random.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace apenet {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The reference program of its authors prints these numbers for this state.
TEST(SplitMix64, KnownAnswers) {
  SplitMix64 random(1234567);
  for (const std::uint64_t known : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                                    4593380528125082431U, 16408922859458223821U}) {
    EXPECT_EQ(random.next(), known);
  }
}

template <typename Generator>
void expect_own_streams() {
  Generator one(1, 2);
  Generator same(1, 2);
  Generator other_stream(1, 3);
  Generator other_seed(2, 2);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t value = one.next();
    EXPECT_EQ(value, same.next());
    EXPECT_NE(value, other_stream.next());
    EXPECT_NE(value, other_seed.next());
  }
}

TEST(SplitMix64, IsAFunctionOfSeedStreamAndCount) {
  expect_own_streams<SplitMix64>();
}

TEST(RandomStream, IsAFunctionOfSeedStreamAndCount) {
  expect_own_streams<RandomStream>();
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream random(9, 0);
  std::vector<int> counts(6);
  for (int i = 0; i < 60000; ++i) ++counts[random.below(6)];
  // The seed is fixed, so the result is reproducible. Five standard deviations are 456.
  for (const int count : counts) EXPECT_NEAR(count, 10000, 456);
  EXPECT_EQ(random.below(1), 0U);
}

}  // namespace
}  // namespace apenet
