// QueuePool: many queues, most of them short, in one array.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/large_array.hpp"
#include "kernel/state.hpp"

namespace apenet {

// A large machine has a dozen queues per node. Separate memory for each would spread the used entries over
// all of it. Here a freed entry is the next one used, so that the entries in use stay in the cache, and an
// empty queue takes eight bytes.
template <typename T>
class QueuePool {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Queue {
    std::uint32_t first = none;
    std::uint32_t last = none;  // valid if the queue is not empty
    [[nodiscard]] bool empty() const { return first == none; }
    // More strict than needed: what waits is in the pool.
    friend bool is_same_state(const Queue& left, Moment /*at*/, const Queue& right, Moment /*at*/) {
      return left.empty() && right.empty();
    }
  };

  // Inlined, so that an item is built in its final place. Building it elsewhere and copying it would stall
  // the processor's store buffer.
  [[gnu::always_inline]] void push(Queue& queue, const T& item) {
    const std::uint32_t index = free_ == none ? entries_.add({}) : take_free();
    QueuedItem& entry = entries_[index];
    entry.item = item;
    entry.next = none;
    append(queue, index);
  }
  // Moves the first entry of one queue to the end of another. Requires !from.empty().
  void move_first(Queue& from, Queue& to) {
    const std::uint32_t index = from.first;
    QueuedItem& entry = entries_[index];
    from.first = entry.next;
    entry.next = none;
    append(to, index);
  }

  // Removes the first entry for which `is_wanted` is true. Returns false if there is none.
  template <typename IsWanted>
  bool take_first(Queue& queue, const IsWanted& is_wanted, T& item) {
    std::uint32_t before = none;
    for (std::uint32_t index = queue.first; index != none; index = entries_[index].next) {
      QueuedItem& entry = entries_[index];
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
  // The entry `from_front` places after the first. Requires that it exists.
  [[nodiscard]] T& at(const Queue& queue, std::uint64_t from_front) {
    std::uint32_t index = queue.first;
    for (; from_front > 0; --from_front) index = entries_[index].next;
    return entries_[index].item;
  }

  // The queues hold the items in flight; the places of their entries do not count.
  friend bool is_same_state(const QueuePool& /*left*/, Moment /*at*/, const QueuePool& /*right*/,
                            Moment /*at*/) {
    return true;
  }

  // Prefetches the first entry of the queue.
  [[gnu::always_inline]] void prepare(const Queue& queue) const {
    if (!queue.empty()) prefetch(entries_[queue.first]);
  }

 private:
  struct QueuedItem {
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
  // Prefetches the entry that will be taken next: in a large machine it has left the cache since its last
  // use.
  std::uint32_t take_free() {
    const std::uint32_t index = free_;
    free_ = entries_[index].next;
    if (free_ != none) prefetch(entries_[free_]);
    return index;
  }

  GrowingArray<QueuedItem> entries_;
  std::uint32_t free_ = none;
};

}  // namespace apenet
