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

// The line of the grid along one dimension through a place, and the place's coordinate on it.
struct GridLine {
  std::uint32_t coordinate = 0;
  std::uint32_t extent = 0;
  std::uint32_t stride = 1;  // between the numbers of places along the line

  GridLine(std::span<const std::uint32_t> extents, std::uint32_t place, std::size_t dimension)
      : extent(extents[dimension]) {
    for (std::size_t d = 0; d < dimension; ++d) stride *= extents[d];
    coordinate = place / stride % extent;
  }
  [[nodiscard]] bool is_first() const { return coordinate == 0; }
  [[nodiscard]] bool is_last() const { return coordinate + 1 == extent; }
  // The place at another coordinate, seen from `from`, which is on the line at `coordinate`.
  [[nodiscard]] std::uint32_t at(std::uint32_t from, std::uint32_t other) const {
    return from + (other - coordinate) * stride;  // unsigned: modulo 2^32
  }
  // So many steps on around the line, whose ends are joined.
  [[nodiscard]] std::uint32_t further(std::uint32_t from, std::uint32_t steps) const {
    return at(from, (coordinate + steps) % extent);
  }
};

}  // namespace apenet
