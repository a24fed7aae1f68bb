// How many drawn cases a test runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace apenet::test {

// `make test-whole` runs all of them (APENET_WHOLE).
[[nodiscard]] inline bool runs_all_cases() {
  return std::getenv("APENET_WHOLE") != nullptr;
}

// By day one in so many: a case takes ten times as long under the address sanitizer.
#ifdef __SANITIZE_ADDRESS__
inline constexpr std::uint64_t day_share = 16;
#else
inline constexpr std::uint64_t day_share = 4;
#endif

// By day at least two.
[[nodiscard]] inline std::uint64_t drawn_cases(std::uint64_t all) {
  return runs_all_cases() ? all : std::max(all / day_share, std::min<std::uint64_t>(all, 2));
}

// Packets or messages of one case: by day a fourth of them.
[[nodiscard]] inline int drawn_load(int all) {
  return runs_all_cases() ? all : all / 4;
}

}  // namespace apenet::test
