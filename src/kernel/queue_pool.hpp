// QueuePool: many queues, nearly always short, in one array.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/large_array.hpp"

namespace apenet {

// A large machine has a dozen queues a node. Each with memory of its own would spread what is used over all
// of it; here an entry that is free again is the next to be used, so that the entries in use stay in the
// cache, and an empty queue is eight bytes.
template <typename T>
class QueuePool {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Queue {
    std::uint32_t first = none;
    std::uint32_t last = none;  // of a queue that is not empty
    [[nodiscard]] bool empty() const { return first == none; }
  };

  // Inlined, so that an item is written where it stays: one built elsewhere and copied stalls the processor's
  // store buffer.
  [[gnu::always_inline]] void push(Queue& queue, const T& item) {
    const std::uint32_t index = free_ == none ? entries_.add({}) : take_free();
    Entry& entry = entries_[index];
    entry.item = item;
    entry.next = none;
    append(queue, index);
  }
  // The first of one queue becomes the last of another. Requires !from.empty().
  void move_first(Queue& from, Queue& to) {
    const std::uint32_t index = from.first;
    Entry& entry = entries_[index];
    from.first = entry.next;
    entry.next = none;
    append(to, index);
  }

  // Out of the queue, wherever it stands: the first of which `is_wanted` is true. False when there is none.
  template <typename IsWanted>
  bool take_first(Queue& queue, const IsWanted& is_wanted, T& item) {
    std::uint32_t before = none;
    for (std::uint32_t index = queue.first; index != none; index = entries_[index].next) {
      Entry& entry = entries_[index];
      if (is_wanted(entry.item)) {
        item = entry.item;
        (before == none ? queue.first : entries_[before].next) = entry.next;
        if (queue.last == index) queue.last = before;
        give_back(index);
        return true;
      }
      before = index;
    }
    return false;
  }

  // Requires !queue.empty().
  T pop(Queue& queue) {
    const std::uint32_t index = queue.first;
    queue.first = entries_[index].next;
    give_back(index);
    return entries_[index].item;
  }
  [[nodiscard]] T& front(const Queue& queue) { return entries_[queue.first].item; }
  [[nodiscard]] T& back(const Queue& queue) { return entries_[queue.last].item; }
  // The entry that many places behind the first; requires that it exists.
  [[nodiscard]] T& at(const Queue& queue, std::uint64_t from_front) {
    std::uint32_t index = queue.first;
    for (; from_front > 0; --from_front) index = entries_[index].next;
    return entries_[index].item;
  }

  // The first of the queue will be needed soon.
  [[gnu::always_inline]] void prepare(const Queue& queue) const {
    if (!queue.empty()) prefetch(entries_[queue.first]);
  }

 private:
  struct Entry {
    T item;
    std::uint32_t next = none;
  };

  void append(Queue& queue, std::uint32_t index) {
    (queue.empty() ? queue.first : entries_[queue.last].next) = index;
    queue.last = index;
  }
  void give_back(std::uint32_t index) {
    entries_[index].next = free_;
    free_ = index;
  }
  // The one that will be taken next is fetched: since it was used, a large machine has used much else.
  std::uint32_t take_free() {
    const std::uint32_t index = free_;
    free_ = entries_[index].next;
    if (free_ != none) prefetch(entries_[free_]);
    return index;
  }

  GrowingArray<Entry> entries_;
  std::uint32_t free_ = none;
};

}  // namespace apenet
