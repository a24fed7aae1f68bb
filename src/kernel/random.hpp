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

// The same for many blocks of one key, whose schedule is made once.
class Philox {
 public:
  explicit Philox(PhiloxKey key) {
    for (PhiloxKey& of_round : keys_) of_round = next_key(key);
  }

  [[nodiscard]] PhiloxBlock operator()(PhiloxBlock counter) const {
#pragma GCC unroll 10
    for (const PhiloxKey& key : keys_) counter = round(counter, key);
    return counter;
  }

  static constexpr int rounds = 10;
  [[nodiscard]] static PhiloxBlock round(const PhiloxBlock& counter, const PhiloxKey& key) {
    const std::uint64_t product_0 = std::uint64_t{0xd2511f53U} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{0xcd9e8d57U} * counter[2];
    return {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
            static_cast<std::uint32_t>(product_1),
            static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
            static_cast<std::uint32_t>(product_0)};
  }
  // The key of this round; key becomes that of the next one.
  static PhiloxKey next_key(PhiloxKey& key) {
    const PhiloxKey of_round = key;
    key = {key[0] + 0x9e3779b9U, key[1] + 0xbb67ae85U};
    return of_round;
  }

 private:
  std::array<PhiloxKey, rounds> keys_;
};

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
