// Fat trees: shape and wiring.
#pragma once

#include <array>
#include <cstdint>

#include "network/description.hpp"
#include "network/topology/topology.hpp"

namespace apenet {

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
  [[nodiscard]] std::uint32_t ports_per_switch() const;  // of the level with the most ports

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
