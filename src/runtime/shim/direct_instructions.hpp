// Finds instructions that make system calls in the code of an object (direct_code.hpp).
#pragma once

#include <cstdint>
#include <span>

namespace apenet::shim {

using Code = std::span<const std::uint8_t>;

// Whether the code makes a call on which virtual time may depend.
[[nodiscard]] bool has_direct_call(Code code);

}  // namespace apenet::shim
