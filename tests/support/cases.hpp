// How many drawn cases a test runs.
#pragma once

#include <cstdint>

namespace apenet::testing {

// A quarter under the address sanitizer: a case takes ten times as long there, and `make test-networks`
// runs all of them.
[[nodiscard]] constexpr std::uint64_t drawn_cases(std::uint64_t all) {
#ifdef __SANITIZE_ADDRESS__
  return (all + 3) / 4;
#else
  return all;
#endif
}

}  // namespace apenet::testing
