// Handles: objects that a program names by numbers. A number that was given back never names another object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace apenet::apelib {

template <typename Object>
class Handles {
 public:
  // Never 0.
  std::uint64_t add() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    HandleSlot& place = places_[index];
    place.object = std::make_unique<Object>();
    ++count_;
    return std::uint64_t{++place.generation} << 32 | index;
  }
  // nullptr: the number names none.
  [[nodiscard]] Object* find(std::uint64_t handle) const {
    const auto index = static_cast<std::uint32_t>(handle);
    if (index >= places_.size() || places_[index].generation != handle >> 32) return nullptr;
    return places_[index].object.get();
  }
  // Requires find(handle) != nullptr.
  void remove(std::uint64_t handle) {
    const auto index = static_cast<std::uint32_t>(handle);
    places_[index].object.reset();
    free_.push_back(index);
    --count_;
  }
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  struct HandleSlot {
    std::uint32_t generation = 0;
    std::unique_ptr<Object> object;
  };
  std::vector<HandleSlot> places_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace apenet::apelib
