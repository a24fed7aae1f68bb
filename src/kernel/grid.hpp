// The numbering of the places of a grid, the first coordinate running fastest: place = x + X (y + Y (z +
// ...)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apenet {

// coordinates has at least as many elements as extents; those beyond are left as they are.
inline void grid_coordinates(std::span<const std::uint32_t> extents, std::uint32_t place,
                             std::span<std::uint32_t> coordinates) {
  for (std::size_t d = 0; d < extents.size(); ++d) {
    coordinates[d] = place % extents[d];
    place /= extents[d];
  }
}

[[nodiscard]] inline std::uint32_t grid_place(std::span<const std::uint32_t> extents,
                                              std::span<const std::uint32_t> coordinates) {
  std::uint32_t place = 0;
  for (std::size_t d = extents.size(); d-- > 0;) place = place * extents[d] + coordinates[d];
  return place;
}

}  // namespace apenet
