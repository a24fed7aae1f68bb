// FlitBits: a set of a router's virtual channels, one bit each.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace apenet {

// First bit of a non-empty word behind `last`, below 64, cyclically: a round-robin arbiter without a branch,
// since nobody can predict which way it would go.
[[nodiscard]] inline std::uint32_t first_behind(std::uint64_t word, std::uint32_t last) {
  const std::uint64_t behind = word & ~std::uint64_t{1} << last;
  const std::uint64_t nothing = 0 - static_cast<std::uint64_t>(behind == 0);
  return static_cast<std::uint32_t>(std::countr_zero(behind | (word & nothing)));
}

[[nodiscard]] constexpr std::uint64_t low_bits(std::uint32_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Words and not std::bitset: the virtual channels of one port are read as a field, and a router of up to 64
// of them is one register.
template <std::size_t Words>
struct FlitBits {
  std::array<std::uint64_t, Words> word{};

  [[nodiscard]] bool any() const {
    std::uint64_t all = 0;
    for (const std::uint64_t part : word) all |= part;
    return all != 0;
  }
  [[nodiscard]] bool test(std::uint32_t bit) const { return (word[index(bit)] >> bit % 64 & 1) != 0; }
  void set(std::uint32_t bit) { word[index(bit)] |= std::uint64_t{1} << bit % 64; }
  void reset(std::uint32_t bit) { word[index(bit)] &= ~(std::uint64_t{1} << bit % 64); }
  void assign(std::uint32_t bit, bool value) {
    reset(bit);
    word[index(bit)] |= std::uint64_t{value} << bit % 64;
  }
  void add(const FlitBits& other) {
    for (std::size_t i = 0; i < Words; ++i) word[i] |= other.word[i];
  }
  void remove(const FlitBits& other) {
    for (std::size_t i = 0; i < Words; ++i) word[i] &= ~other.word[i];
  }
  void keep(const FlitBits& other) {
    for (std::size_t i = 0; i < Words; ++i) word[i] &= other.word[i];
  }

  // First of the bits, of which there is one, behind `last`, cyclically.
  [[nodiscard]] std::uint32_t first_behind(std::uint32_t last) const {
    if constexpr (Words == 1) {
      return apenet::first_behind(word[0], last);
    } else {
      std::size_t i = index(last);
      const std::uint64_t behind = word[i] & ~std::uint64_t{1} << last % 64;
      if (behind != 0) return bit_in(i, behind);
      do {
        i = (i + 1) % Words;
      } while (word[i] == 0);
      return bit_in(i, word[i]);
    }
  }

  // Bits [offset, offset + width), width <= 64.
  [[nodiscard]] std::uint64_t field(std::uint32_t offset, std::uint32_t width) const {
    const std::size_t first = index(offset);
    std::uint64_t bits = word[first] >> offset % 64;
    if constexpr (Words > 1) {
      if (offset % 64 + width > 64 && first + 1 < Words) bits |= word[first + 1] << (64 - offset % 64);
    }
    return bits & low_bits(width);
  }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < Words; ++i) {
      for (std::uint64_t rest = word[i]; rest != 0; rest &= rest - 1) {
        visit(static_cast<std::uint32_t>(i * 64) + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }

  // Writes base + bit for each, in ascending order, from out[count] on, and up to list_slack numbers more;
  // returns the new count. How many there are is another number each time: so there is no branch for the
  // first few.
  static constexpr std::size_t list_slack = 3;
  std::size_t list(std::uint32_t base, std::uint32_t* out, std::size_t count) const {
    constexpr std::uint64_t not_zero = std::uint64_t{1} << 63U;
    for (std::size_t i = 0; i < Words; ++i, base += 64) {
      std::uint64_t rest = word[i];
      do {
        for (std::size_t k = 0; k < list_slack; ++k) {
          out[count] = base + static_cast<std::uint32_t>(std::countr_zero(rest | not_zero));
          count += static_cast<std::size_t>(rest != 0);
          rest &= rest - 1;
        }
      } while (rest != 0);
    }
    return count;
  }

 private:
  [[nodiscard]] static std::uint32_t bit_in(std::size_t index, std::uint64_t part) {
    return static_cast<std::uint32_t>(index * 64) + static_cast<std::uint32_t>(std::countr_zero(part));
  }
  [[nodiscard]] static constexpr std::size_t index(std::uint32_t bit) {
    if constexpr (Words == 1) {
      return 0;
    } else {
      return bit / 64;
    }
  }
};

}  // namespace apenet
