// Pool, List, MessageMap: the containers of the fast path. None of them allocates once it is warm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace apenet::message {

template <typename T>
struct Hook {
  T* previous = nullptr;
  T* next = nullptr;
};

// Doubly linked list through a member of its elements; owns nothing.
template <typename T, Hook<T> T::*member>
class List {
 public:
  [[nodiscard]] T* front() const { return front_; }
  [[nodiscard]] static T* next(const T* element) { return (element->*member).next; }
  [[nodiscard]] bool empty() const { return front_ == nullptr; }

  template <typename Visit>
  void for_each(Visit visit) const {
    for (T* element = front_; element != nullptr; element = next(element)) visit(element);
  }

  void push_back(T* element) {
    (element->*member) = {back_, nullptr};
    (back_ != nullptr ? (back_->*member).next : front_) = element;
    back_ = element;
  }
  void remove(T* element) {
    Hook<T>& hook = element->*member;
    (hook.previous != nullptr ? (hook.previous->*member).next : front_) = hook.next;
    (hook.next != nullptr ? (hook.next->*member).previous : back_) = hook.previous;
    hook = {};
  }

 private:
  T* front_ = nullptr;
  T* back_ = nullptr;
};

// Objects that are numbered, never move, and are used again. T has `std::uint32_t id` and `void reset()`.
// A number holds a generation, so that one that comes back late from another process is recognised as stale.
template <typename T>
class Pool {
 public:
  T* take() {
    if (free_.empty()) grow();
    T* object = free_.back();
    free_.pop_back();
    object->id += generation_step;
    object->id |= in_use;
    return object;
  }
  void give_back(T* object) {
    object->reset();
    object->id &= ~in_use;
    free_.push_back(object);
  }
  // nullptr when no object in use has this number.
  [[nodiscard]] T* find(std::uint32_t id) const {
    const std::uint32_t index = id & index_mask;
    if ((id & in_use) == 0 || index >= chunks_.size() * chunk_size) return nullptr;
    T* object = &chunks_[index / chunk_size][index % chunk_size];
    return object->id == id ? object : nullptr;
  }
  template <typename Visit>
  void for_each_used(Visit visit) {
    for (const std::unique_ptr<T[]>& chunk : chunks_) {
      for (std::uint32_t i = 0; i < chunk_size; ++i) {
        if ((chunk[i].id & in_use) != 0) visit(chunk[i]);
      }
    }
  }
  [[nodiscard]] std::size_t used() const { return chunks_.size() * chunk_size - free_.size(); }

 private:
  static constexpr std::uint32_t index_bits = 24;
  static constexpr std::uint32_t index_mask = (1U << index_bits) - 1;
  static constexpr std::uint32_t generation_step = 1U << index_bits;
  static constexpr std::uint32_t in_use = 1U << 31;  // generations overflow into it: set and cleared apart
  static constexpr std::uint32_t chunk_size = 64;

  void grow() {
    const auto first = static_cast<std::uint32_t>(chunks_.size() * chunk_size);
    if (first + chunk_size > index_mask) throw std::bad_alloc();
    free_.reserve(first + chunk_size);
    chunks_.push_back(std::make_unique<T[]>(chunk_size));
    for (std::uint32_t i = chunk_size; i-- > 0;) {
      chunks_.back()[i].id = first + i;
      free_.push_back(&chunks_.back()[i]);
    }
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<T*> free_;
};

// Maps the number of a card operation to its transfer: open addressing, never iterated.
// Numbers grow, so their low bits spread without a hash.
class MessageMap {
 public:
  void insert(std::uint64_t message, std::uint32_t value) {
    if ((count_ + 1) * 2 > entries_.size()) grow();
    std::size_t at = home(message);
    while (entries_[at].message != 0) at = (at + 1) & mask();
    entries_[at] = {message, value};
    ++count_;
  }
  // Removes the entry; false when there is none.
  bool take(std::uint64_t message, std::uint32_t& value) {
    if (message == 0 || entries_.empty()) return false;
    std::size_t at = home(message);
    while (entries_[at].message != message) {
      if (entries_[at].message == 0) return false;
      at = (at + 1) & mask();
    }
    value = entries_[at].value;
    close_gap(at);
    --count_;
    return true;
  }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  struct NumberedValue {
    std::uint64_t message = 0;  // 0: empty; the numbers start at 1
    std::uint32_t value = 0;
  };
  static constexpr std::size_t initial_size = 64;  // with the first entry

  [[nodiscard]] std::size_t mask() const { return entries_.size() - 1; }
  [[nodiscard]] std::size_t home(std::uint64_t message) const { return message & mask(); }

  // Moves later entries of the run forward, so that no search stops short of them.
  void close_gap(std::size_t gap) {
    for (std::size_t at = (gap + 1) & mask(); entries_[at].message != 0; at = (at + 1) & mask()) {
      if (((at - home(entries_[at].message)) & mask()) >= ((at - gap) & mask())) {
        entries_[gap] = entries_[at];
        gap = at;
      }
    }
    entries_[gap] = {};
  }
  void grow() {
    std::vector<NumberedValue> old(std::max(entries_.size() * 2, initial_size));
    old.swap(entries_);
    count_ = 0;
    for (const NumberedValue& entry : old) {
      if (entry.message != 0) insert(entry.message, entry.value);
    }
  }

  std::vector<NumberedValue> entries_;
  std::size_t count_ = 0;
};

}  // namespace apenet::message
