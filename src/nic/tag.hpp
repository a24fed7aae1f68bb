// Tags of bus transactions and arguments of events.
#pragma once

#include <cstdint>

namespace apenet {

// Packs `what` into the upper byte and `which` into the rest.
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
