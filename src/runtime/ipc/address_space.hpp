// The limit of a process's address space (RLIMIT_AS, `ulimit -v`), of which a rank needs that of the mapping
// twice: the shim and the provider map it by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace apenet::ipc {

struct AddressSpace {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t limit_bytes = unlimited;
  std::uint64_t used_bytes = 0;  // known only if there is a limit

  [[nodiscard]] std::uint64_t left_bytes() const {
    return limit_bytes > used_bytes ? limit_bytes - used_bytes : 0;
  }
};

// Needs no heap.
[[nodiscard]] AddressSpace address_space();

// "RLIMIT_AS is 600000 KiB (ulimit -v 600000), of which 582680 KiB are in use"; if there is no limit, what
// else may refuse a mapping.
[[nodiscard]] std::string describe(const AddressSpace& space);

}  // namespace apenet::ipc
