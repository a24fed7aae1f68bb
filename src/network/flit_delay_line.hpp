// DelayLine: what is on its way along wires of fixed length, by the cycle in which it arrives.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/check.hpp"

namespace apenet {

using FlitCycle = std::int64_t;

// All wires of the network in one ring of lists: what arrives in a cycle stands together and is read once, in
// the order in which it was sent. That is what makes the routers a Moore machine: nothing that a router sends
// in a cycle can be seen by another one in the same cycle.
template <typename Entry>
class alignas(64) DelayLine {
 public:
  // Delays of 1 to max_delay cycles.
  explicit DelayLine(FlitCycle max_delay)
      : slots_(std::bit_ceil(static_cast<std::size_t>(max_delay) + 2)), mask_(slots_.size() - 1) {}

  void push(FlitCycle due, const Entry& entry) {
    Slot& slot = slots_[static_cast<std::size_t>(due) & mask_];
    if (slot.count == slot.capacity) [[unlikely]]
      slot.grow();
    slot.entries[slot.count++] = entry;
    ++size_;
  }

  // As take. prepare(entry) comes a few entries ahead of visit, where what that will read is asked for.
  template <typename Prepare, typename Visit>
  void take(FlitCycle cycle, Prepare prepare, Visit visit) {
    constexpr std::size_t ahead = 8;
    const Slot& slot = slots_[static_cast<std::size_t>(cycle) & mask_];
    const std::size_t last = slot.count - 1;
    const Entry* const entries = slot.entries.get();
    std::size_t coming = ahead;
    take(cycle, [&](const Entry& entry) {
      prepare(entries[std::min(coming++, last)]);
      visit(entry);
    });
  }

  // Everything due in this cycle leaves. visit may push to later cycles.
  template <typename Visit>
  void take(FlitCycle cycle, Visit visit) {
    Slot& slot = slots_[static_cast<std::size_t>(cycle) & mask_];
    const std::size_t count = slot.count;
    for (std::size_t i = 0; i < count; ++i) visit(slot.entries[i]);
    APENET_CHECK(slot.count == count, "%zu entries sent with a delay beyond the line", slot.count - count);
    slot.count = 0;
    size_ -= count;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  struct alignas(32) Slot {
    void grow() {
      capacity = capacity < 8 ? 8 : 2 * capacity;
      auto larger = std::make_unique<Entry[]>(capacity);
      std::copy_n(entries.get(), count, larger.get());
      entries = std::move(larger);
    }

    std::unique_ptr<Entry[]> entries;
    std::size_t count = 0;
    std::size_t capacity = 0;
  };

  std::vector<Slot> slots_;
  std::size_t mask_;
  std::size_t size_ = 0;
};

}  // namespace apenet
