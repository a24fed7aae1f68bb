// Calls in machine code, by which the addresses on a stack to which functions return are told from other
// words.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace apenet::ipc {

#if defined(__x86_64__)

// The bytes before an address: the longest instruction that calls.
using CallBytes = std::array<std::uint8_t, 7>;

// Whether they may end with an instruction that calls.
[[nodiscard]] inline bool may_be_call(const CallBytes& before) {
  if (before[2] == 0xe8) return true;  // to a distance of 32 bits
  // To an address in a register or in memory, which takes 2 to 7 bytes.
  for (std::size_t at = 0; at + 1 < before.size(); ++at) {
    if (before[at] == 0xff && (before[at + 1] >> 3 & 7) == 2) return true;
  }
  return false;
}

// How far from the address the called function begins; nullopt: the instruction does not tell.
[[nodiscard]] inline std::optional<std::int64_t> distance_of_call(const CallBytes& before) {
  if (before[2] != 0xe8) return {};
  std::int32_t distance = 0;
  std::memcpy(&distance, before.data() + 3, sizeof distance);
  return distance;
}

// The address of code in a word of the stack.
[[nodiscard]] constexpr std::uint64_t code_address(std::uint64_t word) {
  return word;
}

#elif defined(__aarch64__)

using CallBytes = std::array<std::uint8_t, 4>;

[[nodiscard]] inline bool is_direct_call(std::uint32_t instruction) {
  return (instruction & 0xfc000000U) == 0x94000000U;  // bl
}

[[nodiscard]] inline bool may_be_call(const CallBytes& before) {
  std::uint32_t instruction = 0;
  std::memcpy(&instruction, before.data(), sizeof instruction);
  // blr, also with a check of the address's signature
  return is_direct_call(instruction) || (instruction & 0xfefff000U) == 0xd63f0000U;
}

[[nodiscard]] inline std::optional<std::int64_t> distance_of_call(const CallBytes& before) {
  std::uint32_t instruction = 0;
  std::memcpy(&instruction, before.data(), sizeof instruction);
  if (!is_direct_call(instruction)) return {};
  // A distance of 26 bits, in instructions, from the call's own place.
  constexpr std::int64_t instruction_bytes = 4;
  const auto words = static_cast<std::int32_t>(instruction << 6U) >> 6;
  return std::int64_t{words} * instruction_bytes - instruction_bytes;
}

// The upper bits may hold the address's signature (pointer authentication).
[[nodiscard]] constexpr std::uint64_t code_address(std::uint64_t word) {
  constexpr unsigned address_bits = 48;
  return word & ((std::uint64_t{1} << address_bits) - 1);
}

#endif

}  // namespace apenet::ipc
