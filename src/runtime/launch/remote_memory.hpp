// Reads the memory of a process of the program.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace apenet {

template <typename T>
[[nodiscard]] bool read_values(int process_id, std::uint64_t address, T* values, std::size_t count) {
  iovec here{values, count * sizeof(T)};
  // The address belongs to the other process.
  iovec there{reinterpret_cast<void*>(address), count * sizeof(T)};  // NOLINT(performance-no-int-to-ptr)
  return process_vm_readv(process_id, &here, 1, &there, 1, 0) == static_cast<ssize_t>(count * sizeof(T));
}

template <typename T>
[[nodiscard]] std::optional<T> read_value(int process_id, std::uint64_t address) {
  T value{};
  return read_values(process_id, address, &value, 1) ? std::optional(value) : std::nullopt;
}

// Text that ends with a zero byte; empty if it cannot be read or is longer than a path may be.
[[nodiscard]] inline std::string read_text(int process_id, std::uint64_t address) {
  constexpr std::size_t most = 4096;
  constexpr std::size_t part = 64;  // the text may end short before memory that is not there
  std::string text;
  while (text.size() < most) {
    std::array<char, part> bytes{};
    const std::size_t count = part - (address + text.size()) % part;
    if (!read_values(process_id, address + text.size(), bytes.data(), count)) return {};
    text.append(bytes.data(), count);
    if (const std::size_t end = text.find('\0'); end != std::string::npos) return text.substr(0, end);
  }
  return {};
}

}  // namespace apenet
