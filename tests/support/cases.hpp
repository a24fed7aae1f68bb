// How many drawn cases a test runs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace apenet::test {

// A sixteenth under the address sanitizer, but at least two: a case takes ten times as long there, and
// `make test-whole` runs all of them.
[[nodiscard]] constexpr std::uint64_t drawn_cases(std::uint64_t all) {
#ifdef __SANITIZE_ADDRESS__
  return std::max(all / 16, std::min<std::uint64_t>(all, 2));
#else
  return all;
#endif
}

}  // namespace apenet::test
