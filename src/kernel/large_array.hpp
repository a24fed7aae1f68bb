// LargeArray: a vector for the arrays of a large machine.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace apenet {

// Begins at a cache line, so that records of half a line come in pairs; and lies in huge pages, where the
// system has them, from a few of them on: of an array that does not fit the cache every access would
// otherwise miss twice, once for its address.
template <typename T>
struct LargeArrayAllocator {
  using value_type = T;
  static constexpr std::size_t line_bytes = 64;
  static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;

  LargeArrayAllocator() = default;
  template <typename U>
  explicit LargeArrayAllocator(const LargeArrayAllocator<U>& /*other*/) {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const bool is_huge = bytes >= 2 * huge_page_bytes;
    const std::size_t alignment = is_huge ? huge_page_bytes : line_bytes;
    void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    if (is_huge) madvise(memory, bytes, MADV_HUGEPAGE);  // advice: without it everything works as well
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t /*count*/) { std::free(memory); }

  bool operator==(const LargeArrayAllocator& /*other*/) const { return true; }
};

template <typename T>
using LargeArray = std::vector<T, LargeArrayAllocator<T>>;

}  // namespace apenet
