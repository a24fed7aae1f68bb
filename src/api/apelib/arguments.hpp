// What the functions of apelib.h share: the checks of their arguments. Each throws an Error that names the
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/apelib/library.hpp"

namespace apenet::apelib {

[[nodiscard]] std::string number(std::int64_t value);
void require(bool holds, ape_error code, std::string_view call, const std::string& what);

template <typename... Pointers>
void require_memory(std::string_view call, const Pointers*... pointers) {
  require((... && (pointers != nullptr)), APE_ERR_ARGUMENT, call, "a null pointer");
}

[[nodiscard]] std::uint32_t checked_rank(const Library& library, std::string_view call, int rank);
[[nodiscard]] std::uint32_t checked_direction(const Library& library, std::string_view call, int direction);
[[nodiscard]] std::uint64_t checked_tag(std::string_view call, int tag);
[[nodiscard]] How checked_how(std::string_view call, int how);

void check_bytes(Library& library, std::string_view call, const void* memory, std::uint64_t bytes);
[[nodiscard]] std::span<const std::byte> checked_out(Library& library, std::string_view call,
                                                     const void* memory, std::size_t bytes);
[[nodiscard]] std::span<std::byte> checked_in(Library& library, std::string_view call, void* memory,
                                              std::size_t bytes);

}  // namespace apenet::apelib
