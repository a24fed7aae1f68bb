// The destinations and the injection times of synthetic traffic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/random.hpp"
#include "network/packet.hpp"

namespace apenet {

// Destinations as functions of the source; names and definitions are BookSim2's, and those of Dally and
// Towles, "Principles and Practices of Interconnection Networks", chapter 3.2.
//   uniform     any node with equal probability, the source itself included
//   neighbor    one further along every dimension
//   tornado     almost half-way round every dimension: ceil(k / 2) - 1 further
//   transpose   the upper half of the node number's bits and the lower half exchanged
//   bitcomp     every bit of the node number inverted
//   bitrev      the bits of the node number in reverse order
//   shuffle     the bits of the node number rotated left by one
//   asymmetric  the source modulo half of the nodes, or that plus half of them, with equal probability
//   randperm    a permutation drawn from the seed
//   hotspot     node 0
class TrafficPattern {
 public:
  // dims: nodes per dimension; a single number for networks that are not cubes. Throws std::invalid_argument
  // for an unknown name, and for a number of nodes for which the pattern is undefined.
  TrafficPattern(const std::string& name, const std::vector<std::uint32_t>& dims, std::uint64_t seed);

  [[nodiscard]] static const std::vector<std::string>& names();

  // random: 32 uniform bits, used only by patterns with a choice.
  [[nodiscard]] NodeId destination(NodeId source, std::uint32_t random) const {
    if (is_uniform_) [[likely]]
      return static_cast<NodeId>(std::uint64_t{random} * node_count_ >> 32U);
    if (is_asymmetric_) return source % (node_count_ / 2) + (random >> 31U) * (node_count_ / 2);
    return table_[source];
  }

 private:
  std::uint32_t node_count_ = 1;
  bool is_uniform_ = false;
  bool is_asymmetric_ = false;
  std::vector<NodeId> table_;
};

// Gaps between the successes of a Bernoulli trial per cycle, without a draw for every cycle. Geometric, exact
// to 64 bits of probability. The table of a likely success spans 256 cycles and continues with another draw;
// a rare success (less than once in rare_cycles) takes one draw, whatever the gap.
class GeometricGap {
 public:
  // The probability of a success in a cycle, in units of 2^-64. Must not be zero.
  explicit GeometricGap(std::uint64_t probability);

  // Returns the number of cycles up to and including the next success, 1 or more. draw() returns 64 uniform
  // bits.
  template <typename Draw>
  [[nodiscard]] std::int64_t operator()(Draw draw) const {
    if (!spans_.empty()) [[unlikely]]
      return 1 + rare_failures_of(draw());
    std::int64_t gap = 1;
    for (;;) {
      const std::size_t failures = failures_of(draw());
      gap += static_cast<std::int64_t>(failures);
      if (none_[failures] != 0) return gap;  // else continue as after a restart
    }
  }

 private:
  static constexpr int bucket_bits = 8;
  static constexpr std::uint64_t rare_cycles = 1U << 16U;
  static constexpr int longest_span_bits = 40;  // longer gaps end behind every run

  [[nodiscard]] std::int64_t rare_failures_of(std::uint64_t bits) const;
  // The number of cycles without a success before the first one; at most none_.size() - 1.
  [[nodiscard]] std::size_t failures_of(std::uint64_t bits) const {
    std::size_t failures = least_failures_[bits >> (64 - bucket_bits)];
    while (bits < none_[failures]) ++failures;
    return failures;
  }

  // none_[k]: the probability of no success in k + 1 cycles, times 2^64. The last entry is 0 and ends the
  // search.
  std::vector<std::uint64_t> none_;
  // The start of the search, indexed by the highest bits. Most searches end there, without a mispredicted
  // branch.
  std::array<std::uint16_t, std::size_t{1} << bucket_bits> least_failures_{};
  // For rare successes, otherwise empty. spans_[i]: the probability of no success in 2^i cycles, times 2^64.
  std::vector<std::uint64_t> spans_;
};

}  // namespace apenet
