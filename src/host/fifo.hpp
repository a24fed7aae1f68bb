// Fifo: a queue in one vector, for the many small queues of a machine.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace apenet {

// A deque takes half a kilobyte when it is empty; a large machine has a dozen queues a node, nearly always
// short. The space of what was popped is taken back when the queue runs empty, or when it is most of the
// vector: popping is constant time on average.
template <typename T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return head_ == items_.size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - head_; }
  [[nodiscard]] T& front() { return items_[head_]; }
  [[nodiscard]] const T& front() const { return items_[head_]; }
  [[nodiscard]] T& operator[](std::size_t from_front) { return items_[head_ + from_front]; }
  void push(T item) { items_.push_back(std::move(item)); }

  T pop() {
    T item = std::move(items_[head_]);
    ++head_;
    if (head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= compact_at && head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    return item;
  }

 private:
  static constexpr std::size_t compact_at = 32;
  std::vector<T> items_;
  std::size_t head_ = 0;
};

}  // namespace apenet
