// Fat trees: shape and wiring.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "network/topology/description.hpp"

namespace apenet {

// A parallel-ports generalised fat tree, PGFT(h; m; 1, w; 1, p) of Zahavi ("Fat-tree routing and node
// ordering providing contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72,
// 2012), of two or three levels of switches. Level 0 are the leaves.
struct FatTreeDescription {
  [[nodiscard]] static TopologyKind kind();
  std::vector<std::uint32_t> children;  // m: below a switch of each level: nodes per leaf, leaves per ...
  std::vector<std::uint32_t> parents;   // w: different switches above a switch of each level but the last
  std::vector<std::uint32_t> cables;    // p: parallel cables to each of them
};

inline void list_fields(schema::Fields& fields, FatTreeDescription& tree) {
  using namespace schema::ranges;
  fields("children", tree.children, schema::List{count, 2, 3},
         "nodes of a leaf, leaves below a switch of the next level, and so on");
  fields("parents", tree.parents, schema::List{count, 1, 2},
         "switches above a switch of each level but the last");
  fields("cables", tree.cables, schema::List{count, 1, 2}.optional(),
         "parallel cables to each parent, of each level but the last; absent: 1");
  if (tree.cables.empty()) tree.cables.assign(tree.parents.size(), 1);
}

[[nodiscard]] Topology make_topology(const FatTreeDescription& tree);
[[nodiscard]] std::uint32_t count_nodes(const FatTreeDescription& tree);
[[nodiscard]] std::vector<std::string> link_sections(const FatTreeDescription& tree);

// The shape of a fat tree with two or three levels of switches: leaf, (middle,) spine. Two levels are three
// with a single pod and no switches above it. In a pod, every leaf is connected to every middle switch.
// Middle switch j of every pod is connected to spines j * w .. j * w + w-1.
//
//   routers  leaves, then middle switches pod by pod, then spines
//   ports    to child c by cable k: c + children * k; to parent q by cable k:
//            children * down cables + q + parents * k. Nodes are the children of leaves, by one cable each.
class FatTreeShape {
 public:
  static constexpr std::uint32_t max_nodes = 1U << 22U;
  static constexpr std::uint32_t max_ports = 4096;  // per switch

  // Throws std::invalid_argument, which names network.children, network.parents or network.cables.
  explicit FatTreeShape(const FatTreeDescription& description);

  [[nodiscard]] std::uint32_t levels() const { return levels_; }
  [[nodiscard]] std::uint32_t node_count() const;
  [[nodiscard]] std::uint32_t switches(std::uint32_t level) const;  // in that level
  [[nodiscard]] std::uint32_t switch_count() const;
  [[nodiscard]] std::uint32_t down_ports(std::uint32_t level) const;
  [[nodiscard]] std::uint32_t up_ports(std::uint32_t level) const;
  [[nodiscard]] std::uint32_t ports_per_switch() const;  // ports at the level with the most ports

  // Indexed by level: number of children and parents of a switch.
  std::array<std::uint32_t, 3> children{1, 1, 1};
  std::array<std::uint32_t, 3> parents{0, 0, 0};
  std::array<std::uint32_t, 3> cables{1, 1, 1};  // to each parent

 private:
  std::uint32_t levels_;
};

// link_class is the level below the cable. Switches are named leaf0, middle0, spine0, ...
[[nodiscard]] Topology make_fat_tree(const FatTreeShape& shape);

}  // namespace apenet
