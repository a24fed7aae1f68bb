// Counter-based random numbers: a pure function of (seed, stream, counter).
#pragma once

#include <array>
#include <cstdint>

namespace apenet {

// Philox4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC11). Counter-based, so that a component's numbers depend on its stream and on how many it drew, never on
// what other components did in between.
using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
[[nodiscard]] PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key);

// A component's own sequence of random numbers. Streams of one seed are independent.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  [[nodiscard]] std::uint64_t next();
  // Uniform in [0, bound), without bias. Requires bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;  // numbers drawn; a block gives two
  std::array<std::uint64_t, 2> block_{};
};

}  // namespace apenet
