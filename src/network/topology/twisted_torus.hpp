// Twisted tori: tori of sizes k and 2k whose short rings are joined into rings of 2k nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/topology/cube.hpp"
#include "network/topology/description.hpp"

namespace apenet {

// A torus whose sizes are k or 2k, at least one of each. The cable that closes a dimension of k nodes leads
// to the node whose coordinate is k further along each dimension of 2k nodes. So every ring has 2k nodes, and
// all dimensions carry the same load (Camara et al., IEEE Trans. Parallel and Distributed Systems 21, 2010;
// k x k x 2k and k x 2k x 2k are the cubic crystal graphs FCC(k) and BCC(k) of Camarero et al., ibid. 26,
// 2015).
struct TwistedTorusDescription : CubeDescription {
  using CubeDescription::CubeDescription;
  [[nodiscard]] static TopologyKind kind();
};

[[nodiscard]] Topology make_topology(const TwistedTorusDescription& torus);
[[nodiscard]] std::uint32_t count_nodes(const TwistedTorusDescription& torus);

// The shape of a twisted torus. All nodes see the same network: what lies between two nodes depends on their
// difference only, which is written as the node that differs so from node 0.
class TwistedShape {
 public:
  // Throws std::invalid_argument, which names network.dims, for other sizes than k and 2k.
  explicit TwistedShape(const std::vector<std::uint32_t>& dims);

  [[nodiscard]] const CubeShape& cube() const { return cube_; }
  // The node at the other end of port + of a dimension.
  [[nodiscard]] NodeId next(NodeId node, std::uint32_t dimension) const;
  [[nodiscard]] NodeId difference(NodeId from, NodeId to) const;
  // All shortest ways to a node that differs so, each as the signed number of links along each dimension.
  [[nodiscard]] std::vector<std::vector<std::int32_t>> shortest(NodeId difference) const;

 private:
  [[nodiscard]] bool is_short(std::size_t dimension) const { return cube_.dims()[dimension] == short_size_; }

  CubeShape cube_;
  std::uint32_t short_size_;                // k
  std::vector<std::uint32_t> coordinates_;  // per node and dimension
};

}  // namespace apenet
