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
// in a cycle can be seen by another one in the same cycle. Readers that read at separate times have lists of
// their own, each with a number.
template <typename Entry>
class alignas(64) DelayLine {
 public:
  // Delays of 1 to max_delay cycles.
  DelayLine(FlitCycle max_delay, std::size_t lists)
      : mask_(std::bit_ceil(static_cast<std::size_t>(max_delay) + 2) - 1), slots_((mask_ + 1) * lists) {}

  // What push and take call the list of that number: lines of equal max_delay the same.
  [[nodiscard]] std::uint32_t list(std::uint32_t number) const {
    return number * static_cast<std::uint32_t>(mask_ + 1);
  }
  void push(FlitCycle due, std::size_t list, const Entry& entry) {
    Slot& slot = slot_of(due, list);
    if (slot.end == slot.limit) [[unlikely]]
      grow(slot);
    *slot.end++ = entry;
  }

  // Everything due in this cycle in that list leaves. visit may push to later cycles. Whether there was any.
  template <typename Visit>
  bool take(FlitCycle cycle, std::size_t list, Visit visit) {
    Slot& slot = slot_of(cycle, list);
    const Entry* const end = slot.end;
    if (slot.entries.get() == end) return false;
    for (const Entry* entry = slot.entries.get(); entry != end; ++entry) visit(*entry);
    APENET_CHECK(slot.end == end, "%td entries sent with a delay beyond the line", slot.end - end);
    --used_slots_;
    slot.end = slot.entries.get();
    spare_.push_back(std::exchange(slot, {}));
    return true;
  }
  [[nodiscard]] bool empty() const { return used_slots_ == 0; }

 private:
  struct alignas(32) Slot {
    std::unique_ptr<Entry[]> entries;
    Entry* end = nullptr;    // of those sent
    Entry* limit = nullptr;  // of those for which there is room
    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(end - entries.get()); }
  };

  // What was read last is used first: most slots are empty at any time, and few lines of a cache do for the
  // others.
  [[gnu::noinline]] void grow(Slot& slot) {
    if (slot.limit == nullptr) ++used_slots_;
    if (slot.limit == nullptr && !spare_.empty()) {
      slot = std::move(spare_.back());
      spare_.pop_back();
      return;
    }
    const std::size_t count = slot.count();
    const std::size_t room = std::max<std::size_t>(8, 2 * count);
    auto larger = std::make_unique<Entry[]>(room);
    std::copy_n(slot.entries.get(), count, larger.get());
    slot = {std::move(larger), nullptr, nullptr};
    slot.end = slot.entries.get() + count;
    slot.limit = slot.entries.get() + room;
  }

  [[nodiscard]] Slot& slot_of(FlitCycle cycle, std::size_t list) {
    return slots_[list + (static_cast<std::size_t>(cycle) & mask_)];
  }

  std::size_t mask_;
  std::vector<Slot> slots_;     // those of a list one behind the other
  std::vector<Slot> spare_;     // their buffers, without entries
  std::size_t used_slots_ = 0;  // have a buffer, and entries in it
};

}  // namespace apenet
