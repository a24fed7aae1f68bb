// What is mapped begins and ends on a page of the kernel's.
#pragma once

#include <cstddef>

namespace apenet::ipc {

// The largest that a kernel for this processor may have: on aarch64, kernels differ.
#if defined(__x86_64__)
inline constexpr std::size_t page_bytes = 4096;
#else
inline constexpr std::size_t page_bytes = 65536;
#endif

[[nodiscard]] constexpr std::size_t round_to_pages(std::size_t bytes) {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace apenet::ipc
