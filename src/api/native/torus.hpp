// Torus: where the processes of a run are on the torus or mesh of their machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ipc/client.hpp"

namespace apenet::native {

// A direction is 2 x dimension, and 1 more for the negative one.
class Torus {
 public:
  static constexpr std::uint32_t most_dimensions = ipc::most_dimensions;
  using Coordinates = std::array<std::uint32_t, most_dimensions>;

  Torus(const ipc::Client& client, const ipc::Grid& grid);

  [[nodiscard]] std::uint32_t dimensions() const { return grid_.dimensions; }
  // 1 beyond the dimensions.
  [[nodiscard]] std::uint32_t extent(std::uint32_t dimension) const {
    return dimension < grid_.dimensions ? grid_.extents[dimension] : 1;
  }
  [[nodiscard]] Coordinates coordinates(std::uint32_t node) const;
  // None: the dimension does not exist, or a mesh ends here.
  [[nodiscard]] std::optional<std::uint32_t> next_node(std::uint32_t node, std::uint32_t direction) const;

  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) const { return node_of_[rank]; }
  // The processes of a node, in the order of their ranks; their places are 0, 1, ...
  [[nodiscard]] const std::vector<std::uint32_t>& ranks_on(std::uint32_t node) const;
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const;
  // The process that has the place of `rank` on the next node.
  [[nodiscard]] std::optional<std::uint32_t> neighbour(std::uint32_t rank, std::uint32_t direction) const;

 private:
  [[nodiscard]] std::span<const std::uint32_t> extents() const { return {grid_.extents, grid_.dimensions}; }

  ipc::Grid grid_;
  std::vector<std::uint32_t> node_of_;                // by rank
  std::vector<std::vector<std::uint32_t>> ranks_on_;  // by node
};

}  // namespace apenet::native
