// LargeArray, GrowingArray, LargeObjects: memory for large machines.
#pragma once

#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace apenet {

// Aligns to a cache line, so that two half-line records share a line. Arrays of at least half a huge page lie
// in huge pages if the system has them: otherwise every access to an array larger than the cache would miss
// twice, once for its address translation.
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
    const bool is_huge = bytes >= huge_page_bytes / 2;
    const std::size_t alignment = is_huge ? huge_page_bytes : line_bytes;
    const std::size_t whole_bytes = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, whole_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (is_huge) madvise(memory, whole_bytes, MADV_HUGEPAGE);  // only a hint: failure is harmless
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t /*count*/) { std::free(memory); }

  bool operator==(const LargeArrayAllocator& /*other*/) const { return true; }
};

// Prefetches a whole object. This function, and every function that only calls it, must be always_inline: GCC
// considers a function that only prefetches to have no effect, and drops calls of it.
template <typename T>
[[gnu::always_inline]] inline void prefetch(const T& object) {
  const char* const begin = reinterpret_cast<const char*>(&object);
  for (std::size_t at = 0; at < sizeof(T); at += LargeArrayAllocator<T>::line_bytes) {
    __builtin_prefetch(begin + at);
  }
  __builtin_prefetch(begin + sizeof(T) - 1);
}

template <typename T>
using LargeArray = std::vector<T, LargeArrayAllocator<T>>;

// An array that grows without moving its elements: each segment is as large as all previous ones together.
// Copying a large array would touch, and page in, new memory each time.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray& other) {
    for (std::uint32_t i = 0; i < other.size_; ++i) add(other[i]);
  }
  GrowingArray& operator=(GrowingArray other) {
    std::swap(size_, other.size_);
    std::swap(segment_count_, other.segment_count_);
    std::swap(origins_, other.origins_);
    return *this;
  }
  ~GrowingArray() {
    for (std::size_t i = 0; i < segment_count_; ++i) {
      LargeArrayAllocator<T>().deallocate(&(*this)[first_of(i)], segment_size(i));
    }
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  // Returns the index of the new element.
  std::uint32_t add(const T& item) {
    const std::size_t segment = segment_of(size_);
    if (size_ == first_of(segment)) add_segment(segment);
    std::construct_at(&(*this)[size_], item);
    return size_++;
  }
  [[nodiscard]] T& operator[](std::uint32_t index) { return *reinterpret_cast<T*>(address(index)); }
  [[nodiscard]] const T& operator[](std::uint32_t index) const {
    return *reinterpret_cast<const T*>(address(index));
  }

 private:
  static constexpr unsigned first_bits = 6;
  static constexpr std::uint32_t first_size = std::uint32_t{1} << first_bits;
  static constexpr std::size_t segment_of(std::uint32_t index) {
    return static_cast<std::size_t>(std::bit_width(index | (first_size - 1))) - first_bits;
  }
  static constexpr std::uint32_t first_of(std::size_t segment) {
    return (first_size << segment >> 1U) & ~(first_size - 1);
  }
  static constexpr std::size_t segment_size(std::size_t segment) {
    return std::size_t{1} << (segment == 0 ? first_bits : segment + first_bits - 1);
  }
  [[nodiscard]] std::uintptr_t address(std::uint32_t index) const {
    return origins_[segment_of(index)] + std::uintptr_t{index} * sizeof(T);
  }
  [[gnu::noinline]] void add_segment(std::size_t segment) {
    T* const memory = LargeArrayAllocator<T>().allocate(segment_size(segment));
    origins_[segment] =
        reinterpret_cast<std::uintptr_t>(memory) - std::uintptr_t{first_of(segment)} * sizeof(T);
    segment_count_ = segment + 1;
  }

  std::uint32_t size_ = 0;
  std::size_t segment_count_ = 0;
  // The address that element 0 would have if its segment began there, so that an access needs one addition.
  // Stored as integers, because no object exists at these addresses.
  std::array<std::uintptr_t, 32 - first_bits + 1> origins_{};
};

// An array of objects that are created once, one per node, and never move, so that they may refer to each
// other. The caller creates at most `room` objects.
template <typename T>
class LargeObjects {
 public:
  explicit LargeObjects(std::size_t room) : room_(room), objects_(LargeArrayAllocator<T>().allocate(room)) {}
  LargeObjects(const LargeObjects&) = delete;
  LargeObjects& operator=(const LargeObjects&) = delete;
  ~LargeObjects() {
    std::destroy_n(objects_, size_);
    LargeArrayAllocator<T>().deallocate(objects_, room_);
  }

  template <typename... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    T* const object = std::construct_at(objects_ + size_, std::forward<Arguments>(arguments)...);
    ++size_;
    return *object;
  }
  [[nodiscard]] T& operator[](std::size_t index) { return objects_[index]; }
  [[nodiscard]] const T& operator[](std::size_t index) const { return objects_[index]; }

 private:
  std::size_t room_;
  std::size_t size_ = 0;
  T* objects_;
};

}  // namespace apenet
