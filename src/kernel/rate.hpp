// Clock domains and data rates: convert cycles and bytes to picoseconds.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/time.hpp"

namespace apenet {

// value * multiplier / divisor, rounded up, without overflow of the product. The only division on the timing
// path. It always rounds up, so that nothing is faster than its rate. A result that does not fit is the
// largest number.
[[nodiscard]] constexpr std::int64_t scale_up(std::int64_t value, std::int64_t multiplier,
                                              std::int64_t divisor) {
  std::int64_t narrow = 0;  // a 128-bit division takes several times as long
  if (!__builtin_mul_overflow(value, multiplier, &narrow) &&
      !__builtin_add_overflow(narrow, divisor - 1, &narrow)) {
    return narrow / divisor;
  }
  __extension__ using Wide = __int128;
  const Wide product = static_cast<Wide>(value) * multiplier;
  const Wide result = (product + divisor - 1) / divisor;
  constexpr Wide most = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(result < most ? result : most);
}

inline constexpr std::int64_t ps_per_second = 1'000'000'000'000;

// A clock domain. n cycles last ceil(n * 1e12 / frequency_hz) ps. Rounding applies to the span, not to each
// cycle, so 133 MHz (7518.797 ps) does not drift.
struct ClockDomain {
  std::int64_t frequency_hz = 0;
  [[nodiscard]] constexpr Time cycles(std::int64_t count) const {
    return Time::from_ps(scale_up(count, ps_per_second, frequency_hz));
  }
};

// A data rate as a fraction, so that "16 payload bytes per 3 clocks of 133 MHz" is exact.
struct DataRate {
  std::int64_t bytes = 0;         // bytes transferred ...
  std::int64_t per_cycles = 1;    // ... in this many cycles ...
  std::int64_t frequency_hz = 1;  // ... of this clock
  [[nodiscard]] constexpr bool operator==(const DataRate& other) const = default;
  // end_of_time at most.
  [[nodiscard]] constexpr Time duration(std::int64_t size_bytes) const {
    __extension__ using Wide = __int128;
    const Wide numerator = static_cast<Wide>(size_bytes) * per_cycles * ps_per_second;
    const Wide divisor = static_cast<Wide>(bytes) * frequency_hz;
    const Wide ps = (numerator + divisor - 1) / divisor;
    return ps < end_of_time.ps() ? Time::from_ps(static_cast<std::int64_t>(ps)) : end_of_time;
  }
  [[nodiscard]] static constexpr DataRate bytes_per_second(std::int64_t rate) { return {rate, 1, 1}; }
};

}  // namespace apenet
