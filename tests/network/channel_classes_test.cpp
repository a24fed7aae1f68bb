#include "network/routing/channel_classes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace apenet {
namespace {

std::vector<int> sizes(std::uint32_t virtual_channels, std::uint32_t classes) {
  const ChannelClasses split(virtual_channels, classes);
  std::vector<int> counts;
  for (std::uint32_t c = 0; c < classes; ++c) counts.push_back(std::popcount(split.mask(c)));
  return counts;
}

TEST(ChannelClasses, EveryChannelBelongsToExactlyOneClass) {
  for (std::uint32_t classes = 1; classes <= 6; ++classes) {
    for (std::uint32_t channels = classes; channels <= ChannelClasses::max_channels; ++channels) {
      const ChannelClasses split(channels, classes);
      std::uint64_t all = 0;
      for (std::uint32_t c = 0; c < classes; ++c) {
        EXPECT_EQ(all & split.mask(c), 0U);
        all |= split.mask(c);
        for (std::uint32_t lane = 0; lane < 70; ++lane) {
          EXPECT_EQ(split.class_of(split.channel(c, lane)), c);
          EXPECT_NE(split.mask(c) >> split.channel(c, lane) & 1U, 0U);
        }
      }
      EXPECT_EQ(std::popcount(all), static_cast<int>(channels));
      const std::vector<int> counts = sizes(channels, classes);
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()),
                *std::min_element(counts.begin(), counts.end()) + 1);
    }
  }
}

TEST(ChannelClasses, UnevenSplitsAreThoseOfTheDocumentation) {
  EXPECT_EQ(sizes(3, 2), (std::vector<int>{1, 2}));        // dimension order
  EXPECT_EQ(sizes(4, 3), (std::vector<int>{1, 1, 2}));     // minimal adaptive: the adaptive class
  EXPECT_EQ(sizes(6, 4), (std::vector<int>{1, 2, 1, 2}));  // Valiant: both parts alike
}

}  // namespace
}  // namespace apenet
