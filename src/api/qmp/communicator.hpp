// Communicator: a group of nodes, and the periodic grid that they declare as their logical topology.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace apenet::qmp {

// Grid of nodes. Nodes are numbered by their places, the axis order[0] running fastest.
struct Grid {
  std::vector<int> extents;
  std::vector<int> order;

  [[nodiscard]] std::vector<int> coordinates(int place) const;
  // Coordinates outside the grid are those of its periodic continuation.
  [[nodiscard]] int place(std::span<const int> coordinates) const;
};

// The number of places, or none if an extent is below 1 or the product exceeds an int.
[[nodiscard]] std::optional<int> places_of(std::span<const int> extents);

class Communicator {
 public:
  // ranks[n]: the rank in apelib of node n. context: the number that keeps its messages from those of other
  // communicators of the same ranks. place_of_node: where each node is in a logical topology.
  Communicator(int context, std::vector<int> ranks, int own_node, std::vector<int> place_of_node);

  [[nodiscard]] int context() const { return context_; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int node() const { return own_node_; }
  // Throws unless the node exists.
  [[nodiscard]] int rank_of(int node) const;

  void declare(Grid grid);
  [[nodiscard]] const Grid* grid() const { return grid_ ? &*grid_ : nullptr; }
  // All three throw if no topology is declared.
  [[nodiscard]] std::vector<int> coordinates_of(int node) const;
  [[nodiscard]] const std::vector<int>& coordinates() const;
  [[nodiscard]] int node_at(std::span<const int> coordinates) const;

  int colors = 1;
  int color = 0;
  int key = 0;

 private:
  const Grid& declared() const;

  int context_;
  std::vector<int> ranks_;
  int own_node_;
  std::vector<int> place_of_node_;
  std::vector<int> node_at_place_;
  std::optional<Grid> grid_;
  std::vector<int> coordinates_;
};

}  // namespace apenet::qmp
