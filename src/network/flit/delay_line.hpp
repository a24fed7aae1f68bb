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
// their own.
//
// Wires of one length that lead to one list are as one. Where what they are given in a cycle has its place is
// found once a cycle, not for every flit.
template <typename Entry>
class alignas(64) DelayLine {
 public:
  // Delays of 1 to max_delay cycles.
  DelayLine(FlitCycle max_delay, std::size_t lists)
      : max_delay_(max_delay),
        mask_(std::bit_ceil(static_cast<std::size_t>(max_delay) + 2) - 1),
        wires_to_(lists),
        slots_((mask_ + 1) * lists) {}

  // The number of the wires to that list which are so long.
  [[nodiscard]] std::uint32_t wire(std::size_t list, FlitCycle delay) {
    APENET_CHECK(delay > 0 && delay <= max_delay_, "a wire of %lld cycles, at most %lld",
                 static_cast<long long>(delay), static_cast<long long>(max_delay_));
    for (const std::uint32_t number : wires_to_[list]) {
      if (wires_[number].delay == delay) return number;
    }
    const auto number = static_cast<std::uint32_t>(wires_.size());
    wires_to_[list].push_back(number);
    wires_.push_back({list, delay});
    ends_.push_back(nullptr);
    return number;
  }
  [[nodiscard]] FlitCycle delay(std::uint32_t wire) const { return wires_[wire].delay; }

  // What is sent from now on is sent in this cycle.
  void begin_cycle(FlitCycle cycle) {
    cycle_ = cycle;
    for (std::size_t i = 0; i < wires_.size(); ++i) {
      ends_[i] = &slot_of(cycle + wires_[i].delay, wires_[i].list);
    }
  }
  void push(std::uint32_t wire, const Entry& entry) { add(*ends_[wire], entry); }
  // So many cycles later than the wire is long, or earlier.
  void push_late(std::uint32_t wire, FlitCycle later, const Entry& entry) {
    add(slot_of(cycle_ + wires_[wire].delay + later, wires_[wire].list), entry);
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

  struct Wire {
    std::size_t list = 0;
    FlitCycle delay = 0;
  };

  void add(Slot& slot, const Entry& entry) {
    if (slot.end == slot.limit) [[unlikely]]
      grow(slot);
    *slot.end++ = entry;
  }

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
    return slots_[list * (mask_ + 1) + (static_cast<std::size_t>(cycle) & mask_)];
  }

  FlitCycle max_delay_;
  std::size_t mask_;
  FlitCycle cycle_ = 0;                               // at hand
  std::vector<Slot*> ends_;                           // per wire: where what is sent in that cycle arrives
  std::vector<Wire> wires_;                           // by number
  std::vector<std::vector<std::uint32_t>> wires_to_;  // numbers, per list
  std::vector<Slot> slots_;                           // those of a list one behind the other
  std::vector<Slot> spare_;                           // their buffers, without entries
  std::size_t used_slots_ = 0;                        // have a buffer, and entries in it
};

}  // namespace apenet
