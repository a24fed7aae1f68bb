#include "kernel/random.hpp"

#include "kernel/check.hpp"

namespace apenet {

PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = std::uint64_t{0xd2511f53U} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{0xcd9e8d57U} * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product_0)};
    key = {key[0] + 0x9e3779b9U, key[1] + 0xbb67ae85U};
  }
  return counter;
}

std::uint64_t RandomStream::next() {
  const std::uint64_t half = counter_ % 2;
  if (half == 0) {
    const std::uint64_t block = counter_ / 2;
    const PhiloxBlock bits =
        philox4x32_10({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    block_ = {bits[0] | std::uint64_t{bits[1]} << 32, bits[2] | std::uint64_t{bits[3]} << 32};
  }
  ++counter_;
  return block_[half];
}

// Multiply and reject (Lemire, "Fast random integer generation in an interval", TOMACS 2019).
std::uint64_t RandomStream::below(std::uint64_t bound) {
  APENET_CHECK(bound > 0, "no number is below 0");
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t threshold = (std::uint64_t{0} - bound) % bound;
  for (;;) {
    const Wide product = static_cast<Wide>(next()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace apenet
