// Slab: a pool of items named by small indices, which are reused.
#pragma once

#include <cstdint>

#include "kernel/large_array.hpp"
#include "kernel/state.hpp"

namespace apenet {

template <typename T>
class Slab {
 public:
  // Inlined for the same reason as QueuePool::push.
  [[gnu::always_inline]] std::uint32_t add(const T& item) {
    const std::uint32_t index = free_.empty() ? items_.add({}) : take_free();
    items_[index] = item;
    return index;
  }
  void remove(std::uint32_t index) { free_.push_back(index); }
  T take(std::uint32_t index) {
    const T item = items_[index];
    remove(index);
    return item;
  }
  [[nodiscard]] T& operator[](std::uint32_t index) { return items_[index]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const { return items_[index]; }
  [[gnu::always_inline]] void prepare(std::uint32_t index) const { prefetch(items_[index]); }
  [[nodiscard]] std::size_t in_use() const { return items_.size() - free_.size(); }
  // More strict than needed: items in use make a difference, whatever they are.
  friend bool is_same_state(const Slab& left, Moment /*at*/, const Slab& right, Moment /*at*/) {
    return left.in_use() == 0 && right.in_use() == 0;
  }

 private:
  // Prefetches the items that will be taken next: in a large machine they have left the cache since their
  // last use.
  std::uint32_t take_free() {
    constexpr std::size_t ahead = 4;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    if (free_.size() >= ahead) prefetch(items_[free_[free_.size() - ahead]]);
    return index;
  }

  GrowingArray<T> items_;
  LargeArray<std::uint32_t> free_;
};

}  // namespace apenet
