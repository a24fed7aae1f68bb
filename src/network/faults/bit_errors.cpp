#include "network/faults/bit_errors.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/random.hpp"

namespace apenet {

// Combines the bits by repeated doubling with 1 - (1 - p)(1 - q) = p + q (1 - p), which loses no digits even
// if the rate is very small. std::fma is explicit, because otherwise the compiler would decide whether to
// fuse.
double corruption_probability(double bit_error_rate, std::uint32_t bytes) {
  double result = 0;
  double power = bit_error_rate;  // for 2^i bits
  for (std::uint64_t bits = std::uint64_t{8} * bytes; bits != 0; bits >>= 1U) {
    if ((bits & 1U) != 0) result = std::fma(power, 1.0 - result, result);
    power = std::fma(power, 1.0 - power, power);
  }
  return result;
}

std::uint32_t BitErrors::draw_failures(std::uint32_t link, double bit_error_rate, std::uint32_t bytes) {
  constexpr double most = 18446744073709549568.0;  // the largest double below 2^64
  constexpr std::uint32_t stream = 0x62697473;     // "bits": distinct from other draws with the same seed
  const double scaled = std::ldexp(corruption_probability(bit_error_rate, bytes), 64);
  const auto threshold = static_cast<std::uint64_t>(std::min(scaled, most));
  const PhiloxKey key = {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32U)};
  std::uint64_t& transmissions = state_.transmissions[link];
  std::uint32_t failures = 0;
  for (;; ++failures) {
    const std::uint64_t number = transmissions++;
    const PhiloxBlock block = philox4x32_10(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32U), link, stream}, key);
    if ((block[0] | std::uint64_t{block[1]} << 32U) >= threshold) break;
  }
  links_[link].corrupted += failures;
  links_[link].retransmitted_bytes += std::uint64_t{failures} * bytes;
  return failures;
}

}  // namespace apenet
