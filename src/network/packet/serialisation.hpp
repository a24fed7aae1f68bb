// Serialisation: computes how long a packet occupies a link, without a 128-bit division per hop.
#pragma once

#include <cstdint>

#include "kernel/rate.hpp"
#include "kernel/time.hpp"

namespace apenet {

// Equal to DataRate::duration for every size. It reduces the fraction to lowest terms, so that the product
// with a packet's size usually fits 64 bits: 16 bytes per 3 cycles of 133 MHz become 187500 ps per 133 bytes.
class Serialisation {
 public:
  Serialisation() = default;
  explicit Serialisation(const DataRate& rate) : rate_(rate) {
    __extension__ using Wide = unsigned __int128;
    Wide numerator = static_cast<Wide>(rate.per_cycles) * static_cast<Wide>(ps_per_second);
    Wide divisor = static_cast<Wide>(rate.bytes) * static_cast<Wide>(rate.frequency_hz);
    Wide left = numerator;
    for (Wide right = divisor; right != 0;) {
      const Wide rest = left % right;
      left = right;
      right = rest;
    }
    numerator /= left;
    divisor /= left;
    constexpr Wide limit = Wide{1} << 31U;  // times a 32-bit size stays below 2^63
    if (numerator < limit && divisor < limit) {
      ps_ = static_cast<std::uint64_t>(numerator);
      per_bytes_ = static_cast<std::uint64_t>(divisor);
    }
  }

  [[nodiscard]] Time duration(std::uint32_t size_bytes) const {
    if (per_bytes_ == 0) [[unlikely]]
      return long_division(size_bytes);
    return Time::from_ps(static_cast<std::int64_t>((size_bytes * ps_ + per_bytes_ - 1) / per_bytes_));
  }

 private:
  // A separate function, so that duration() need not save registers for its call.
  [[nodiscard, gnu::noinline, gnu::cold]] Time long_division(std::uint32_t size_bytes) const {
    return rate_.duration(size_bytes);
  }

  DataRate rate_;
  std::uint64_t ps_ = 0;
  std::uint64_t per_bytes_ = 0;  // 0: the fraction does not fit
};

}  // namespace apenet
