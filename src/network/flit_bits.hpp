// Sets as bits of a word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace apenet {

// Of a word that is not zero: std::countr_zero would ask.
[[nodiscard]] inline std::uint32_t lowest_bit(std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_ctzll(word));
}

// First bit of a non-empty word behind `last`, below 64, cyclically: a round-robin arbiter without a branch,
// since nobody can predict which way it would go.
[[nodiscard]] inline std::uint32_t first_behind(std::uint64_t word, std::uint32_t last) {
  const std::uint64_t behind = word & ~std::uint64_t{1} << last;
  const std::uint64_t nothing = 0 - static_cast<std::uint64_t>(behind == 0);
  return lowest_bit(behind | (word & nothing));
}

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Writes base + bit for each, in ascending order, from out[count] on, and up to list_slack numbers more;
// returns the new count. How many there are is another number each time: so there is no branch for the
// first few.
inline constexpr std::size_t list_slack = 7;
[[nodiscard]] inline std::size_t list_bits(std::uint64_t word, std::uint32_t base, std::uint32_t* out,
                                           std::size_t count) {
  constexpr std::uint64_t not_zero = std::uint64_t{1} << 63U;
  do {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < list_slack; ++k) {
      out[count] = base + lowest_bit(word | not_zero);
      count += static_cast<std::size_t>(word != 0);
      word &= word - 1;
    }
  } while (word != 0);
  return count;
}

}  // namespace apenet
