// Slab: things that come and go, named by small numbers that are used again.
#pragma once

#include <cstdint>
#include <utility>

#include "kernel/large_array.hpp"

namespace apenet {

template <typename T>
class Slab {
 public:
  std::uint32_t add(T item) {
    if (free_.empty()) return items_.add(item);
    const std::uint32_t index = free_.back();
    free_.pop_back();
    items_[index] = std::move(item);
    return index;
  }
  void remove(std::uint32_t index) { free_.push_back(index); }
  T take(std::uint32_t index) {
    T item = std::move(items_[index]);
    remove(index);
    return item;
  }
  [[nodiscard]] T& operator[](std::uint32_t index) { return items_[index]; }
  [[nodiscard]] const T& operator[](std::uint32_t index) const { return items_[index]; }
  void prepare(std::uint32_t index) const { prefetch(items_[index]); }
  [[nodiscard]] std::size_t in_use() const { return items_.size() - free_.size(); }

 private:
  GrowingArray<T> items_;
  LargeArray<std::uint32_t> free_;
};

}  // namespace apenet
