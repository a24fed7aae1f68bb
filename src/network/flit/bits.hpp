// Sets of numbers below 64, one bit of a word each.
#pragma once

#include <bit>
#include <cstdint>

namespace apenet {

// Requires word != 0: std::countr_zero would add a check for zero.
[[nodiscard]] inline std::uint32_t lowest_bit(std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_ctzll(word));
}

// A round-robin arbiter: returns the first bit after `last`, cyclically. Requires word != 0 and last < 64. It
// has no branch, because a branch would be unpredictable.
[[nodiscard]] inline std::uint32_t first_behind(std::uint64_t word, std::uint32_t last) {
  const std::uint32_t next = last + 1;
  return (lowest_bit(std::rotr(word, static_cast<int>(next))) + next) % 64;
}

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace apenet
