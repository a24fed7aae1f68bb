// Torus: which rank has which coordinates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/apelib/apelib.h"

namespace apenet::apelib {

using Coordinates = std::array<std::uint32_t, APE_MAX_DIMS>;

class Torus {
 public:
  // Ranks are numbered with the first coordinate running fastest.
  Torus(std::uint32_t dimensions, const Coordinates& extents);
  // place_of_rank[r]: the place of rank r in that numbering. Each place has one rank.
  Torus(std::uint32_t dimensions, const Coordinates& extents, std::span<const std::uint32_t> place_of_rank);

  [[nodiscard]] std::uint32_t dimensions() const { return dimensions_; }
  [[nodiscard]] const Coordinates& extents() const { return extents_; }
  [[nodiscard]] Coordinates coordinates(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t rank_at(const Coordinates& coordinates) const;
  // Direction 2 d leads up dimension d, 2 d + 1 down.
  [[nodiscard]] std::uint32_t neighbor(std::uint32_t rank, std::uint32_t direction) const;

 private:
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t place) const;

  std::uint32_t dimensions_;
  Coordinates extents_;
  std::vector<std::uint32_t> place_of_rank_;  // both are empty if every rank is at its own number
  std::vector<std::uint32_t> rank_at_place_;
};

// The torus that APELIB_DIMS asks for, for example 4x2x2. Throws Error(APE_ERR_ENVIRONMENT).
[[nodiscard]] Torus torus_of(std::string_view dims, std::uint32_t ranks);
// Three dimensions whose extents are as equal as the number allows, the largest first.
[[nodiscard]] Torus balanced_torus(std::uint32_t ranks);
// The box of a machine's grid that the ranks fill with one rank on each node; none if they do not fill one.
[[nodiscard]] std::optional<Torus> torus_of_nodes(std::span<const std::uint32_t> extents,
                                                  std::span<const std::uint32_t> node_of_rank);

}  // namespace apenet::apelib
