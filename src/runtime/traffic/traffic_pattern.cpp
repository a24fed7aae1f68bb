#include "runtime/traffic/traffic_pattern.hpp"

#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "kernel/refuse.hpp"
#include "network/topology/cube.hpp"

namespace apenet {

namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& expected) {
  refuse_value("pattern", '"' + name + '"', expected);
}

// The number of bits of a node number. Bit patterns require a power of two of nodes.
std::uint32_t node_bits(const std::string& name, std::uint32_t nodes) {
  if (!std::has_single_bit(nodes)) {
    refuse(name, "a power of two of nodes for this pattern, not " + std::to_string(nodes));
  }
  return static_cast<std::uint32_t>(std::countr_zero(nodes));
}

std::vector<NodeId> by_digit(const std::vector<std::uint32_t>& dims,
                             const std::function<std::uint32_t(std::uint32_t)>& distance) {
  const CubeShape shape(dims);
  std::vector<NodeId> table;
  for (NodeId node = 0; node < shape.node_count(); ++node) {
    std::vector<std::uint32_t> digits = shape.coordinates(node);
    for (std::size_t d = 0; d < dims.size(); ++d) digits[d] = (digits[d] + distance(dims[d])) % dims[d];
    table.push_back(shape.node(digits));
  }
  return table;
}

std::vector<NodeId> by_node(std::uint32_t nodes, const std::function<NodeId(NodeId)>& map) {
  std::vector<NodeId> table(nodes);
  for (NodeId node = 0; node < nodes; ++node) table[node] = map(node);
  return table;
}

NodeId reversed(NodeId node, std::uint32_t bits) {
  NodeId result = 0;
  for (std::uint32_t i = 0; i < bits; ++i) result |= (node >> i & 1U) << (bits - 1 - i);
  return result;
}

std::vector<NodeId> permutation(std::uint32_t nodes, std::uint64_t seed) {
  constexpr std::uint64_t stream = 0x7065726d;  // "perm"
  std::vector<NodeId> table(nodes);
  std::iota(table.begin(), table.end(), 0U);
  RandomStream random(seed, stream);
  for (std::size_t i = table.size(); i > 1; --i) std::swap(table[i - 1], table[random.below(i)]);
  return table;
}

}  // namespace

const std::vector<std::string>& TrafficPattern::names() {
  static const std::vector<std::string> names = {"uniform", "neighbor", "tornado",    "transpose", "bitcomp",
                                                 "bitrev",  "shuffle",  "asymmetric", "randperm",  "hotspot"};
  return names;
}

TrafficPattern::TrafficPattern(const std::string& name, const std::vector<std::uint32_t>& dims,
                               std::uint64_t seed) {
  for (const std::uint32_t size : dims) node_count_ *= size;
  const std::uint32_t nodes = node_count_;
  if (name == "uniform") {
    is_uniform_ = true;
  } else if (name == "asymmetric") {
    if (nodes % 2 != 0)
      refuse(name, "an even number of nodes for this pattern, not " + std::to_string(nodes));
    is_asymmetric_ = true;
  } else if (name == "neighbor") {
    table_ = by_digit(dims, [](std::uint32_t) { return 1U; });
  } else if (name == "tornado") {
    table_ = by_digit(dims, [](std::uint32_t size) { return (size + 1) / 2 - 1; });
  } else if (name == "transpose") {
    const std::uint32_t bits = node_bits(name, nodes);
    if (bits % 2 != 0)
      refuse(name, "an even power of two of nodes for this pattern, not " + std::to_string(nodes));
    const std::uint32_t half = bits / 2;
    table_ = by_node(nodes, [&](NodeId node) { return node >> half | (node << half & (nodes - 1)); });
  } else if (name == "bitcomp") {
    node_bits(name, nodes);
    table_ = by_node(nodes, [&](NodeId node) { return ~node & (nodes - 1); });
  } else if (name == "bitrev") {
    const std::uint32_t bits = node_bits(name, nodes);
    table_ = by_node(nodes, [&](NodeId node) { return reversed(node, bits); });
  } else if (name == "shuffle") {
    const std::uint32_t bits = node_bits(name, nodes);
    table_ = by_node(nodes, [&](NodeId node) {
      return bits == 0 ? node : (node << 1U & (nodes - 1)) | node >> (bits - 1);
    });
  } else if (name == "randperm") {
    table_ = permutation(nodes, seed);
  } else if (name == "hotspot") {
    table_.assign(nodes, 0);
  } else {
    std::string known;
    for (const std::string& other : names()) known += (known.empty() ? "" : ", ") + other;
    refuse(name, "one of " + known);
  }
}

GeometricGap::GeometricGap(std::uint64_t probability) {
  __extension__ using Wide = unsigned __int128;
  constexpr std::size_t max_entries = 256;
  const std::uint64_t failure = std::uint64_t{0} - probability;  // 2^64 - probability
  if (probability < ~std::uint64_t{0} / rare_cycles) {
    spans_.push_back(failure);
    while (spans_.size() < longest_span_bits) {
      spans_.push_back(static_cast<std::uint64_t>(static_cast<Wide>(spans_.back()) * spans_.back() >> 64U));
    }
    return;
  }
  std::uint64_t none = failure;
  while (none_.size() < max_entries && none != 0) {
    none_.push_back(none);
    none = static_cast<std::uint64_t>(static_cast<Wide>(none) * failure >> 64U);
  }
  none_.push_back(0);
  std::size_t failures = none_.size() - 1;
  for (std::size_t bucket = 0; bucket < least_failures_.size(); ++bucket) {
    const std::uint64_t most = ((std::uint64_t{bucket} + 1) << (64 - bucket_bits)) - 1;
    while (failures > 0 && most >= none_[failures - 1]) --failures;
    least_failures_[bucket] = static_cast<std::uint16_t>(failures);
  }
}

// The largest number of cycles whose probability of no success exceeds the drawn number: its binary digits,
// from the highest.
std::int64_t GeometricGap::rare_failures_of(std::uint64_t bits) const {
  __extension__ using Wide = unsigned __int128;
  Wide none = Wide{1} << 64U;
  std::int64_t failures = 0;
  for (std::size_t digit = spans_.size(); digit-- > 0;) {
    const Wide longer = none * spans_[digit] >> 64U;
    if (bits >= longer) continue;
    none = longer;
    failures |= std::int64_t{1} << digit;
  }
  return failures;
}

}  // namespace apenet
