// Sets as bits of a word.
#pragma once

#include <bit>
#include <cstdint>

namespace apenet {

// Of a word that is not zero: std::countr_zero would ask.
[[nodiscard]] inline std::uint32_t lowest_bit(std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_ctzll(word));
}

// First bit of a non-empty word behind `last`, below 64, cyclically: a round-robin arbiter without a branch,
// since nobody can predict which way it would go.
[[nodiscard]] inline std::uint32_t first_behind(std::uint64_t word, std::uint32_t last) {
  const std::uint32_t next = last + 1;
  return (lowest_bit(std::rotr(word, static_cast<int>(next))) + next) % 64;
}

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace apenet
