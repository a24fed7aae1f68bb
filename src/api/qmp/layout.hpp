// Layout: how a lattice is divided among nodes.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace apenet::qmp {

// The grid of `nodes` nodes that divides the lattice evenly and whose subgrids have the smallest
// surface, and of equal ones the one that divides the last axes first. None: no grid divides it.
[[nodiscard]] std::optional<std::vector<int>> smallest_surface(std::span<const int> lattice, int nodes);

[[nodiscard]] bool divides(std::span<const int> grid, std::span<const int> lattice);

}  // namespace apenet::qmp
