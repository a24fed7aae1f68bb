#include "kernel/random.hpp"

#include "kernel/check.hpp"

namespace apenet {

PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
#pragma GCC unroll 10
  for (int i = 0; i < Philox::rounds; ++i) counter = Philox::round(counter, Philox::next_key(key));
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
