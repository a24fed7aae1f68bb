// How many drawn cases a test runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace apenet::test {

// A case takes ten times as long under the address sanitizer, and `make test-whole` runs all of them.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool runs_all_cases = false;
#else
inline constexpr bool runs_all_cases = true;
#endif

// A sixteenth of them where not all run, but at least two.
[[nodiscard]] constexpr std::uint64_t drawn_cases(std::uint64_t all) {
  return runs_all_cases ? all : std::max(all / 16, std::min<std::uint64_t>(all, 2));
}

// Packets or messages of one case: a fourth of them where not all cases run.
[[nodiscard]] constexpr int drawn_load(int all) {
  return runs_all_cases ? all : all / 4;
}

}  // namespace apenet::test
