// How many drawn cases a test runs.
#pragma once

#include <cstdint>

namespace apenet::testing {

// An eighth under the address sanitizer: a case takes ten times as long there, and `make test-whole` runs all
// of them.
[[nodiscard]] constexpr std::uint64_t drawn_cases(std::uint64_t all) {
#ifdef __SANITIZE_ADDRESS__
  return (all + 7) / 8;
#else
  return all;
#endif
}

}  // namespace apenet::testing
