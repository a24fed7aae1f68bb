// Counter-based random numbers: a pure function of (seed, stream, counter).
#pragma once

#include <array>
#include <cstdint>

namespace apenet {

// Philox4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC11). Counter-based: a component's numbers depend only on its stream and on how many it has drawn, never
// on other components.
using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
[[nodiscard]] PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key);

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a tenth of
// Philox's cost, for numbers drawn for every packet. mix64 is its mixing function: every bit of the result
// depends on all bits of the word.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t word) {
  word = (word ^ word >> 30U) * 0xbf58476d1ce4e5b9U;
  word = (word ^ word >> 27U) * 0x94d049bb133111ebU;
  return word ^ word >> 31U;
}
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t state) : state_(state) {}
  // Streams of one seed are independent.
  constexpr SplitMix64(std::uint64_t seed, std::uint64_t stream) : state_(mix64(mix64(seed) ^ stream)) {}

  [[nodiscard]] constexpr std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15U); }

 private:
  std::uint64_t state_;
};

// A component's sequence of random numbers. Streams of one seed are independent.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  [[nodiscard]] std::uint64_t next();
  // Uniform in [0, bound), unbiased. Requires bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;  // numbers drawn; a block contains two
  std::array<std::uint64_t, 2> block_{};
};

}  // namespace apenet
