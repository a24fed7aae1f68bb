// ProgramMessages: what the shim knows of the program's MPI messages, for the provider. It lets a process
// that waits for several messages sleep until all of them have come (Grant::least_events).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace apenet::ipc {

// Owner: the process. Lies in the mapping, where the shim and the provider share it. All fields are atomic,
// because threads may call MPI at once; the provider uses them only in a process of one thread.
class ProgramMessages {
 public:
  static constexpr std::uint32_t most_awaited = 128;

  // Shim: a call begins that sends this buffer in standard mode: a message from it asks the receiver's
  // library for nothing.
  void begin_send(std::uint64_t buffer) { set(sent_, buffer); }
  void end_send() { set(sent_, std::uint64_t{0}); }
  // Provider: the MPI library sends a message from this buffer. True for the first one from the buffer of the
  // call. A later one may be a step of a collective operation on the same buffer.
  [[nodiscard]] bool take_send(std::uint64_t buffer) {
    if (buffer == 0 || get(sent_) != buffer) return false;
    end_send();
    return true;
  }

  // Shim: a call begins that may post a receive.
  void begin_receive() { set(posted_in_call_, 0U); }
  // Provider: numbers a receive that the MPI library posts. Zero stands for none.
  std::uint32_t number_receive() {
    set(posted_in_call_, get(posted_in_call_) + 1);
    set(last_number_, std::max(get(last_number_) + 1, 1U));
    return get(last_number_);
  }
  // Shim: the receive that the call has posted, or 0 if it has posted none or several.
  [[nodiscard]] std::uint32_t posted() const { return get(posted_in_call_) == 1 ? get(last_number_) : 0; }

  // Shim: a call begins that returns only when each of these receives has ended. Further ones than
  // most_awaited are left out.
  template <std::size_t size>
  void begin_wait(std::array<std::uint32_t, size>& numbers, std::uint32_t count) {
    static_assert(size == most_awaited);
    std::sort(numbers.begin(), numbers.begin() + count);
    for (std::uint32_t i = 0; i < count; ++i) set(awaited_[i], numbers[i]);
    set(awaited_count_, count);
  }
  void end_wait() { set(awaited_count_, 0U); }
  // Provider.
  [[nodiscard]] bool awaits_any() const { return get(awaited_count_) != 0; }
  [[nodiscard]] bool awaits(std::uint32_t number) const {
    const auto end = awaited_.begin() + get(awaited_count_);
    const auto at = std::lower_bound(awaited_.begin(), end, number,
                                     [](const auto& a, std::uint32_t b) { return get(a) < b; });
    return at != end && get(*at) == number;
  }

 private:
  template <typename Value>
  static Value get(const std::atomic<Value>& field) {
    return field.load(std::memory_order_relaxed);
  }
  template <typename Value>
  static void set(std::atomic<Value>& field, Value value) {
    field.store(value, std::memory_order_relaxed);
  }

  std::atomic<std::uint64_t> sent_{0};  // address of the buffer; 0: none
  std::atomic<std::uint32_t> posted_in_call_{0};
  std::atomic<std::uint32_t> last_number_{0};
  std::atomic<std::uint32_t> awaited_count_{0};
  std::array<std::atomic<std::uint32_t>, most_awaited> awaited_{};  // in order
};

}  // namespace apenet::ipc
