// Puts and gets made of Active Messages, for conduits whose network has no remote access, and for memory that
// no card reaches: as GASNet's reference implementation of the extended interface.
//
// A put is requests with the data, each of which the target answers when they are in its memory. A get is
// requests that the target answers with the data. So both take credits as other requests do, and need the
// target's attention.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/gasnet/library.hpp"

namespace apenet::gasnet {

struct Remote {
  std::uint32_t rank;
  void* address;
};

// A 64-bit number as two arguments.
[[nodiscard]] constexpr Argument low(std::uint64_t value) {
  return static_cast<Argument>(static_cast<std::uint32_t>(value));
}
[[nodiscard]] constexpr Argument high(std::uint64_t value) {
  return static_cast<Argument>(static_cast<std::uint32_t>(value >> 32U));
}
[[nodiscard]] constexpr std::uint64_t number(Argument low_half, Argument high_half) {
  return std::uint64_t{static_cast<std::uint32_t>(high_half)} << 32U | static_cast<std::uint32_t>(low_half);
}

// Sets the handlers. Call once.
void begin_reference_access(Library& library);

// Call outside the process's lock: both run handlers while they wait for credits. The source of a put is free
// when the call returns. `pending` counts accesses that are not finished, and outlives them.
void reference_put(Library& library, const Remote& destination, std::span<const std::byte> source,
                   Pending& pending);
void reference_get(Library& library, std::span<std::byte> destination, const Remote& source,
                   Pending& pending);

}  // namespace apenet::gasnet
