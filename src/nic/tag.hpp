// Tags and event arguments of a card's parts.
#pragma once

#include <cstdint>

namespace apenet {

// What it is about in the upper byte, which one below.
[[nodiscard]] constexpr std::uint64_t make_tag(std::uint8_t what, std::uint64_t which) {
  return std::uint64_t{what} << 56U | which;
}
[[nodiscard]] constexpr std::uint8_t tag_what(std::uint64_t tag) {
  return static_cast<std::uint8_t>(tag >> 56U);
}
[[nodiscard]] constexpr std::uint64_t tag_which(std::uint64_t tag) {
  return tag & ((std::uint64_t{1} << 56U) - 1);
}

}  // namespace apenet
