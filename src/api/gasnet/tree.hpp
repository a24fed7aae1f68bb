// A binomial tree over the ranks, whose root is any of them.
#pragma once

#include <cstdint>
#include <vector>

namespace apenet::gasnet {

[[nodiscard]] inline std::vector<std::uint32_t> children(std::uint32_t rank, std::uint32_t count,
                                                         std::uint32_t root = 0) {
  const std::uint32_t place = (rank + count - root) % count;
  std::vector<std::uint32_t> found;
  for (std::uint32_t bit = 1; bit < count && (place & bit) == 0; bit <<= 1U) {
    if ((place | bit) < count) found.push_back(((place | bit) + root) % count);
  }
  return found;
}

}  // namespace apenet::gasnet
