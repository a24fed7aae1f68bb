#include "api/apelib/torus.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "api/apelib/error.hpp"
#include "kernel/grid.hpp"

namespace apenet::apelib {
namespace {

constexpr std::uint32_t least_dimensions = 3;

Coordinates ones() {
  Coordinates extents{};
  extents.fill(1);
  return extents;
}

}  // namespace

Torus::Torus(std::uint32_t dimensions, const Coordinates& extents)
    : dimensions_(std::max(dimensions, least_dimensions)), extents_(extents) {}

Torus::Torus(std::uint32_t dimensions, const Coordinates& extents,
             std::span<const std::uint32_t> place_of_rank)
    : Torus(dimensions, extents) {
  place_of_rank_.assign(place_of_rank.begin(), place_of_rank.end());
  rank_at_place_.resize(place_of_rank.size());
  for (std::uint32_t rank = 0; rank < place_of_rank.size(); ++rank)
    rank_at_place_[place_of_rank[rank]] = rank;
}

std::uint32_t Torus::place_of(std::uint32_t rank) const {
  return place_of_rank_.empty() ? rank : place_of_rank_[rank];
}

std::uint32_t Torus::rank_of(std::uint32_t place) const {
  return rank_at_place_.empty() ? place : rank_at_place_[place];
}

Coordinates Torus::coordinates(std::uint32_t rank) const {
  Coordinates at{};
  grid_coordinates(extents_, place_of(rank), at);
  return at;
}

std::uint32_t Torus::rank_at(const Coordinates& coordinates) const {
  return rank_of(grid_place(extents_, coordinates));
}

std::uint32_t Torus::neighbor(std::uint32_t rank, std::uint32_t direction) const {
  const std::uint32_t place = place_of(rank);
  const GridLine line(extents_, place, direction / 2);
  return rank_of(line.further(place, direction % 2 == 0 ? 1 : line.extent - 1));
}

Torus torus_of(std::string_view dims, std::uint32_t ranks) {
  const auto refuse = [&] {
    throw Error(APE_ERR_ENVIRONMENT,
                "APELIB_DIMS = '" + std::string(dims) + "': expected up to " + std::to_string(APE_MAX_DIMS) +
                    " extents as 4x2x2, whose product is the number of ranks, " + std::to_string(ranks));
  };
  Coordinates extents = ones();
  std::uint32_t count = 0;
  std::uint64_t product = 1;
  const char* at = dims.data();
  const char* const end = at + dims.size();
  for (;; ++at) {
    std::uint32_t extent = 0;
    const auto [after, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent == 0 || count == extents.size()) refuse();
    extents[count++] = extent;
    product *= extent;
    if (product > ranks) refuse();
    at = after;
    if (at == end) break;
    if (*at != 'x') refuse();
  }
  if (product != ranks) refuse();
  return {count, extents};
}

Torus balanced_torus(std::uint32_t ranks) {
  Coordinates best = ones();
  std::uint64_t best_sum = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t z = 1; std::uint64_t{z} * z * z <= ranks; ++z) {
    if (ranks % z != 0) continue;
    const std::uint32_t plane = ranks / z;
    for (std::uint32_t y = z; std::uint64_t{y} * y <= plane; ++y) {
      if (plane % y != 0) continue;
      const std::uint64_t sum = std::uint64_t{plane} / y + y + z;
      if (sum >= best_sum) continue;
      best_sum = sum;
      best[0] = plane / y;
      best[1] = y;
      best[2] = z;
    }
  }
  return {least_dimensions, best};
}

std::optional<Torus> torus_of_nodes(std::span<const std::uint32_t> extents,
                                    std::span<const std::uint32_t> node_of_rank) {
  if (extents.empty() || extents.size() > APE_MAX_DIMS) return std::nullopt;
  Coordinates low{};
  Coordinates high{};
  low.fill(std::numeric_limits<std::uint32_t>::max());
  for (const std::uint32_t node : node_of_rank) {
    Coordinates at{};
    grid_coordinates(extents, node, at);
    for (std::size_t d = 0; d < extents.size(); ++d) {
      low[d] = std::min(low[d], at[d]);
      high[d] = std::max(high[d], at[d]);
    }
  }
  Coordinates box = ones();
  std::uint64_t places = 1;
  for (std::size_t d = 0; d < extents.size(); ++d) places *= box[d] = high[d] - low[d] + 1;
  if (places != node_of_rank.size()) return std::nullopt;
  std::vector<std::uint32_t> place_of_rank;
  std::vector<bool> taken(places);
  for (const std::uint32_t node : node_of_rank) {
    Coordinates at{};
    grid_coordinates(extents, node, at);
    for (std::size_t d = 0; d < extents.size(); ++d) at[d] -= low[d];
    const std::uint32_t place = grid_place(box, at);
    if (taken[place]) return std::nullopt;
    taken[place] = true;
    place_of_rank.push_back(place);
  }
  return Torus(static_cast<std::uint32_t>(extents.size()), box, place_of_rank);
}

}  // namespace apenet::apelib
