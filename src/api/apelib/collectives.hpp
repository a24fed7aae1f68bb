// Collective calls, over messages between pairs of ranks. Their order of combination depends on nothing but
// the number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "api/apelib/library.hpp"

namespace apenet::apelib {

enum class Operator : std::uint8_t { sum, minimum, maximum };

void barrier(Library& library, std::string_view call);
void broadcast(Library& library, std::span<std::byte> data, std::uint32_t root);
void gather(Library& library, std::span<const std::byte> mine, std::byte* all, std::uint32_t root);
// In place. Throws Error(APE_ERR_TYPE) for an order of complex numbers.
void combine(Library& library, std::string_view call, void* values, std::size_t count, ape_type type,
             Operator with);
[[nodiscard]] std::size_t bytes_of(ape_type type);

}  // namespace apenet::apelib
