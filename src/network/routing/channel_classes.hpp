// ChannelClasses: which virtual channels of a link belong to which class of the routing.
#pragma once

#include <array>
#include <cstdint>

namespace apenet {

// Splits V virtual channels into C classes of consecutive ones: class c begins with channel floor(c V / C).
// Sizes differ by at most one. In an uneven split of two classes the second one, which carries more packets
// with dimension order on a torus, has the additional channel. Classes are disjoint: with a channel that two
// classes share, a header could wait behind a tail of the other class, and a cycle could close.
class ChannelClasses {
 public:
  static constexpr std::uint32_t max_channels = 64;

  // Requires 1 <= classes <= virtual_channels <= max_channels.
  ChannelClasses(std::uint32_t virtual_channels, std::uint32_t classes) {
    for (std::uint32_t c = 0; c < classes; ++c) {
      const std::uint32_t first = c * virtual_channels / classes;
      const std::uint32_t end = (c + 1) * virtual_channels / classes;
      ranges_[c] = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(end - first)};
      for (std::uint32_t vc = first; vc < end; ++vc) class_of_[vc] = static_cast<std::uint8_t>(c);
    }
  }

  [[nodiscard]] std::uint32_t class_of(std::uint32_t virtual_channel) const {
    return class_of_[virtual_channel];
  }
  // The channel that a packet of the lane uses. Lanes share channels if the class has fewer.
  [[nodiscard]] std::uint32_t channel(std::uint32_t channel_class, std::uint32_t lane) const {
    const ChannelRange range = ranges_[channel_class];
    return range.first + (range.count == 1 ? 0 : lane % range.count);
  }
  // The channels of a class, a bit for each.
  [[nodiscard]] std::uint64_t mask(std::uint32_t channel_class) const {
    const ChannelRange range = ranges_[channel_class];
    return ~std::uint64_t{0} >> (max_channels - range.count) << range.first;
  }

 private:
  struct ChannelRange {
    std::uint8_t first = 0;
    std::uint8_t count = 1;
  };
  std::array<ChannelRange, max_channels> ranges_{};
  std::array<std::uint8_t, max_channels> class_of_{};
};

}  // namespace apenet
