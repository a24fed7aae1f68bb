#include "api/qmp/layout.hpp"

#include <cstddef>
#include <limits>

namespace apenet::qmp {
namespace {

// Goes through all grids that divide the lattice, the first axes with the smallest extents first.
class Search {
 public:
  explicit Search(std::span<const int> lattice) : lattice_(lattice), grid_(lattice.size(), 1) {}

  void divide(std::size_t axis, int nodes) {
    if (axis == lattice_.size()) {
      if (nodes == 1) compare();
      return;
    }
    for (int extent = 1; extent <= nodes && extent <= lattice_[axis]; ++extent) {
      if (nodes % extent != 0 || lattice_[axis] % extent != 0) continue;
      grid_[axis] = extent;
      divide(axis + 1, nodes / extent);
    }
  }

  [[nodiscard]] const std::optional<std::vector<int>>& best() const { return best_; }

 private:
  // All subgrids have the same volume: the surface in it is the sum of 1 / length over the divided axes.
  void compare() {
    double surface = 0;
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      if (grid_[axis] > 1) surface += static_cast<double>(grid_[axis]) / lattice_[axis];
    }
    if (surface >= smallest_) return;
    smallest_ = surface;
    best_ = grid_;
  }

  std::span<const int> lattice_;
  std::vector<int> grid_;
  double smallest_ = std::numeric_limits<double>::infinity();
  std::optional<std::vector<int>> best_;
};

}  // namespace

std::optional<std::vector<int>> smallest_surface(std::span<const int> lattice, int nodes) {
  Search search(lattice);
  search.divide(0, nodes);
  return search.best();
}

bool divides(std::span<const int> grid, std::span<const int> lattice) {
  for (std::size_t axis = 0; axis < lattice.size(); ++axis) {
    if (lattice[axis] < 1 || lattice[axis] % grid[axis] != 0) return false;
  }
  return true;
}

}  // namespace apenet::qmp
